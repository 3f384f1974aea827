package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// selfExe leads to this program, even where it was replaced meanwhile.
func selfExe() string { return "/proc/self/exe" }

// closeInherited closes what the caller left open for us and nobody has asked
// for: all that is not closed on exec, as what Go opens is.
func closeInherited() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := descriptorFlags(fd); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// letGo puts /dev/null in the place of stdin, stdout and stderr.
func letGo() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return nil
}

// terminalSession names the session that we are in, of a shell at a terminal or
// of what started us without one. Its leader's process id alone can be
// another's later, so the time when that began and the boot are in the name. ""
// where the leader has gone.
func terminalSession() string {
	leader, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", leader))
	if err != nil {
		return ""
	}
	// Behind the name, which may hold anything, the start is the 20th field
	// (proc_pid_stat(5), starttime).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(fields) < 20 {
		return ""
	}
	return fmt.Sprintf("terminal-%d-%s-%s", leader, fields[19], strings.TrimSpace(string(boot)))
}

// dropTyped forgets what was typed before a question was shown, which cannot
// be an answer to it.
func dropTyped(tty *os.File) {
	unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}

// die ends the process by sig, as the command ended, so that a shell sees the
// signal (and ends a loop after ^C). The Go runtime would handle some signals
// with a trace of its goroutines, so its handler is replaced with the default
// action (rt_sigaction(2)). The core was the command's to dump: a process that
// is not dumpable leaves none (core(5)).
func die(sig syscall.Signal) {
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	var action struct{ handler, flags, restorer, mask uint64 } // SIG_DFL
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
	unix.Kill(os.Getpid(), sig)
	// PID 1 of a container does not die of its own signals, pid_namespaces(7).
	time.Sleep(100 * time.Millisecond)
	os.Exit(128 + int(sig))
}
