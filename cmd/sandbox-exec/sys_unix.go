//go:build linux || darwin

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

func descriptorFlags(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0) }

func foregroundGroup(tty *os.File) (int, error) {
	return unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
}

// columns is the width of a terminal; 80 where it does not say.
func columns(tty *os.File) int {
	size, err := unix.IoctlGetWinsize(int(tty.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}
