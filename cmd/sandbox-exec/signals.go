package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/runner"
)

// passed are the signals that go on to the command. Those that stop a process
// are not among them: they stop us as they stop any process, and a terminal
// stops the command at the same time.
var passed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT,
}

// relay passes signals on to a task once there is one; before, the first one
// cancels the start. The call of a tool it ends: by SIGINT as a person does, by
// others as a program does, and at once by the second.
type relay struct {
	mu     sync.Mutex
	tool   bool
	task   *runner.Task
	first  syscall.Signal
	cancel context.CancelFunc
}

// watchSignals begins to take signals. Those that we were started to ignore
// (nohup(1)) stay ignored, for us and for the command.
func watchSignals(ctx context.Context, tool bool) (context.Context, *relay) {
	ctx, cancel := context.WithCancel(ctx)
	r := &relay{cancel: cancel, tool: tool}
	ch := make(chan os.Signal, 16)
	// Each signal costs a switch of threads. Until it is taken it ends us, and
	// with us the command.
	go func() {
		for _, sig := range passed {
			if !signal.Ignored(sig) {
				signal.Notify(ch, sig)
			}
		}
		for sig := range ch {
			r.take(sig.(syscall.Signal))
		}
	}()
	return ctx, r
}

func (r *relay) take(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.task != nil && r.tool {
		r.end(sig)
		return
	}
	if r.task != nil {
		if !fromTerminal(sig) {
			r.task.Signal(sig)
		}
		return
	}
	if sig == syscall.SIGWINCH || sig == syscall.SIGCONT {
		return
	}
	if r.first == 0 {
		r.first = sig
	}
	r.cancel()
}

// end ends the task of a tool's call.
func (r *relay) end(sig syscall.Signal) {
	switch {
	case !ends(sig):
		r.task.Signal(sig)
	case r.first != 0:
		r.task.Kill()
	default:
		r.first = sig
		r.task.Cancel(canceller(sig, true))
	}
}

// ends says whether a signal asks a tool's call to end.
func ends(sig syscall.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// canceller is who cancels by a signal.
func canceller(sig syscall.Signal, tool bool) runner.Cause {
	if tool && sig == syscall.SIGINT {
		return runner.CancelledByUser
	}
	return runner.Cancelled
}

// settle says that a person cancelled where ^C ended the command before us: a
// terminal sends it to both.
func (r *relay) settle(result *runner.Result) {
	interrupted := result.Signal == syscall.SIGINT || result.ExitCode == 128+int(syscall.SIGINT)
	if !interrupted || result.Cause != runner.Signalled && result.Cause != runner.Exited {
		return
	}
	// Ours may still be on its way.
	for range 10 {
		if r.got() == syscall.SIGINT {
			result.Cause = runner.CancelledByUser
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// to names the task that gets the signals from now on.
func (r *relay) to(t *runner.Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.task = t
	if !r.tool { // there the time-out has to run on
		go follow(t)
	}
}

// follow stops us when the command has stopped itself, as vim does for ^Z, so
// that the shell which waits for us takes the terminal back. Without a terminal
// there is no such shell, and our time-out has to run on.
func follow(t *runner.Task) {
	for range t.Stopped() {
		if inForeground() {
			syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
			t.Signal(syscall.SIGCONT) // the shell may have meant us alone
		}
	}
}

// got is the signal that cancelled the start or a tool's call, or 0.
func (r *relay) got() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

// fromTerminal reports whether the terminal sent sig to our whole process
// group, so that the command, which is in it, has it already. What the kernel
// knows of the sender does not reach a Go program: a SIGINT or SIGQUIT that
// somebody else sends to us alone, while we are in the foreground, is taken for
// the terminal's.
func fromTerminal(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
	default:
		return false
	}
	return inForeground()
}

func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := foregroundGroup(tty)
	return err == nil && group == syscall.Getpgrp()
}
