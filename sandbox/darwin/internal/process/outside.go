//go:build darwin || linux

package process

import (
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisor is the helper outside of the sandbox.
type supervisor struct {
	sock  *os.File
	forks *forks // nil = nobody waits for them

	mu    sync.Mutex // the tree, and that process is not another by now
	tree  *tree      // nil = nothing was started
	pid   int        // of the program
	ended bool       // it is collected

	peakMemory, peakProcesses, over int64
}

// outside starts the program and sees it through. It does not return while the
// program runs.
func outside(sock *os.File) {
	// What a terminal sends is for the program; and what the caller was started
	// to ignore (nohup(1)), the program ignores too.
	for sig := syscall.Signal(1); sig < 32; sig++ {
		switch sig {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPROF:
		default:
			if !signal.Ignored(sig) {
				signal.Notify(make(chan os.Signal, 1), sig)
			}
		}
	}
	r, ok := awaitStart(sock)
	if !ok {
		return
	}
	s := &supervisor{sock: sock}
	if err := closeOthers(r.keep); err != nil {
		fail(sock, stepDescriptors, err, "", 0)
		return
	}
	var err error
	if s.forks, err = newForks(); err != nil {
		fail(sock, stepTrack, err, "", 0)
		return
	}
	go s.obey()
	if !s.start(&r) {
		s.sweep()
		return
	}
	over := make(chan struct{})
	go s.track(&r, over)
	status := s.reap()
	close(over)
	left := s.sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	send(sock, message{kind: exited, n: [5]int64{int64(status), s.over, s.peakMemory, s.peakProcesses, int64(left)}})
	os.Exit(0)
}

// closeOthers keeps all descriptors from what is started but those that are
// passed on: an embedding program may have opened some without close-on-exec.
func closeOthers(keep []bool) error {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || fd < 3 {
			continue
		}
		if i := fd - outsideFirstFD; i >= 0 && i < len(keep) && keep[i] {
			continue // started with it; syscall.ForkExec places it
		}
		unix.CloseOnExec(fd)
	}
	return nil
}

// start returns true once the program runs; else it has told why not.
func (s *supervisor) start(r *request) bool {
	pair, err := socketpair()
	if err != nil {
		fail(s.sock, stepTool, err, "", 0)
		return false
	}
	child, theirs := os.NewFile(uintptr(pair[0]), "inside"), os.NewFile(uintptr(pair[1]), "inside's end")
	defer child.Close()
	said, say, err := os.Pipe()
	if err != nil {
		fail(s.sock, stepTool, err, "", 0)
		return false
	}
	files := []uintptr{0, 1, say.Fd(), theirs.Fd(), 2}
	for i, kept := range r.keep {
		fd := ^uintptr(0)
		if kept {
			fd = uintptr(outsideFirstFD + i)
		}
		files = append(files, fd)
	}
	argv := []string{r.tool, "-f", r.profile}
	for _, p := range r.params {
		argv = append(argv, "-D", p)
	}
	argv = append(argv, r.self, insideName)
	attr := &syscall.SysProcAttr{Setsid: r.session}
	if !r.session {
		attr.Setpgid, attr.Pgid = true, int(r.group)
	}
	s.mu.Lock()
	pid, err := syscall.ForkExec(r.tool, argv, &syscall.ProcAttr{
		Dir: r.dir, Env: []string{"GOMAXPROCS=1"}, Files: files, Sys: attr,
	})
	if err == nil {
		s.pid, s.tree = pid, newTree(pid)
	}
	s.mu.Unlock()
	theirs.Close()
	say.Close()
	if err != nil {
		fail(s.sock, stepTool, err, "", 0)
		return false
	}
	s.look()
	words := make(chan []byte, 1)
	go func() { words <- hear(said) }()

	// A tool that fails reads nothing; what it has to say counts, not the write.
	send(child, message{kind: start, body: r.encode()})
	m, err := receive(child)
	if err == nil && m.kind == held {
		if send(child, message{kind: goOn}) == nil {
			if m, err = receive(child); err == io.EOF {
				s.mu.Lock()
				born := s.tree.born
				s.mu.Unlock()
				send(s.sock, message{kind: running, n: [5]int64{int64(pid), born}})
				return true
			}
		}
	}
	if err == nil && m.kind == failed {
		send(s.sock, m)
		s.reap()
		return false
	}
	hangs := time.AfterFunc(time.Second, func() { s.signalAll(syscall.SIGKILL) })
	status := s.reap()
	hangs.Stop()
	send(s.sock, message{kind: refused, n: [5]int64{int64(status)}, body: <-words})
	return false
}

