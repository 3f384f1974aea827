//go:build linux

package linux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// The first thread stays that of the main function where it is to be ended.
	if strings.HasPrefix(os.Getenv(probeEnv), "leaderless\x01") {
		runtime.LockOSThread()
	}
	probes["closed"] = func(a []string) error {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		return probes[a[0]](a[1:])
	}
	// Does a probe in a process whose first thread has ended, and which to many
	// looks as if it were dead.
	probes["leaderless"] = func(a []string) error {
		go func() {
			for ended := false; !ended; time.Sleep(time.Millisecond) {
				b, err := os.ReadFile("/proc/self/stat")
				if ended = err == nil && strings.Contains(string(b), ") Z "); err != nil {
					os.Exit(1)
				}
			}
			if probes[a[0]](a[1:]) != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}()
		_, _, errno := syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
		return errno
	}
}

// linger waits for the milliseconds that may be in a.
func linger(a []string) {
	if len(a) > 0 {
		ms, _ := strconv.Atoi(a[0])
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
}

// probes really do what a confined program may or may not do.
var probes = map[string]func(args []string) error{
	"read": func(a []string) error { _, err := os.ReadFile(a[0]); return err },
	"list": func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	"content": func(a []string) error {
		b, err := os.ReadFile(a[0])
		if err == nil && string(b) != a[1] {
			err = fmt.Errorf("content %q", b)
		}
		return err
	},
	"write":    func(a []string) error { return os.WriteFile(a[0], []byte("probe"), 0o600) },
	"append":   func(a []string) error { f, err := os.OpenFile(a[0], os.O_APPEND|os.O_WRONLY, 0); f.Close(); return err },
	"truncate": func(a []string) error { return os.Truncate(a[0], 0) },
	"mkdir":    func(a []string) error { return os.Mkdir(a[0], 0o700) },
	"remove":   func(a []string) error { return os.Remove(a[0]) },
	"rename":   func(a []string) error { return os.Rename(a[0], a[1]) },
	"link":     func(a []string) error { return os.Link(a[0], a[1]) },
	"chmod":    func(a []string) error { return os.Chmod(a[0], 0o600) },
	"utimes":   func(a []string) error { return os.Chtimes(a[0], time.Now(), time.Now()) },
	"fifo":     func(a []string) error { return unix.Mkfifo(a[0], 0o600) },
	"mknod":    func(a []string) error { return unix.Mknod(a[0], unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	"mount":    func(a []string) error { return unix.Mount("tmpfs", a[0], "tmpfs", 0, "") },
	"umount":   func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
	"userns":   func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"dial": func(a []string) error {
		c, err := net.DialTimeout(a[0], a[1], 2*time.Second)
		if err == nil {
			_, err = c.Write([]byte("x"))
			if err == nil && a[0] == "udp" {
				time.Sleep(50 * time.Millisecond)
				_, err = c.Write([]byte("x")) // an ICMP refusal shows at the second write
			}
			c.Close()
		}
		return err
	},
	"contained": func(a []string) error {
		errno := map[string]syscall.Errno{"EPERM": unix.EPERM, "ENOSYS": unix.ENOSYS}[a[0]]
		if err := refuseNamespaces(errno); err != nil {
			return err
		}
		return contained(a[1], a[2])
	},
	"masked": func(a []string) error { return contained(a[0]) },
	"unixserve": func(a []string) error {
		l, err := net.Listen("unix", a[0])
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := net.Dial("unix", a[0])
		if err == nil {
			c.Close()
		}
		return err
	},
	"serve": func([]string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				c.Write([]byte("pong"))
				c.Close()
			}
		}()
		c, err := net.DialTimeout("tcp", l.Addr().String(), 2*time.Second)
		if err != nil {
			return err
		}
		b := make([]byte, 4)
		if _, err := c.Read(b); err != nil || string(b) != "pong" {
			return fmt.Errorf("%q, %v", b, err)
		}
		return nil
	},
	"kill": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		return syscall.Kill(pid, 0)
	},
	"environ": func(a []string) error { _, err := os.ReadFile("/proc/" + a[0] + "/environ"); return err },
	"fds": func([]string) error {
		// The Go runtime keeps its own cgroup's files open.
		for fd := 3; fd < 400; fd++ {
			if p, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && p[0] == '/' && !strings.HasPrefix(p, "/sys/fs/cgroup/") && !strings.HasPrefix(p, "/proc/") {
				return fmt.Errorf("descriptor %d is %s", fd, p)
			}
		}
		return nil
	},
	"caps": func([]string) error {
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		fmt.Print(string(b))
		return nil
	},
	"forks": func(a []string) error {
		// At most so many: the parent has a cap, and each child ends by itself.
		n, _ := strconv.Atoi(a[0])
		for i := range n {
			_, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "1"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
			if err != nil {
				return fmt.Errorf("after %d: %w", i, err)
			}
		}
		return nil
	},
	"memory": func(a []string) error {
		if len(a) > 2 {
			groups := make([]int, 3000)
			for i := range groups {
				groups[i] = i + 1
			}
			if err := syscall.Setgroups(groups); err != nil {
				return err
			}
		}
		n, _ := strconv.Atoi(a[0])
		b := make([]byte, n)
		for i := 0; i < n; i += 4096 {
			b[i] = 1
		}
		linger(a[1:])
		b[0] = 2
		return nil
	},
	"fill": func(a []string) error {
		n, _ := strconv.Atoi(a[1])
		err := os.WriteFile(a[0], make([]byte, n), 0o600)
		debug.FreeOSMemory()
		linger(a[2:])
		return err
	},
	"beat": func(a []string) error {
		for range 300 {
			f, err := os.OpenFile(a[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			f.WriteString("x")
			f.Close()
			time.Sleep(10 * time.Millisecond)
		}
		return os.WriteFile(a[1], nil, 0o600)
	},
	"nothing": func([]string) error { return nil },
	"fail":    func([]string) error { return errors.New("failed") },
}
