package helper

import (
	"syscall"
	"unsafe"
)

// Guarded: a program that is not our helper goes on to its own main after one
// failed system call.
func init() {
	if onSocket() && named() {
		bare()
	}
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

// onSocket says whether there is a socket to a parent.
//
//go:norace
func onSocket() bool {
	typ, size := uint32(0), uint32(4)
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, SocketFD, syscall.SOL_SOCKET, syscall.SO_TYPE,
		uintptr(unsafe.Pointer(&typ)), uintptr(unsafe.Pointer(&size)), 0)
	return errno == 0 && typ == syscall.SOCK_SEQPACKET
}

// serve is all of the helper's life. Name and socket have said that this is
// one, so there is no way back.
//
//go:norace
func serve() {
	var p Packet
	if !receive(&p) || p.Kind != Begin {
		exit(125)
	}
	blockSignals(p.B)
	// A child of our parent goes on, single-threaded whatever this process is,
	// and in new namespaces, which only a new process enters all at once.
	const cloneParent = 0x8000
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(p.A)|cloneParent|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		send(Failed, CloneFailed, uint32(errno))
		exit(125)
	case pid != 0:
		send(Cloned, uint32(pid), 0)
		exit(0)
	}
	// The parent compiles while this happens, and gives up by closing its end.
	if !receive(&p) || p.Kind != Start {
		exit(125)
	}
	h := block()
	if !run(h, 0, h.Init) {
		fail(h)
	}
	if orphaned() {
		exit(125)
	}
	signals := childSignals(h)
	program := fork(h)
	send(Running, 0, 0)
	status, ended := supervise(h, signals, program)
	if h.PIDNS == 0 {
		sweep()
	}
	if !ended {
		exit(125)
	}
	send(Exited, status, 0)
	// In a PID namespace the kernel kills what is left when PID 1 ends.
	exit(0)
}

// block maps the block.
//
//go:norace
func block() *Header {
	size, _, errno := syscall.RawSyscall6(syscall.SYS_LSEEK, BlockFD, 0, 2, 0, 0, 0) // SEEK_END
	if errno != 0 || size < unsafe.Sizeof(Header{}) || size > 1<<30 {
		exit(125)
	}
	const mapFixedNoReplace = 0x100000
	addr, _, errno := syscall.RawSyscall6(syscall.SYS_MMAP, Base, size,
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|mapFixedNoReplace, BlockFD, 0)
	if errno != 0 || addr != Base {
		exit(125)
	}
	h := *(**Header)(unsafe.Pointer(&addr))
	if h.Magic != Magic || h.Size != uint64(size) {
		exit(125)
	}
	return h
}

// blockSignals keeps every signal from the helper: what a terminal or a parent
// sends to the process group is for the program, what the program sends must not
// end us, no handler of a runtime may run in a process that was cloned from it,
// and children are told of by a descriptor. The steps of the program give it the
// caller's mask. What the caller ignores stays ignored, which a runtime has
// changed.
//
//go:norace
func blockSignals(ignored uint32) {
	all := ^uint64(0)
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&all)), 0, 8, 0, 0) // SIG_SETMASK
	var action [4]uint64                                                                          // SIG_DFL: the children of who ignores SIGCHLD leave no status
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	action[0] = 1 // SIG_IGN
	for sig := syscall.Signal(1); sig <= 32; sig++ {
		if ignored>>(sig-1)&1 != 0 && sig != syscall.SIGCHLD {
			syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		}
	}
}

// run runs n steps from the first on.
//
//go:norace
//go:nocheckptr
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

// fail tells which step failed.
//
//go:norace
func fail(h *Header) {
	send(Failed, uint32(h.Failed-1), uint32(h.Errno))
	exit(125)
}

// childSignals is a descriptor that can be read when a child changes state.
//
//go:norace
func childSignals(h *Header) uintptr {
	const flags = syscall.O_CLOEXEC | syscall.O_NONBLOCK // SFD_CLOEXEC, SFD_NONBLOCK
	mask := uint64(1) << (syscall.SIGCHLD - 1)
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&mask)), 8, flags, 0, 0)
	if errno != 0 {
		send(Failed, ForkFailed, uint32(errno))
		exit(125)
	}
	return fd
}