// hear reads what the tool and the loader write, to its end, and returns the
// beginning of it.
func hear(f *os.File) []byte {
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 8<<10))
	io.Copy(io.Discard, f)
	return head
}

// obey does what the parent asks for. The end of the socket is the end of the
// parent, however it died: nothing may outlive it.
func (s *supervisor) obey() {
	for {
		m, err := receive(s.sock)
		if err != nil {
			s.sweep()
			os.Exit(failedStatus)
		}
		if m.kind != kill {
			continue
		}
		sig := syscall.Signal(m.n[0])
		if m.n[1] == 1 {
			s.signalAll(sig)
			continue
		}
		s.mu.Lock()
		if s.pid != 0 && !s.ended {
			syscall.Kill(s.pid, sig)
		}
		s.mu.Unlock()
	}
}

// look finds out what lives of the tree now.
func (s *supervisor) look() ([]entry, error) {
	table, err := processes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.tree == nil {
		return nil, err
	}
	live, fresh := s.tree.look(table)
	for _, p := range fresh {
		if s.forks != nil {
			s.forks.add(p.pid)
		}
	}
	return live, nil
}

func (s *supervisor) signalAll(sig syscall.Signal) {
	live, err := s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.pid != 0 && !s.ended { // better one than none
		syscall.Kill(s.pid, sig)
	}
	if s.tree == nil {
		return
	}
	inGroup := map[int]bool{}
	for _, g := range s.tree.groups(live) {
		syscall.Kill(-g, sig)
		inGroup[g] = true
	}
	for _, p := range live {
		if !inGroup[p.group] && (p.pid != s.pid || !s.ended) {
			syscall.Kill(p.pid, sig)
		}
	}
}

// Bounds of a sweep: a process that the kernel does not let go of must not hold
// up the end for ever.
const (
	sweepTime  = 5 * time.Second
	sweepPause = time.Millisecond
)

// sweep kills the tree until two looks in a row find nothing. It returns how many
// processes it gave up on, or -1 if it does not know.
func (s *supervisor) sweep() int {
	empty := 0
	for deadline := time.Now().Add(sweepTime); ; time.Sleep(sweepPause) {
		live, err := s.look()
		switch {
		case err == nil && len(live) == 0:
			if empty++; empty == 2 {
				return 0
			}
			continue
		case time.Now().Before(deadline):
			empty = 0
			s.signalAll(syscall.SIGKILL)
		case err != nil:
			return -1
		default:
			return len(live)
		}
	}
}

const (
	// measureEvery is the time between two measurements of what the tree uses.
	// What is used up between them is used up.
	measureEvery = 100 * time.Millisecond
	// lookPause bounds how much of a processor a tree that forks all the time
	// costs here.
	lookPause = 2 * time.Millisecond
)

// track looks at the tree at every fork, and measures it.
func (s *supervisor) track(r *request, over <-chan struct{}) {
	next := time.Now()
	for {
		s.forks.wait(max(0, time.Until(next)))
		select {
		case <-over:
			return
		default:
		}
		live, _ := s.look() // what fails now is tried again
		if !time.Now().Before(next) {
			s.measure(r, live)
			next = time.Now().Add(measureEvery)
		}
		time.Sleep(lookPause)
	}
}

func (s *supervisor) measure(r *request, live []entry) {
	memory := int64(0)
	for _, p := range live {
		n, _ := Footprint(p.pid) // gone by now, or begun
		memory += n
	}
	s.mu.Lock()
	s.peakMemory, s.peakProcesses = max(s.peakMemory, memory), max(s.peakProcesses, int64(len(live)))
	why := overuse(memory, r.memory, int64(len(live)), r.processes)
	if s.over == 0 {
		s.over = why
	}
	s.mu.Unlock()
	if why != 0 {
		s.signalAll(syscall.SIGKILL)
	}
}

// reap collects the program.
func (s *supervisor) reap() syscall.WaitStatus {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(s.pid, &status, unix.WUNTRACED|unix.WCONTINUED, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return failedStatus << 8
		case pid != s.pid:
		case status == continuedStatus:
			send(s.sock, message{kind: stopped})
		case status&0x7f == 0x7f: // wait(2): stopped, the signal is in the next byte
			// A shell that waits for the wrapper must see it stop too.
			send(s.sock, message{kind: stopped, n: [5]int64{int64(status >> 8 & 0xff)}})
		default:
			s.mu.Lock()
			s.ended = true
			s.mu.Unlock()
			return syscall.WaitStatus(status)
		}
	}
}

// socketpair makes a connected pair that no program inherits by accident. macOS
// has no SOCK_CLOEXEC, so no program may be started meanwhile.
func socketpair() (pair [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	return pair, err
}
