//go:build amd64 || arm64

package helper

import "unsafe"

// entry is where the kernel starts the program when it was linked with
//
//	-ldflags '-E github.com/sandbox-exec/sandbox-exec/sandbox/linux/internal/helper.entry'
//
// (see -E in cmd/link). It enters Go at enter, then the runtime.
func entry()

// bare leaves the runtime for good and goes on in serve.
func bare()

// Assembly uses these.
var (
	entered = enter
	served  = serve
	noG     [64]uintptr // its stack has no limits
	stack   [stackSize]byte

	_, _, _, _, _ = entry, entered, served, &noG, &stack
)

const stackSize = 64 << 10

// enter runs before the runtime, on the kernel's stack, which args points to:
// argc, then argv (ELF ABI). It returns if this process is not a helper.
//
//go:norace
func enter(args *[2]uintptr) {
	if args[0] != 1 {
		return
	}
	argv0 := *(*unsafe.Pointer)(unsafe.Pointer(&args[1]))
	for i := range len(Name) {
		if *(*byte)(unsafe.Add(argv0, i)) != Name[i] {
			return
		}
	}
	if *(*byte)(unsafe.Add(argv0, len(Name))) == 0 && onSocket() {
		serve()
	}
}
