//go:build linux

package linux

import (
	"embed"
	"runtime"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// The filters are compiled beforehand: libseccomp needs cgo, which would make
// the product a dynamic binary.
//
//go:generate env CGO_ENABLED=1 go run -tags libseccomp ../../scripts/genseccomp

//go:embed filters/*.bpf
var filterFiles embed.FS

// seccompFilter returns the seccomp filter for this architecture as an array
// of struct sock_filter, 8 bytes each, in native byte order. landlockTier says
// that no namespaces hold; unixSockets that the command may have such sockets,
// because something keeps it from those of others; networkOff that it gets no
// network; root that its files belong to the host's root, so that none of them may become
// set-user-ID. It fails with a [sandbox.UnsupportedError] on an architecture
// that has no filter.
//
// It is loaded last of all restrictions: it refuses what the helper's other
// steps need.
func seccompFilter(landlockTier, unixSockets, networkOff, root bool) ([]byte, error) {
	variant := "namespaces"
	if !landlockTier && !unixSockets {
		variant += "-nounix"
	}
	if landlockTier {
		variant = "landlock"
		if unixSockets {
			variant += "-unix"
		}
		if networkOff {
			variant += "-offline"
		}
	}
	if root {
		variant += "-root"
	}
	filter, err := filterFiles.ReadFile("filters/" + variant + "-" + runtime.GOARCH + ".bpf")
	if err != nil {
		return nil, &sandbox.UnsupportedError{
			Layer: sandbox.LayerSeccomp,
			Want:  "a filter for amd64 or arm64",
			Have:  runtime.GOARCH,
		}
	}
	return filter, nil
}
