package profiles

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// What limits may be. Below the least no shell starts a program.
const (
	LeastMemory = 4 << 20 // bytes
	LeastPIDs   = 2
	MostPIDs    = 1 << 22 // PID_MAX_LIMIT, proc_sys_kernel(5)
	LeastCPUs   = 0.01
	MostCPUs    = 1 << 16
)

// Layers are the names that Require and AllowMissing may hold: those that some
// backend reports on.
var Layers = []string{
	sandbox.LayerNamespaces, sandbox.LayerLandlock, sandbox.LayerSeccomp, sandbox.LayerCgroup,
	sandbox.LayerDescriptors, sandbox.LayerPrivileges,
	sandbox.LayerSeatbelt, sandbox.LayerRlimits, sandbox.LayerWatch,
}

var errSize = errors.New(`want a size such as 512M or 4G (K, M, G, T are powers of 1024), or unlimited`)

// ParseSize reads a number of bytes above zero: "1024", "512M", "4GiB", "2g".
// "unlimited" is sandbox.Unlimited.
func ParseSize(text string) (int64, error) {
	if text == "unlimited" {
		return sandbox.Unlimited, nil
	}
	number, shift := strings.TrimSuffix(text, "iB"), 0
	if i := len(number) - 1; i >= 0 {
		if unit := strings.IndexByte("KMGTkmgt", number[i]); unit >= 0 {
			number, shift = number[:i], 10*(unit%4+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64>>shift {
		return 0, errSize
	}
	return n << shift, nil
}
