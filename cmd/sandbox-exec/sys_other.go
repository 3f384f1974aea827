//go:build !linux && !darwin

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func descriptorFlags(int) (int, error) { return 0, errors.ErrUnsupported }

func foregroundGroup(*os.File) (int, error) { return 0, errors.ErrUnsupported }

func isTerminal(*os.File) bool { return false }

func columns(*os.File) int { return 80 }

func terminalSession() string { return "" }

func dropTyped(*os.File) {}

func die(sig syscall.Signal) {
	if sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGHUP || sig == syscall.SIGKILL {
		signal.Reset(sig)
		syscall.Kill(os.Getpid(), sig)
		time.Sleep(100 * time.Millisecond)
	}
	os.Exit(128 + int(sig))
}
