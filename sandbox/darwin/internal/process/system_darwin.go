package process

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// continuedStatus is the status of wait4(2) for a process that goes on
	// (sys/wait.h, WIFCONTINUED). Package syscall takes another one for it.
	continuedStatus = 0x137f
	// maxrssUnit is what ru_maxrss of getrusage(2) counts in.
	maxrssUnit = 1
)

func dup(from, to int) error { return unix.Dup2(from, to) }

// processes lists all processes.
func processes() ([]entry, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, os.NewSyscallError("sysctl kern.proc.all", err)
	}
	table := make([]entry, 0, len(list))
	for i := range list {
		k := &list[i]
		p := entry{
			pid: int(k.Proc.P_pid), parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid),
			start: k.Proc.P_starttime.Nano(), zombie: k.Proc.P_stat == zombie,
		}
		// The list has no more than an address for the session. A process that
		// is gone by now has none.
		p.session, _ = unix.Getsid(p.pid)
		table = append(table, p)
	}
	return table, nil
}

const zombie = 5 // SZOMB, sys/proc.h

// Footprint is the memory of a process in bytes as the system charges it: what is
// compressed or swapped out counts, what is shared with others does not
// (footprint(1)). The process list has no figure for memory, and resident memory
// leaves out what is compressed.
func Footprint(pid int) (int64, error) {
	// struct rusage_info_v0, sys/resource.h
	var info struct {
		_         [16]byte  // ri_uuid
		_         [7]uint64 // ri_user_time … ri_resident_size
		footprint uint64    // ri_phys_footprint
		_         [2]uint64
	}
	const flavor = 0 // RUSAGE_INFO_V0
	_, _, errno := syscallSyscall(procPidRusageAddr, uintptr(pid), flavor, uintptr(unsafe.Pointer(&info)))
	if errno != 0 {
		return 0, os.NewSyscallError("proc_pid_rusage", errno)
	}
	return int64(info.footprint), nil
}

// procPidRusageAddr is the address of proc_pid_rusage in libSystem, which
// libproc.h declares and x/sys/unix does not have. The symbol is bound as x/sys
// binds its own, without cgo.
var procPidRusageAddr uintptr

//go:cgo_import_dynamic libc_proc_pid_rusage proc_pid_rusage "/usr/lib/libSystem.B.dylib"

// UserTmp is the user's temporary directory, which some programs of the system
// use whatever TMPDIR says; "" = unknown.
func UserTmp() string {
	const name = 65537 // _CS_DARWIN_USER_TEMP_DIR, unistd.h
	var buf [1024]byte // PATH_MAX
	n, _, _ := syscallSyscall(confstrAddr, name, uintptr(unsafe.Pointer(&buf)), uintptr(len(buf)))
	if n == 0 || n > uintptr(len(buf)) {
		return ""
	}
	return string(buf[:n-1]) // the last byte is 0
}

// confstrAddr is the address of confstr(3).
var confstrAddr uintptr

//go:cgo_import_dynamic libc_confstr confstr "/usr/lib/libSystem.B.dylib"

//go:linkname syscallSyscall syscall.syscall
func syscallSyscall(fn, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno)

// forks tells of processes that fork (kqueue(2), EVFILT_PROC). NOTE_TRACK, which
// would follow the children too, is not there on macOS.
type forks struct{ queue int }

func newForks() (*forks, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(queue)
	return &forks{queue}, nil
}

// add begins to tell of a process. One that is gone already forks no more.
func (f *forks) add(pid int) {
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_CLEAR)
	change[0].Fflags = unix.NOTE_FORK | unix.NOTE_EXIT
	unix.Kevent(f.queue, change[:], nil, nil)
}

// wait returns when a process of them forked or ended, or after d.
func (f *forks) wait(d time.Duration) {
	var events [64]unix.Kevent_t
	timeout := unix.NsecToTimespec(int64(d))
	if _, err := unix.Kevent(f.queue, nil, events[:], &timeout); err != nil && err != unix.EINTR {
		time.Sleep(d) // a queue that does not work must not make us spin
	}
}
