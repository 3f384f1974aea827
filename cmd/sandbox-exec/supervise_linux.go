package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"golang.org/x/sys/unix"
)

// A task in the background is run by a supervisor: this program, started again
// with the same command line under another name, in a session of its own. From
// the beginning it does all that sandbox-exec does, while the process that the
// caller waits for, the starter, only passes on output, signals and the
// terminal for questions. So handing over to the background is no more than
// letting go.

// Descriptors of the supervisor: stdin is the socket to the starter, stdout and
// stderr are pipes that the starter copies from.

// supervision is what env has of it.
type supervision struct {
	starter *os.File // a socket to the process that started us; nil when that is gone
}

// message goes between starter and supervisor, one JSON object a packet.
type message struct {
	// From the starter.
	Session  string         `json:"session,omitempty"`  // with it, that of the terminal
	Terminal bool           `json:"terminal,omitempty"` // the first; the terminal comes with it
	Signal   syscall.Signal `json:"signal,omitempty"`   // for the command; from the supervisor: what it died of
	// From the supervisor, one of the kinds.
	Task   string `json:"task,omitempty"`   // it goes on in the background
	Ended  bool   `json:"ended,omitempty"`  // it is over: Status or Signal
	Status int    `json:"status,omitempty"` // for the starter to end with
}

func send(socket *os.File, m message, fds ...int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(int(socket.Fd()), text, rights, nil, unix.MSG_NOSIGNAL)
}

