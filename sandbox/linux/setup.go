//go:build linux

package linux

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
	"unsafe"

	"github.com/sandbox-exec/sandbox-exec/sandbox/linux/internal/helper"
	"golang.org/x/sys/unix"
)

// setup is all that is done to a process, in order: the helper's own steps,
// then those of its forked child, which becomes the program.
type setup struct {
	pidns        bool
	cgroup       int // descriptor of the cgroup into which the program is forked; 0 = none
	watch        watched
	init, target []step
	data         []byte // strings, structures and cells that the steps use
}

// step is one system call with its reason.
type step struct {
	layer string
	what  string // "mount tmpfs on /dev/shm"
	why   string
	nr    uintptr
	args  [6]arg
	to    arg // cell that gets the result; zero = none
	want  syscall.Errno
	allow [2]syscall.Errno // errors that do as well
	skip  int              // on another outcome: -1 = nothing is run, n = go on after the n next steps
	// absent lists the errors that mean that this machine does not have the
	// layer. Such steps come before any path of the workspace is touched.
	absent []syscall.Errno
}

// arg is an argument of a step: a number, the address of something in the
// block, or the value that a cell has by then.
type arg struct {
	kind argKind
	val  uint64 // a number, or an offset into setup.data
}

type argKind uint8

const (
	isNumber argKind = iota
	isAddress
	isCell
)

func num[T ~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64 | ~uintptr](v T) arg {
	return arg{val: uint64(v)}
}

var fdcwd = num(unix.AT_FDCWD)

// builder appends steps to one of the lists of a setup.
type builder struct {
	set   *setup
	steps *[]step
	layer string
}

// sys appends a step that must succeed. The pointer is for refining the step
// and valid until the next call.
func (b *builder) sys(what, why string, nr uintptr, args ...arg) *step {
	s := step{layer: b.layer, what: what, why: why, nr: nr, skip: -1}
	copy(s.args[:], args)
	*b.steps = append(*b.steps, s)
	return &(*b.steps)[len(*b.steps)-1]
}

func (b *builder) bytes(p []byte) arg {
	for len(b.set.data)%8 != 0 {
		b.set.data = append(b.set.data, 0)
	}
	off := len(b.set.data)
	b.set.data = append(b.set.data, p...)
	return arg{isAddress, uint64(off)}
}

func (b *builder) str(s string) arg {
	off := len(b.set.data)
	b.set.data = append(append(b.set.data, s...), 0)
	return arg{isAddress, uint64(off)}
}

func (b *builder) words(w ...uint64) arg {
	p := make([]byte, 0, 8*len(w))
	for _, x := range w {
		p = binary.NativeEndian.AppendUint64(p, x)
	}
	return b.bytes(p)
}

// vector is a NULL-terminated array of strings.
func (b *builder) vector(list []string) arg {
	addrs := make([]uint64, len(list)+1)
	for i, s := range list {
		addrs[i] = address(b.str(s).val)
	}
	return b.words(addrs...)
}

// cell is a place for a result that later steps take as an argument.
func (b *builder) cell() arg {
	return arg{isCell, b.words(0).val}
}

// open opens a path for use by descriptor, through no symbolic link, so that
// what was surveyed is what is used.
func (b *builder) open(path string) arg {
	how := b.words(unix.O_PATH|unix.O_CLOEXEC, 0, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	fd := b.cell()
	b.sys("open "+path, "", unix.SYS_OPENAT2, fdcwd, b.str(path), how, num(24)).to = fd
	return fd
}

const (
	stepSize   = uint64(unsafe.Sizeof(helper.Step{}))
	headerSize = uint64(unsafe.Sizeof(helper.Header{}))
)

// address of setup.data's byte off in the helper.
func address(off uint64) uint64 { return helper.Base + headerSize + off }

// encode lays the block out as the helper maps it: header, data, steps.
func (s *setup) encode() []byte {
	stepsAt := (headerSize + uint64(len(s.data)) + 7) &^ 7
	out := make([]byte, stepsAt+stepSize*uint64(len(s.init)+len(s.target)))
	h := (*helper.Header)(unsafe.Pointer(&out[0]))
	*h = helper.Header{
		Magic: helper.Magic, Size: uint64(len(out)), Steps: stepsAt,
		Init: uint64(len(s.init)), Target: uint64(len(s.target)),
		Cgroup: uint64(s.cgroup),
	}
	if s.pidns {
		h.PIDNS = 1
	}
	copy(out[headerSize:], s.data)
	for i := range len(s.init) + len(s.target) {
		from := s.at(i)
		to := (*helper.Step)(unsafe.Pointer(&out[stepsAt+uint64(i)*stepSize]))
		to.Nr, to.Want, to.Skip = uint64(from.nr), uint64(from.want), int64(from.skip)
		to.Allow = [2]uint64{uint64(from.allow[0]), uint64(from.allow[1])}
		if from.to.kind == isCell {
			to.Dst = headerSize + from.to.val
		}
		for j, a := range from.args {
			switch a.kind {
			case isNumber:
				to.Args[j] = a.val
			case isAddress:
				to.Args[j] = address(a.val)
			case isCell:
				to.Args[j] = headerSize + a.val
				to.Cells |= 1 << j
			}
		}
	}
	return out
}

// at is the step with the index that the helper reports.
func (s *setup) at(i int) *step {
	if i < len(s.init) {
		return &s.init[i]
	}
	return &s.target[i-len(s.init)]
}

// String prints the setup for people, one step a line.
func (s *setup) String() string {
	var w strings.Builder
	list := func(steps []step) {
		layer, last, times := "", "", 0
		flush := func() {
			if times > 1 {
				last += fmt.Sprintf("  (%d times)", times)
			}
			if times > 0 {
				fmt.Fprintln(&w, last)
			}
		}
		for _, st := range steps {
			line := st.String()
			if line == last && st.layer == layer {
				times++
				continue
			}
			flush()
			if st.layer != layer {
				layer = st.layer
				fmt.Fprintf(&w, "  [%s]\n", layer)
			}
			last, times = line, 1
		}
		flush()
	}
	w.WriteString("helper:\n")
	list(s.init)
	if s.watch.any() {
		fmt.Fprintf(&w, "  [watch]\n    end the tree above %d bytes of memory or %d processes and threads  # 0 = not watched\n", s.watch.memory, s.watch.tasks)
	}
	if s.cgroup != 0 {
		w.WriteString("  [cgroup]\n    fork the program into the cgroup\n")
	}
	w.WriteString("program:\n")
	list(s.target)
	return w.String()
}

func (st step) String() string {
	s := "    " + st.what
	switch {
	case st.want != 0:
		s += fmt.Sprintf("  (must fail: %v)", st.want)
	case st.skip >= 0:
		s += "  (optional)"
	case st.allow[0] != 0:
		s += fmt.Sprintf("  (or: %v)", st.allow[0])
	case len(st.absent) > 0:
		s += "  (if refused: the machine has no such layer)"
	}
	if st.why != "" {
		s += "  # " + st.why
	}
	return s
}
