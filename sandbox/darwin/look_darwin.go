package darwin

import (
	"bytes"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func lookAt(file string) (target string, isLink bool, err error) { return readlink(file) }

// stored is the name by which the kernel calls what file names: with firmlinks
// resolved, and letters as they are stored on the volume. The file itself where
// the kernel does not say.
func stored(file string) string {
	fd, err := unix.Open(file, unix.O_EVTONLY|unix.O_SYMLINK|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return file
	}
	defer unix.Close(fd)
	var buf [maxPath]byte
	if _, _, errno := syscall.Syscall(unix.SYS_FCNTL, uintptr(fd), unix.F_GETPATH, uintptr(unsafe.Pointer(&buf[0]))); errno != 0 {
		return file
	}
	if name, _, ok := bytes.Cut(buf[:], []byte{0}); ok && len(name) > 0 && name[0] == '/' {
		return string(name)
	}
	return file
}
