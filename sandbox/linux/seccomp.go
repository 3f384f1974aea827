//go:build linux

package linux

import "errors"

// seccompFilter returns the seccomp filter for this architecture as an array
// of struct sock_filter, 8 bytes each, in native byte order. landlockTier says
// that no namespaces hold; networkOff that the command gets no network.
//
// It is loaded last of all restrictions: the helper needs what it refuses.
func seccompFilter(landlockTier, networkOff bool) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
