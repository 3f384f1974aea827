package helper

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Guarded: a program that is not our helper goes on to its own main after one
// failed system call.
func init() {
	if h := handshake(); h != nil {
		main(h)
	}
}

// handshake maps the block if this process was started as a helper. Once the
// socket and the name say so there is no way back to the program's main.
func handshake() *Header {
	typ, err := syscall.GetsockoptInt(SocketFD, syscall.SOL_SOCKET, syscall.SO_TYPE)
	if err != nil || typ != syscall.SOCK_SEQPACKET || !named() {
		return nil
	}
	// The parent compiles while we start, and gives up by closing its end.
	var start Packet
	b := (*[unsafe.Sizeof(start)]byte)(unsafe.Pointer(&start))
	n, err := syscall.Read(SocketFD, b[:])
	for err == syscall.EINTR {
		n, err = syscall.Read(SocketFD, b[:])
	}
	if err != nil || n != len(b) || start.Kind != Start {
		exit(125)
	}
	var st syscall.Stat_t
	if syscall.Fstat(BlockFD, &st) != nil || st.Size < int64(unsafe.Sizeof(Header{})) || st.Size > 1<<30 {
		exit(125)
	}
	const mapFixedNoReplace = 0x100000
	addr, _, errno := syscall.RawSyscall6(syscall.SYS_MMAP, Base, uintptr(st.Size),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|mapFixedNoReplace, BlockFD, 0)
	if errno != 0 || addr != Base {
		exit(125)
	}
	h := *(**Header)(unsafe.Pointer(&addr))
	if h.Magic != Magic || h.Size != uint64(st.Size) {
		exit(125)
	}
	return h
}

// named says whether argv is the helper's. Package os would tell too, but its
// initialisation raises the limit of open files, which the program inherits.
func named() bool {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	var b [len(Name) + 2]byte
	n, _ := syscall.Read(fd, b[:])
	return n == len(Name)+1 && string(b[:len(Name)]) == Name
}

func main(h *Header) {
	// What a terminal or a parent sends to the process group is for the program,
	// and what the program sends to us must not end us. The steps give the
	// program its default actions back.
	for _, sig := range Ignored() {
		var sa [4]uint64
		sa[0] = 1 // SIG_IGN
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&sa)), 0, 8, 0, 0)
	}
	if !run(h, 0, h.Init) {
		report(h)
	}
	if orphaned() {
		exit(125)
	}
	pid := forkTarget(h)
	if h.Failed != 0 {
		report(h)
	}
	send(Packet{Kind: Running})
	go obey(h, pid)
	if h.Memory != 0 || h.Tasks != 0 {
		go watch(h)
	}
	status := reap(pid)
	ended.Store(true)
	if h.PIDNS == 0 {
		sweep()
	}
	send(Packet{Kind: Exited, A: uint32(status), B: overused.Load()})
	// In a PID namespace the kernel kills what is left when PID 1 ends.
	exit(0)
}

// Ignored lists the signals that the helper ignores: all that it can but the
// one that tells of children.
func Ignored() []syscall.Signal {
	var out []syscall.Signal
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig != syscall.SIGKILL && sig != syscall.SIGSTOP && sig != syscall.SIGCHLD {
			out = append(out, sig)
		}
	}
	return out
}

// run runs n steps from the first on. It is called in a forked child of a
// program with several threads, so it must not allocate, lock or grow its stack.
//
//go:nosplit
//go:norace
func run(h *Header, first, n uint64) bool {
	for i := first; i < first+n; i++ {
		s := (*Step)(unsafe.Add(unsafe.Pointer(h), h.Steps+i*uint64(unsafe.Sizeof(Step{}))))
		a := s.Args
		for j := range a {
			if s.Cells>>j&1 != 0 {
				a[j] = *(*uint64)(unsafe.Add(unsafe.Pointer(h), a[j]))
			}
		}
		r, _, errno := syscall.RawSyscall6(uintptr(s.Nr), uintptr(a[0]), uintptr(a[1]),
			uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]))
		if uint64(errno) == s.Want {
			if s.Dst != 0 {
				*(*uint64)(unsafe.Add(unsafe.Pointer(h), s.Dst)) = uint64(r)
			}
			continue
		}
		if errno != 0 && (uint64(errno) == s.Allow[0] || uint64(errno) == s.Allow[1]) {
			continue
		}
		if s.Skip < 0 {
			h.Errno = uint64(errno)
			h.Failed = i + 1
			return false
		}
		i += uint64(s.Skip)
	}
	return true
}

