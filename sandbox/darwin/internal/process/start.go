//go:build darwin || linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// Tool is the system's program that applies a profile. It is never looked up in
// PATH, where ours has the same name.
const Tool = "/usr/bin/sandbox-exec"

// Plan is how a program is to be confined.
type Plan struct {
	Self    string   // our own binary; the profile must let it be read and executed
	Profile string   // file that holds the profile
	Params  []string // KEY=VALUE, for the profile
	Checks  []Check  // what must hold inside before the program runs
	Limits  sandbox.Limits
	// Terminal says that the program is to stay in the caller's session and
	// process group, so that it can use the caller's terminal. Without it the
	// program gets a session of its own.
	Terminal bool
	Report   sandbox.Report
	// Clean removes what was made for the run; it is called once, when nothing
	// runs (any more). nil = nothing.
	Clean func() error

	tool string // instead of Tool, for tests
}

// request puts cmd and plan together.
func (p *Plan) request(cmd *exec.Cmd) request {
	r := request{
		tool: p.tool, profile: p.Profile, params: p.Params, self: p.Self,
		path: cmd.Path, dir: cmd.Dir, args: cmd.Args, env: cmd.Env,
		session: !p.Terminal, group: int64(unix.Getpgrp()),
		memory: max(p.Limits.Memory, 0), processes: max(p.Limits.PIDs, 0),
		openFiles: max(p.Limits.OpenFiles, 0), fileSize: max(p.Limits.FileSize, 0),
		checks: p.Checks,
	}
	if r.tool == "" {
		r.tool = Tool
	}
	for _, f := range cmd.ExtraFiles {
		r.keep = append(r.keep, f != nil)
	}
	return r
}

// Process is a program under a profile, and the tree below it. It is a
// [sandbox.Process].
type Process struct {
	plan    Plan
	pid     int // of the helper outside
	program int
	// programBorn tells the program from another process that has its number
	// later.
	programBorn int64
	sock        *os.File
	began       time.Time
	stopped     chan syscall.Signal

	mu     sync.Mutex
	done   bool // the program has ended, or the helper is gone
	reaped bool // pid may be another process by now
}

var _ sandbox.Process = (*Process)(nil)

// Start runs cmd as plan says. It returns once every check gave what it must and
// the program runs, or an error and no process left. Cancelling ctx stops a Start
// that has not returned yet, nothing after it.
func Start(ctx context.Context, cmd *exec.Cmd, plan Plan) (*Process, error) {
	p := &Process{plan: plan, began: time.Now(), stopped: make(chan syscall.Signal, 1)}
	err := ctx.Err()
	if err == nil {
		err = p.launch(cmd)
	}
	if err != nil {
		return nil, errors.Join(err, p.clean())
	}
	// The helper ends all it started when it is left alone.
	stop := context.AfterFunc(ctx, func() { p.sock.Close() })
	r := plan.request(cmd)
	send(p.sock, message{kind: start, body: r.encode()}) // a helper that is gone shows in what it does not answer
	err = p.await(&r)
	if !stop() { // it is being ended, whatever it answered
		err = ctx.Err()
	}
	if err != nil {
		p.sock.Close()
		p.reap()
		return nil, errors.Join(err, p.clean())
	}
	return p, nil
}

// launch starts the helper outside of the sandbox. Nothing of the policy is on
// its argv or in its environment.
func (p *Process) launch(cmd *exec.Cmd) error {
	setupError := func(step string, err error) error {
		return &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: step, Err: err}
	}
	pair, err := socketpair()
	if err != nil {
		return setupError("make a socket for the helper", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper's end")
	defer theirs.Close()
	// Ours waits in the poller: a command that runs costs no thread.
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return setupError("make a socket for the helper", err)
	}
	p.sock = os.NewFile(uintptr(pair[0]), "helper")

	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return setupError("open "+os.DevNull, err)
	}
	defer null.Close()
	files := make([]*os.File, 3, 8)
	for i, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		files[i] = null
		if f, ok := stream.(*os.File); ok && f != nil {
			files[i] = f
		} else if stream != nil {
			return setupError(fmt.Sprintf("pass descriptor %d on", i), errors.New("not a file"))
		}
	}
	files = append(append(files, theirs), cmd.ExtraFiles...)
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = ^uintptr(0) // closed
		if f != nil {
			fds[i] = f.Fd()
		}
	}
	// A process group of its own: neither ^C nor a kill of the caller's group
	// may end the one that has to end the tree.
	p.pid, err = syscall.ForkExec(p.plan.Self, []string{outsideName}, &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1"}, Files: fds, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	runtime.KeepAlive(files)
	if err != nil {
		return setupError("start the helper "+p.plan.Self, err)
	}
	return nil
}