// receive returns io.EOF when the other side is gone.
func receive(socket *os.File) (m message, terminal *os.File, err error) {
	text, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	var n, oob int
	for {
		n, oob, _, _, err = unix.Recvmsg(int(socket.Fd()), text, rights, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	switch {
	case err == unix.ECONNRESET || err == nil && n == 0:
		return m, nil, io.EOF
	case err != nil:
		return m, nil, os.NewSyscallError("recvmsg", err)
	}
	if parts, err := unix.ParseSocketControlMessage(rights[:oob]); err == nil && len(parts) == 1 {
		if fds, err := unix.ParseUnixRights(&parts[0]); err == nil && len(fds) == 1 {
			terminal = os.NewFile(uintptr(fds[0]), "/dev/tty")
		}
	}
	return m, terminal, json.Unmarshal(text[:n], &m)
}

// launch starts a supervisor and stays with it until the command has ended or
// goes on in the background.
func (e *env) launch() (launched, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return launched{}, os.NewSyscallError("socketpair", err)
	}
	socket, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer socket.Close()
	defer theirs.Close()
	var copies sync.WaitGroup
	pipe := func(to *os.File) (*os.File, error) {
		read, write, err := os.Pipe()
		if err == nil {
			copies.Go(func() {
				io.Copy(to, read)
				read.Close()
			})
		}
		return write, err
	}
	stdout, err := pipe(e.stdout)
	if err != nil {
		return launched{}, err
	}
	defer stdout.Close()
	stderr, err := pipe(e.stderr)
	if err != nil {
		return launched{}, err
	}
	defer stderr.Close()

	signals := make(chan os.Signal, 16)
	for _, sig := range passed {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	supervisor := &exec.Cmd{
		Path: selfExe(), Args: append([]string{supervisorName}, os.Args[1:]...),
		Stdin: theirs, Stdout: stdout, Stderr: stderr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := supervisor.Start(); err != nil {
		return launched{}, err
	}
	theirs.Close()
	stdout.Close()
	stderr.Close()

	hello := message{Session: terminalSession()}
	var fds []int
	if isTerminal(e.stderr) {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			defer tty.Close()
			hello.Terminal = true
			fds = []int{int(tty.Fd())}
		}
	}
	if err := send(socket, hello, fds...); err != nil {
		return launched{}, err
	}
	go func() {
		for sig := range signals {
			send(socket, message{Signal: sig.(syscall.Signal)})
		}
	}()
	m, _, err := receive(socket)
	if err != nil {
		copies.Wait()
		return launched{}, fmt.Errorf("the supervisor of the task was killed, and the command with it: %w", err)
	}
	copies.Wait()
	switch {
	case m.Task != "":
		return launched{id: m.Task}, nil
	case m.Signal != 0:
		return launched{ending: killedBy(m.Signal)}, nil
	case m.Status != 0:
		return launched{ending: silent(m.Status)}, nil
	}
	return launched{}, nil
}

// inBackground is a command line that asks for the background after the
// time-out.
func (e *env) inBackground(f *flagSet) error {
	if f.String("stdin") == "inherit" {
		return misuse("--stdin inherit: what goes on in the background reads nothing", "leave out --stdin or --on-timeout background")
	}
	if e.supervisor {
		return e.supervise(f, true)
	}
	l, err := e.launch()
	if err != nil || l.id == "" {
		return cmp.Or(err, l.ending)
	}
	if !f.quiet() {
		lines(e.stderr, "time-out: it goes on in the background as task "+l.id, "hint: sandbox-exec task output "+l.id+" shows what it writes, task stop "+l.id+" ends it")
	}
	return silent(exitTimeout)
}

// supervise runs the command of this command line as a task. Without a
// foreground it goes to the background as soon as it runs.
func (e *env) supervise(f *flagSet, foreground bool) error {
	if err := e.takeStarter(); err != nil {
		return err
	}
	err := e.seeTask(f, foreground)
	if e.starter == nil {
		return silent(0) // nobody waits for us, and the record has it
	}
	status, sig, said := outcome(err)
	lines(e.stderr, said...)
	send(e.starter, message{Ended: true, Status: status, Signal: sig})
	return silent(status)
}

// takeStarter receives the starter's first message.
func (e *env) takeStarter() error {
	first, terminal, err := receive(e.stdin)
	if err != nil || first.Terminal != (terminal != nil) {
		return misuse("this name is for a process that sandbox-exec starts itself", "sandbox-exec task start")
	}
	e.starter, e.terminal, e.session = e.stdin, terminal, first.Session
	// Pipes, and nobody's but ours: so that a Write can be given up.
	for _, to := range []**os.File{&e.stdout, &e.stderr} {
		if err := syscall.SetNonblock(int((*to).Fd()), true); err != nil {
			return err
		}
		*to = os.NewFile((*to).Fd(), "relay")
	}
	return nil
}

// supervised is a task and what is kept of it.
type supervised struct {
	*runner.Task
	cmd      runner.Command
	keeper   *runner.Keeper
	written  written
	patience time.Duration // how long it stays in the foreground
}

func (e *env) seeTask(f *flagSet, foreground bool) error {
	out, err := openReport(f.String("report"))
	if err != nil {
		return err
	}
	log, err := openAudit(f)
	if err != nil {
		return err
	}
	r := newReport(foreground && f.Bool("json"))
	write := func(err error) {
		if out == nil {
			return
		}
		if err := r.write(out, err); err != nil {
			lines(e.stderr, "error: --report: "+err.Error())
		}
		out = nil
	}
	// end writes all that tells of the end; the error is how the process ends.
	end := func(err error) error {
		write(err)
		if log != nil {
			if err := r.record(log, err, f.Bool("audit-sync")); err != nil && e.starter != nil {
				lines(e.stderr, "error: --audit: "+err.Error())
			}
		}
		if r.tool && e.starter != nil {
			return e.answer(r, err)
		}
		return err
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	control := make(chan message)
	starter := e.starter
	go func() {
		defer close(control)
		for {
			m, _, err := receive(starter)
			if err != nil {
				return
			}
			control <- m
		}
	}()

	type begun struct {
		task *supervised
		err  error
	}
	began := make(chan begun, 1)
	go func() {
		task, err := e.beginTask(ctx, f, foreground, r, log)
		began <- begun{task, err}
	}()
	// by is what was asked for, also while the command starts.
	var by syscall.Signal
	callOff := func(sig syscall.Signal) {
		by = cmp.Or(by, sig)
		cancel()
	}
	var task *supervised
	for task == nil {
		select {
		case b := <-began:
			if b.err != nil {
				if by != 0 && errors.Is(b.err, context.Canceled) {
					b.err = killedBy(by)
				}
				return end(b.err)
			}
			task = b.task
		case sig := <-signals:
			callOff(sig.(syscall.Signal))
		case m, open := <-control:
			switch {
			case !open:
				control = nil
				callOff(syscall.SIGHUP) // nobody waits for it any more
			case m.Signal != syscall.SIGWINCH:
				callOff(m.Signal)
			}
		}
	}

	var timer <-chan time.Time
	switch {
	case by != 0: // the context ends it
	case foreground:
		timer = time.After(task.patience)
	default:
		e.handOver(task, r, write)
		control = nil
	}
	for over := by != 0; !over; {
		select {
		case <-task.Done():
			over = true
		case <-timer:
			e.handOver(task, r, write)
			control, timer = nil, nil
		case <-task.keeper.StopAsked():
			by, over = syscall.SIGTERM, true
		case sig := <-signals:
			by, over = sig.(syscall.Signal), true
		case m, open := <-control:
			switch {
			case !open:
				by, over = syscall.SIGHUP, true
				task.Kill() // as if we had been killed, like the starter
			case r.tool && ends(m.Signal):
				by, over = m.Signal, true
			default:
				task.Signal(m.Signal)
			}
		}
	}
	if by != 0 {
		task.Cancel(canceller(by, r.tool))
		go func() {
			for m := range control {
				if ends(m.Signal) {
					task.Kill() // the second time
				}
			}
		}()
	}
	result := task.Wait()
	if e.starter == nil {
		if task.written.lost != nil {
			result.Notices = append(result.Notices, runner.Notice{Kind: runner.NoticeOutput, Text: fmt.Sprintf("the output after this was lost: %v", task.written.lost)})
		}
		if log != nil {
			r.Notices = e.notices
			r.set(result)
			end(ending(result, syscall.SIGTERM))
		}
		return task.keeper.Finish(result)
	}
	task.keeper.Discard()
	return end(e.conclude(f, task.cmd, result, r, by))
}

// beginTask judges, asks and starts.
func (e *env) beginTask(ctx context.Context, f *flagSet, foreground bool, r *report, log *os.File) (*supervised, error) {
	cmd, err := e.command(f)
	if err != nil {
		return nil, err
	}
	r.describe(cmd)
	if err := hideAudit(log, &cmd); err != nil {
		return nil, err
	}
	// Else who started us waits for the end of a pipe that we hold for days.
	if err := closeInherited(); err != nil {
		return nil, err
	}
	cmd.Wrapper, cmd.Background = false, true
	s := &supervised{}
	if foreground {
		if s.patience, err = inForegroundFor(cmd); err != nil {
			return nil, err
		}
		cmd.Timeout = 0
	}
	if s.keeper, err = runner.OpenTasks().Keep(cmd); err != nil {
		return nil, err
	}
	s.written.file = s.keeper.Output
	if foreground && !r.tool {
		s.written.to = [2]*os.File{e.stdout, e.stderr}
	}
	cmd.OnOutput, cmd.TailOnly = s.written.take, !r.tool
	cmd.Merge = cmd.Merge || !foreground // one pipe keeps the order
	if s.Task, err = e.begin(ctx, f, cmd, r); err != nil {
		s.keeper.Discard()
		return nil, err
	}
	s.cmd = cmd
	if err := s.keeper.Started(); err != nil {
		s.Stop()
		s.keeper.Discard()
		return nil, err
	}
	return s, nil
}

// inForegroundFor is how long a command stays in the foreground.
func inForegroundFor(cmd runner.Command) (time.Duration, error) {
	tool := cmd.Profile.ToolCall.Complete()
	timeout := cmp.Or(cmd.Timeout, tool.Timeout)
	switch {
	case timeout < 0:
		return 0, misuse("--on-timeout background: there is no time-out", "give one with --timeout TIME")
	case !profiles.Within(timeout, tool.MaxTimeout):
		return 0, misuse(fmt.Sprintf("--timeout %v: profile %s allows at most %v in the foreground", timeout, cmd.Profile.Name, tool.MaxTimeout), "")
	}
	return timeout, nil
}

// handOver lets the starter go, and the task on without it.
func (e *env) handOver(task *supervised, r *report, write func(error)) {
	r.handOver(task.keeper.Record.ID, task.Output())
	write(silent(exitTimeout))
	if r.tool {
		e.answer(r, silent(exitTimeout))
	}
	task.written.drop()
	send(e.starter, message{Task: r.Task})
	e.starter = nil
	os.Chdir("/") // so that no file system is held busy
	if err := letGo(); err != nil {
		task.Stop() // the starter would wait for ever
		os.Exit(exitFailed)
	}
}

// handOver fills in what is known of a command that goes on in the background.
func (r *report) handOver(task string, sofar runner.Output) {
	r.Ran, r.Task = true, task
	if !r.tool {
		return
	}
	result := runner.Result{ExitCode: -1, Output: sofar}
	r.capture(sofar)
	r.Text = result.Text() + "[it takes longer than its time-out and goes on in the background as task " + task +
		"; sandbox-exec task output " + task + " shows what it writes, task wait and task stop end it]\n"
}

// written keeps what the command writes, and passes it on to the starter as long
// as there is one.
type written struct {
	mu   sync.Mutex
	file *os.File
	lost error       // why the file has not all
	to   [2]*os.File // nil = nobody
}

func (w *written) take(fd int, p []byte) {
	w.mu.Lock()
	if w.lost == nil {
		_, w.lost = w.file.Write(p)
	}
	to := w.to[fd-1]
	w.mu.Unlock()
	if to == nil {
		return
	}
	if _, err := to.Write(p); err != nil {
		w.drop()
	}
}

// drop ends passing on, also a Write that waits for the starter's reader.
func (w *written) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, to := range w.to {
		if to != nil {
			to.SetWriteDeadline(time.Now())
			w.to[i] = nil
		}
	}
}
