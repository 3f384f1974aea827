//go:build darwin || linux

package process

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Guarded: a program that is not one of our helpers goes on to its own main
// after a look at its arguments.
func init() {
	if len(os.Args) == 1 && os.Args[0] == outsideName && isSocket() {
		outside(os.NewFile(socketFD, "parent"))
		os.Exit(failedStatus)
	}
	if len(os.Args) == 2 && os.Args[1] == insideName && isSocket() {
		inside(os.NewFile(socketFD, "helper"))
		os.Exit(failedStatus)
	}
}

// failedStatus is what a helper exits with that has told why, or whose parent is
// gone.
const failedStatus = 125

// isSocket says whether a helper's socket is where it must be.
func isSocket() bool {
	typ, err := unix.GetsockoptInt(socketFD, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || typ != unix.SOCK_STREAM {
		return false
	}
	unix.CloseOnExec(socketFD)
	return true
}

// awaitStart reads the request. The parent gives up by closing its end.
func awaitStart(sock io.Reader) (request, bool) {
	m, err := receive(sock)
	if err != nil || m.kind != start {
		return request{}, false
	}
	r, err := decode(m.body)
	return r, err == nil
}

// Steps of a start that can fail, as message failed names them.
const (
	stepDescriptors = iota // close what is not the program's
	stepTrack              // watch the tree
	stepTool               // start what applies the profile
	stepCheck              // body: what was checked; n[2]: the error that it must give
	stepLimit              // set a limit of the process; body: which
	stepExec               // execute the program
)

func fail(sock io.Writer, step int64, err error, what string, want syscall.Errno) {
	send(sock, message{kind: failed, n: [5]int64{step, int64(errno(err)), int64(want)}, body: []byte(what)})
}

// inside is the helper in the sandbox. It returns only if it cannot become the
// program.
func inside(sock *os.File) {
	r, ok := awaitStart(sock)
	if !ok {
		return
	}
	for _, c := range r.checks {
		if got := c.try(); got != c.Want {
			fail(sock, stepCheck, got, c.What, c.Want)
			return
		}
	}
	// The helper outside must be there to look after the program.
	if send(sock, message{kind: held}) != nil {
		return
	}
	if m, err := receive(sock); err != nil || m.kind != goOn {
		return
	}
	for _, l := range []struct {
		name     string
		resource int
		limit    int64
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, -1},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, r.openFiles},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, r.fileSize},
	} {
		if err := lower(l.resource, l.limit); err != nil {
			fail(sock, stepLimit, err, l.name, 0)
			return
		}
	}
	sock, err := arrange(r.keep)
	if err != nil {
		fail(sock, stepDescriptors, err, "", 0)
		return
	}
	err = syscall.Exec(r.path, r.args, r.env)
	fail(sock, stepExec, err, "", 0)
}

// lower sets a limit, soft and hard, to at most what it is. 0 leaves it, -1
// leaves nothing of it.
func lower(resource int, limit int64) error {
	if limit == 0 {
		return nil
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	to := min(uint64(max(limit, 0)), now.Max)
	// Package syscall, not unix: it remembers that the number of open files is
	// not to be set back when the program is executed.
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: to, Max: to})
}

// arrange gives the program its stderr, and the descriptors that it keeps under
// their numbers: entry i of keep is number 3+i. It returns the socket, which had
// to move out of their way and is the last word if the program cannot be
// executed.
func arrange(keep []bool) (*os.File, error) {
	sock := os.NewFile(socketFD, "helper")
	above := insideFirstFD + len(keep)
	moved, err := unix.FcntlInt(socketFD, unix.F_DUPFD_CLOEXEC, above)
	if err != nil {
		return sock, err
	}
	sock = os.NewFile(uintptr(moved), "helper")
	for fd := socketFD; fd < above; fd++ {
		unix.CloseOnExec(fd)
	}
	if err := dup(stderrFD, 2); err != nil {
		return sock, err
	}
	for i, kept := range keep {
		if !kept {
			continue
		}
		// Ascending, and each to a lower number: none is overwritten before it
		// was copied.
		if err := dup(insideFirstFD+i, 3+i); err != nil {
			return sock, err
		}
	}
	return sock, nil
}
