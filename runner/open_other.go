//go:build !linux

package runner

import "golang.org/x/sys/unix"

// dirFlags open a directory to look names up in it.
const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
