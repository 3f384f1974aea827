//go:build darwin || linux

package process

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
)

// Op is what a Check tries.
type Op int64

const (
	Read    Op = iota // open a file for reading
	Create            // make a file, which is removed again
	Connect           // connect to a TCP address, "127.0.0.1:9"
)

// Check is something that the helper inside tries before it becomes the program.
// A profile that the system read but does not enforce shows here, and only here.
type Check struct {
	What string // for people: "read a hidden file"
	Op   Op
	Path string        // the file or the address
	Want syscall.Errno // what it must fail with; 0 = it must work
}

// try runs a check and returns the error that it met.
func (c Check) try() syscall.Errno {
	switch c.Op {
	case Read:
		f, err := os.Open(c.Path)
		if err == nil {
			f.Close()
		}
		return errno(err)
	case Create:
		f, err := os.OpenFile(c.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			f.Close()
			err = os.Remove(c.Path)
		}
		return errno(err)
	case Connect:
		return connect(c.Path)
	}
	return syscall.EINVAL
}

// connect tries a TCP connection. Package net would do more than that.
func connect(address string) syscall.Errno {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !addr.Addr().Is4() {
		return syscall.EINVAL
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return errno(err)
	}
	defer syscall.Close(fd)
	return errno(syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}))
}

// errno is the system's error in err; EIO stands for one that is not the
// system's.
func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	var n syscall.Errno
	if errors.As(err, &n) {
		return n
	}
	return syscall.EIO
}
