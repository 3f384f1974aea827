package darwin

import (
	"bytes"
	"os"
	"sync"
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
	if name, err := nameOf(fd); err == nil {
		return name
	}
	return file
}

// pathBuffer is where fcntl(2) writes. It never moves, as something on a stack
// may: fcntl is given its address as a number.
var pathBuffer struct {
	sync.Mutex
	bytes [unix.PathMax]byte
}

// nameOf is the path of what a descriptor is open on. Pipes and sockets have
// none.
func nameOf(fd int) (string, error) {
	pathBuffer.Lock()
	defer pathBuffer.Unlock()
	clear(pathBuffer.bytes[:])
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETPATH, int(uintptr(unsafe.Pointer(&pathBuffer.bytes)))); err != nil {
		return "", os.NewSyscallError("fcntl F_GETPATH", err)
	}
	name, _, _ := bytes.Cut(pathBuffer.bytes[:], []byte{0})
	if len(name) == 0 || name[0] != '/' {
		return "", unix.ENOENT
	}
	return string(name), nil
}
