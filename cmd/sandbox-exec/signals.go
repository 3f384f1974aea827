package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/runner"
)

// passed are the signals that go on to the command. Those that stop a process
// are not among them: they stop us as they stop any process, and a terminal
// stops the command at the same time.
var passed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH,
}

// relay passes signals on to a task once there is one; before, the first one
// cancels the start.
type relay struct {
	mu     sync.Mutex
	task   *runner.Task
	first  syscall.Signal
	cancel context.CancelFunc
}

// watchSignals begins to take signals. Those that we were started to ignore
// (nohup(1)) stay ignored, for us and for the command.
func watchSignals(ctx context.Context) (context.Context, *relay) {
	ctx, cancel := context.WithCancel(ctx)
	r := &relay{cancel: cancel}
	ch := make(chan os.Signal, 16)
	for _, sig := range passed {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	go func() {
		for sig := range ch {
			r.take(sig.(syscall.Signal))
		}
	}()
	return ctx, r
}

func (r *relay) take(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.task != nil {
		if !fromTerminal(sig) {
			r.task.Signal(sig)
		}
		return
	}
	if sig == syscall.SIGWINCH {
		return
	}
	if r.first == 0 {
		r.first = sig
	}
	r.cancel()
}

// to names the task that gets the signals from now on.
func (r *relay) to(t *runner.Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.task = t
	go follow(t)
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

// got is the signal that cancelled the start, or 0.
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
