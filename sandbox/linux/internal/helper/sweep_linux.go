package helper

import (
	"syscall"
	"unsafe"
)

// Without a PID namespace the helper is the subreaper of the tree: whatever
// loses its parent becomes the helper's child.

// sweep kills the helper's descendants until none is left. It can lose against
// a process that forks faster than it is found; a process cap bounds that.
//
//go:norace
func sweep() {
	for range 10_000 {
		if !collect() {
			return
		}
		// None may see another die and go on.
		signalTree(syscall.SIGSTOP)
		signalTree(syscall.SIGKILL)
		nap := [2]uint64{0, 500_000} // struct timespec
		if collect() {
			syscall.RawSyscall6(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&nap)), 0, 0, 0, 0, 0)
		}
	}
}

// collect reaps what is dead and says whether a child is left.
//
//go:norace
func collect() bool {
	const all = 0x40000000 // __WALL
	for {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), 0, syscall.WNOHANG|all, 0, 0, 0)
		if errno != 0 {
			return false
		}
		if pid == 0 {
			return true
		}
	}
}

// Buffers of functions that have no stack for them.
var (
	entries [4096]byte // of a directory
	stat    [512]byte  // start of /proc/PID/stat: number, name, state and parent
	name    [32]byte
)

// Files of the process file system. There is no working directory that is.
var (
	procDir = [...]byte{'/', 'p', 'r', 'o', 'c', 0}
	statEnd = [...]byte{'/', 's', 't', 'a', 't', 0}
)

// signalTree signals every descendant.
//
//go:norace
//go:nocheckptr
func signalTree(sig syscall.Signal) {
	const directory = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_CLOEXEC
	self, _, _ := syscall.RawSyscall6(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	proc, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, 0, uintptr(unsafe.Pointer(&procDir)), directory, 0, 0, 0)
	if errno != 0 {
		return
	}
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_GETDENTS64, proc,
			uintptr(unsafe.Pointer(&entries)), unsafe.Sizeof(entries), 0, 0, 0)
		if errno != 0 || n == 0 {
			break
		}
		// struct linux_dirent64 (getdents64(2)): its size is at 16, its name at 19.
		for at := uintptr(0); at < n; {
			entry := unsafe.Add(unsafe.Pointer(&entries), at)
			pid := number(unsafe.Add(entry, 19))
			if pid != 0 && pid != self && descends(proc, pid, self) {
				syscall.RawSyscall6(syscall.SYS_KILL, pid, uintptr(sig), 0, 0, 0, 0)
			}
			at += uintptr(*(*uint16)(unsafe.Add(entry, 16)))
		}
	}
	syscall.RawSyscall6(syscall.SYS_CLOSE, proc, 0, 0, 0, 0, 0)
}

// descends says whether a process is below another. One that is dead counts:
// where only its first thread has ended, the kernel says the same of it.
//
//go:norace
func descends(proc, pid, ancestor uintptr) bool {
	for range 4096 {
		pid = parent(proc, pid)
		if pid == ancestor {
			return true
		}
		if pid <= 1 {
			return false
		}
	}
	return false
}

// parent reads the parent of a process from /proc/PID/stat (proc_pid_stat(5)).
// It is 0 if there is none.
//
//go:norace
//go:nocheckptr
func parent(proc, pid uintptr) uintptr {
	at := len(name) - len(statEnd)
	for i := range len(statEnd) {
		name[at+i] = statEnd[i]
	}
	for ; pid > 0; pid /= 10 {
		at--
		name[at] = byte('0' + pid%10)
	}
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, proc,
		uintptr(unsafe.Pointer(&name[at])), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	n, _, errno := syscall.RawSyscall6(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&stat)), unsafe.Sizeof(stat)-1, 0, 0, 0)
	syscall.RawSyscall6(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	stat[n] = 0
	// The name stands in parentheses and may hold any byte, but what follows
	// holds no other parenthesis: look from the end.
	i := int(n)
	for i > 0 && stat[i] != ')' {
		i--
	}
	if i == 0 || i+4 >= int(n) {
		return 0
	}
	return number(unsafe.Pointer(&stat[i+4]))
}

// number reads the digits at p. It is 0 if there is none.
//
//go:norace
//go:nocheckptr
func number(p unsafe.Pointer) uintptr {
	n := uintptr(0)
	for {
		c := *(*byte)(p)
		if c < '0' || c > '9' {
			return n
		}
		n = n*10 + uintptr(c-'0')
		p = unsafe.Add(p, 1)
	}
}