// cloneArgs is struct clone_args of clone3(2).
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// fork forks the child that becomes the program and waits until it has executed
// it or failed. Only the child is restricted by its steps, so the helper stays
// able to reap and to report.
//
//go:norace
func fork(h *Header) uintptr {
	var pid uintptr
	var errno syscall.Errno
	if h.Cgroup == 0 {
		pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, syscall.CLONE_VFORK|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	} else {
		const sysClone3, intoCgroup = 435, 0x200000000
		args := cloneArgs{flags: syscall.CLONE_VFORK | intoCgroup, exitSignal: uint64(syscall.SIGCHLD), cgroup: h.Cgroup}
		pid, _, errno = syscall.RawSyscall6(sysClone3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0, 0, 0, 0)
	}
	if errno != 0 {
		send(Failed, ForkFailed, uint32(errno))
		exit(125)
	}
	if pid == 0 {
		run(h, h.Init, h.Target)
		exit(125)
	}
	if h.Failed != 0 {
		fail(h)
	}
	return pid
}

// supervise reaps and obeys until the program has ended, or the parent has,
// however it died: nothing may outlive it.
//
//go:norace
func supervise(h *Header, signals, program uintptr) (status uint32, ended bool) {
	const readable = 1 // POLLIN
	type pollFD struct {
		fd              int32
		events, revents int16
	}
	for {
		fds := [2]pollFD{{fd: SocketFD, events: readable}, {fd: int32(signals), events: readable}}
		syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 2, 0, 0, 8, 0)
		if fds[1].revents != 0 {
			var info [128]byte // struct signalfd_siginfo
			syscall.RawSyscall6(syscall.SYS_READ, signals, uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0, 0, 0)
			if status, ended := reap(program); ended {
				return status, true
			}
		}
		if fds[0].revents != 0 {
			var p Packet
			if !receive(&p) {
				return 0, false
			}
			obey(h, &p, program)
		}
	}
}

// obey sends the signal that the parent asks for. The program is not yet
// collected, so that its number is its own.
//
//go:norace
func obey(h *Header, p *Packet, program uintptr) {
	switch {
	case p.Kind != Signal:
	case p.B == 0:
		syscall.RawSyscall6(syscall.SYS_KILL, program, uintptr(p.A), 0, 0, 0, 0)
	case h.PIDNS != 0: // elsewhere -1 would mean all that is the user's
		syscall.RawSyscall6(syscall.SYS_KILL, ^uintptr(0), uintptr(p.A), 0, 0, 0, 0)
	}
}

// reap collects every child that has changed state and says whether the program
// itself has ended.
//
//go:norace
func reap(program uintptr) (status uint32, ended bool) {
	const all = 0x40000000 // __WALL
	for {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)),
			syscall.WNOHANG|syscall.WUNTRACED|syscall.WCONTINUED|all, 0, 0, 0)
		if errno != 0 || pid == 0 {
			return 0, false
		}
		if pid != program {
			continue
		}
		// A shell that waits for the wrapper must see the program stop too.
		switch ws := syscall.WaitStatus(status); {
		case ws.Stopped():
			send(Stopped, uint32(ws.StopSignal()), 0)
		case ws.Continued():
			send(Stopped, 0, 0)
		default:
			return status, true
		}
	}
}

// receive waits for a packet of the parent. It is false when the parent is gone.
//
//go:norace
func receive(p *Packet) bool {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_READ, SocketFD, uintptr(unsafe.Pointer(p)), unsafe.Sizeof(*p), 0, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0 && n == unsafe.Sizeof(*p)
		}
	}
}

// send never blocks for long: the parent reads, and a parent that is gone
// gives an error that is of no interest any more.
//
//go:norace
func send(kind, a, b uint32) {
	p := Packet{Kind: kind, A: a, B: b}
	syscall.RawSyscall6(syscall.SYS_SENDTO, SocketFD, uintptr(unsafe.Pointer(&p)), unsafe.Sizeof(p), syscall.MSG_NOSIGNAL, 0, 0)
}

// orphaned says whether the parent died while the steps ran.
//
//go:norace
func orphaned() bool {
	var b [1]byte
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, SocketFD, uintptr(unsafe.Pointer(&b)), 1,
		syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return errno == 0 && n == 0
}

//go:norace
func exit(code uintptr) {
	for {
		syscall.RawSyscall6(syscall.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
	}
}