// cloneArgs is struct clone_args of clone3(2).
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// forkTarget forks the child that becomes the program and waits until it has
// executed it or failed. Only the child is restricted by its steps, so the
// helper stays able to reap and to report.
//
//go:norace
func forkTarget(h *Header) int {
	// A Go signal handler must not run in the child: its steps unblock.
	all := ^uint64(0)
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&all)), 0, 8, 0, 0)
	nr, a0, a1 := uintptr(syscall.SYS_CLONE), uintptr(syscall.CLONE_VFORK|syscall.SIGCHLD), uintptr(0)
	if h.Cgroup != 0 {
		const sysClone3, intoCgroup = 435, 0x200000000
		args := cloneArgs{flags: syscall.CLONE_VFORK | intoCgroup, exitSignal: uint64(syscall.SIGCHLD), cgroup: h.Cgroup}
		nr, a0, a1 = sysClone3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args)
	}
	pid, _, errno := syscall.RawSyscall6(nr, a0, a1, 0, 0, 0, 0)
	if errno != 0 {
		h.Errno = uint64(errno)
		h.Failed = h.Init + h.Target + 1
		return 0
	}
	if pid == 0 {
		run(h, h.Init, h.Target)
		for {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 125, 0, 0)
		}
	}
	return int(pid)
}

func report(h *Header) {
	send(Packet{Kind: Failed, A: uint32(h.Failed - 1), B: uint32(h.Errno)})
	exit(125)
}

func exit(code int) {
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
}

// send never blocks for long: the parent reads, and a parent that is gone
// gives an error that is of no interest any more.
func send(p Packet) {
	b := (*[unsafe.Sizeof(p)]byte)(unsafe.Pointer(&p))
	syscall.Sendto(SocketFD, b[:], syscall.MSG_NOSIGNAL, nil)
}

// obey sends signals that the parent asks for. The end of the socket is the
// end of the parent, however it died: nothing may outlive it.
func obey(h *Header, pid int) {
	for {
		var p Packet
		b := (*[unsafe.Sizeof(p)]byte)(unsafe.Pointer(&p))
		n, err := syscall.Read(SocketFD, b[:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n != len(b) {
			if h.PIDNS == 0 {
				sweep()
			}
			exit(125)
		}
		if p.Kind != Signal {
			continue
		}
		switch {
		case p.B == 0 && !ended.Load():
			syscall.Kill(pid, syscall.Signal(p.A))
		case p.B == 0:
		default:
			signalAll(h, syscall.Signal(p.A))
		}
	}
}

// ended says that the program is collected, and its number free for another.
var ended atomic.Bool

func signalAll(h *Header, sig syscall.Signal) {
	switch {
	case h.PIDNS != 0:
		syscall.Kill(-1, sig)
	case sig == syscall.SIGKILL:
		// One after the other: none may see another die and go on.
		signalTree(syscall.SIGSTOP)
		signalTree(sig)
	default:
		signalTree(sig)
	}
}

// orphaned says whether the parent died while the steps ran.
func orphaned() bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(SocketFD, b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == nil && n == 0
}

// reap collects every child until the program itself has ended.
func reap(pid int) syscall.WaitStatus {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, syscall.WALL|syscall.WUNTRACED|syscall.WCONTINUED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 125 << 8
		}
		switch {
		case got != pid:
		case ws.Stopped():
			// A shell that waits for the wrapper must see it stop too.
			send(Packet{Kind: Stopped, A: uint32(ws.StopSignal())})
		case ws.Continued():
			send(Packet{Kind: Stopped})
		default:
			return ws
		}
	}
}
