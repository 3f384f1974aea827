package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA)
	return err == nil
}

// terminalSession names the session that we are in by its leader and the time
// when that began: the process id alone can be another's later. "" where the
// leader has gone.
func terminalSession() string {
	leader, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", leader)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("terminal-%d-%d", leader, info.Proc.P_starttime.Nano())
}

// dropTyped forgets what was typed before a question was shown, which cannot
// be an answer to it.
func dropTyped(tty *os.File) {
	const in = 1 // FREAD, tty(4)
	unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, in)
}

// die ends the process by sig, as the command ended, so that a shell sees the
// signal (and ends a loop after ^C). No core is left: that was the command's. Of
// a signal that the Go runtime answers with a trace only the status is passed on.
func die(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE:
		syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		signal.Reset(sig)
		syscall.Kill(os.Getpid(), sig)
		time.Sleep(100 * time.Millisecond)
	}
	os.Exit(128 + int(sig))
}