// await returns when the program runs.
func (p *Process) await(r *request) error {
	for {
		m, err := receive(p.sock)
		switch {
		case err != nil:
			return &sandbox.SetupError{
				Layer: sandbox.LayerSeatbelt, Step: "wait for the helper", Err: errors.New("it died before the program ran"),
			}
		case m.kind == running:
			p.program, p.programBorn = int(m.n[0]), m.n[1]
			return nil
		case m.kind == stopped: // of the tool
		default:
			return explain(r, m)
		}
	}
}

// Signal implements [sandbox.Process].
func (p *Process) Signal(sig syscall.Signal) error { return p.send(sig, 0) }

// SignalAll implements [sandbox.Process].
func (p *Process) SignalAll(sig syscall.Signal) error { return p.send(sig, 1) }

func (p *Process) send(sig syscall.Signal, all int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return os.ErrProcessDone
	}
	// A helper that somebody stopped does not read.
	p.sock.SetWriteDeadline(time.Now().Add(time.Second))
	return send(p.sock, message{kind: kill, n: [5]int64{int64(sig), all}})
}

// Stopped implements [sandbox.Process].
func (p *Process) Stopped() <-chan syscall.Signal { return p.stopped }

// killTime is how long the helper has to end the tree before it is ended itself,
// and the tree from here.
const killTime = sweepTime + 2*time.Second

// Kill implements [sandbox.Process].
func (p *Process) Kill() error {
	err := p.SignalAll(syscall.SIGKILL)
	if err == os.ErrProcessDone {
		return err
	}
	if err != nil {
		return p.killHelper()
	}
	time.AfterFunc(killTime, func() { p.killHelper() })
	return nil
}

func (p *Process) killHelper() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return syscall.Kill(p.pid, syscall.SIGKILL)
}

// reap collects the helper, which is about to end. Nobody may signal its number
// once it is collected, so it is not waited for outside of the lock.
func (p *Process) reap() (syscall.Rusage, error) {
	var ru syscall.Rusage
	for deadline := time.Now().Add(killTime); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		pid, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, &ru)
		if pid == p.pid || err != nil && err != syscall.EINTR {
			p.reaped = true
			p.mu.Unlock()
			return ru, err
		}
		if time.Now().After(deadline) {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
		p.mu.Unlock()
	}
}

// Wait implements [sandbox.Process].
func (p *Process) Wait() (sandbox.Exit, error) {
	var exit sandbox.Exit
	var left error
	m, err := receive(p.sock)
	for err == nil && m.kind == stopped {
		m, err = p.afterStop(m)
	}
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	if err == nil && m.kind == exited {
		exit.Status = syscall.WaitStatus(m.n[0])
		exit.OOM, exit.PIDsMax = m.n[1] == overMemory, m.n[1] == overProcesses
		exit.Usage.MemoryPeak, exit.Usage.PIDsPeak = m.n[2], m.n[3]
		left = survivors(int(m.n[4]))
	} else {
		// Nobody else looks after the tree any more.
		exit.Lost = true
		p.killHelper()
		s := supervisor{pid: p.program, ended: true, tree: newTree(p.program)}
		s.tree.known[p.program], s.tree.born = mark{start: p.programBorn}, p.programBorn
		left = survivors(s.sweep())
	}
	p.sock.Close()
	ru, err := p.reap()
	exit.Usage.Wall = time.Since(p.began)
	exit.Usage.CPU = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	exit.Usage.MemoryPeak = max(exit.Usage.MemoryPeak, int64(ru.Maxrss)*maxrssUnit)
	exit.Usage.MemoryLimit, exit.Usage.PIDsLimit = max(p.plan.Limits.Memory, 0), max(p.plan.Limits.PIDs, 0)
	return exit, errors.Join(left, err, p.clean())
}

// survivors is the error for processes that a sweep did not end.
func survivors(n int) error {
	switch {
	case n > 0:
		return fmt.Errorf("%d of the command's processes could not be ended; they stay in its sandbox", n)
	case n < 0:
		return errors.New("the system did not list its processes: some of the command's may live on, in its sandbox")
	}
	return nil
}

// afterStop delivers a stop of the program, unless it goes on right away: a
// terminal stops us too, and by the time that we read of it all is over.
func (p *Process) afterStop(stop message) (message, error) {
	if stop.n[0] == 0 {
		return receive(p.sock)
	}
	p.sock.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	m, err := receive(p.sock)
	p.sock.SetReadDeadline(time.Time{})
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return m, err
	}
	select {
	case p.stopped <- syscall.Signal(stop.n[0]):
	default:
	}
	return receive(p.sock)
}

func (p *Process) clean() error {
	if p.sock != nil {
		p.sock.Close()
	}
	if p.plan.Clean == nil {
		return nil
	}
	return p.plan.Clean()
}

// Report implements [sandbox.Process].
func (p *Process) Report() sandbox.Report { return p.plan.Report }
