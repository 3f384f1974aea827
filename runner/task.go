package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// DefaultGrace is the time between the request to end (SIGTERM) and SIGKILL.
const DefaultGrace = 5 * time.Second

// Cause is what ended a command. Of several at once it is the first.
type Cause string

const (
	Exited      Cause = "exited"       // by itself; ExitCode is valid
	Signalled   Cause = "signalled"    // by Result.Signal, not from here
	TimedOut    Cause = "timeout"      // Command.Timeout or the context's deadline
	Cancelled   Cause = "cancelled"    // the context, or Task.Stop
	OutputLimit Cause = "output-limit" // Command.OutputLimit
	OOM         Cause = "oom"          // the memory limit killed a process and the program failed
	PIDsLimit   Cause = "pids-limit"   // the process limit refused a process and the program failed
	HelperLost  Cause = "helper-lost"  // the helper went away; how the program ended is unknown
)

// Result is how a command ended.
type Result struct {
	Cause    Cause
	ExitCode int            // the program's own; -1 if it did not exit by itself
	Signal   syscall.Signal // what it died of; 0 if it exited
	Usage    sandbox.Usage
	Output   Output
	Decision policy.Decision
	Sandbox  sandbox.Report
	Notices  []Notice
}

// Notice is something that a person should know of a run that did run.
type Notice struct {
	Kind string `json:"kind"` // one of the Notice constants
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}

const (
	NoticeProtected = "protected"  // a protected name appeared or changed
	NoticeState     = "state"      // no directory for what is kept between runs
	NoticeWorktree  = "worktree"   // the repository's common directory stays read-only
	NoticeNotOpened = "not-opened" // a path that was approved and that does not exist
	NoticeOutput    = "output"     // output was not delivered
	NoticeCleanup   = "cleanup"    // something of the run could not be removed
)

// Task is a command that runs.
type Task struct {
	proc    sandbox.Process
	streams streams
	guards  []guard
	watch   *watchman // nil = none
	place   profiles.Place
	names   []sandbox.Name
	result  Result
	done    chan struct{}
	ended   atomic.Bool

	detached time.Duration // the time-out of a detached task, from its start; 0 = none
	detach   chan struct{} // taken until settled is closed: the task ends
	settled  chan struct{}
	stop     chan struct{}
	stopOnce sync.Once
}

// Signal sends sig to the program. It is an error after the end.
func (t *Task) Signal(sig syscall.Signal) error {
	if t.ended.Load() {
		return os.ErrProcessDone
	}
	return t.proc.Signal(sig)
}

// Sandbox says what is enforced.
func (t *Task) Sandbox() sandbox.Report { return t.proc.Report() }

// Wait returns when the command has ended and all its output is delivered. A
// writer of the Command that blocks is given up shortly after the command's
// time-out or the end of the context; the Result has a notice then, and a Write
// may still be under way. Wait may be called several times.
func (t *Task) Wait() Result {
	<-t.done
	return t.result
}

// Done is closed when Wait would return at once.
func (t *Task) Done() <-chan struct{} { return t.done }

// Output is what the command has written so far, as in Result.Output. It may be
// called at any time.
func (t *Task) Output() Output { return t.streams.output() }

// Stop ends the command as the end of its context does, SIGTERM, the grace
// time, SIGKILL to every process, and returns how it ended.
func (t *Task) Stop() Result {
	t.stopOnce.Do(func() { close(t.stop) })
	return t.Wait()
}

// Detach lets the task go on without its context and the Command's Timeout.
// From then on only Stop and the profile's time-out for tasks in the background
// end it, which counts from the start; a wrapper's call has none.
func (t *Task) Detach() {
	select {
	case t.detach <- struct{}{}:
	case <-t.settled:
	}
}

// see sees the task through to its end.
func (t *Task) see(ctx context.Context, timeout, grace time.Duration) {
	defer close(t.done)

	type end struct {
		exit sandbox.Exit
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		exit, err := t.proc.Wait()
		t.ended.Store(true)
		ended <- end{exit, err}
	}()

	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}

	var cause Cause
	var last end
	over, began := false, time.Now()
	for !over && cause == "" {
		select {
		case last = <-ended:
			over = true
		case <-expired:
			cause = TimedOut
		case <-ctx.Done():
			cause = Cancelled
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				cause = TimedOut
			}
		case <-t.stop:
			cause = Cancelled
		case <-t.streams.limit.reached:
			cause = OutputLimit
		case <-t.detach:
			ctx, expired = context.WithoutCancel(ctx), nil
			if t.detached > 0 {
				timer := time.NewTimer(time.Until(began.Add(t.detached)))
				defer timer.Stop()
				expired = timer.C
			}
		}
	}
	close(t.settled)
	if cause != "" {
		t.proc.SignalAll(syscall.SIGTERM)
		// A stopped process sees SIGTERM only after it goes on.
		t.proc.SignalAll(syscall.SIGCONT)
		kill := time.NewTimer(grace)
		select {
		case last = <-ended:
		case <-kill.C:
			t.proc.Kill()
			last = <-ended
		}
		kill.Stop()
	}

	t.deliver(ctx, expired, cause != "")
	t.result.Output = t.streams.output()
	t.result.Notices = append(t.result.Notices, t.streams.notices()...)
	t.result.Notices = append(t.result.Notices, changes(t.guards, t.watch != nil, t.place.Workspace)...)
	if t.watch != nil {
		t.result.Notices = append(t.result.Notices, t.watch.finish(t.names, t.proc.Report().Tier == "namespaces")...)
	}
	t.result.Usage = last.exit.Usage
	t.result.Sandbox = t.proc.Report()
	if last.err != nil {
		t.result.Notices = append(t.result.Notices, Notice{Kind: NoticeCleanup, Text: last.err.Error()})
	}
	t.result.setEnd(cause, last.exit)
}

// deliver waits for the delivery of the output as long as the command has time,
// and a little longer.
func (t *Task) deliver(ctx context.Context, expired <-chan time.Time, over bool) {
	delivered := make(chan struct{})
	go func() {
		t.streams.finish()
		close(delivered)
	}()
	if !over {
		select {
		case <-delivered:
			return
		case <-expired:
		case <-ctx.Done():
		}
	}
	last := time.NewTimer(writerDelay)
	defer last.Stop()
	select {
	case <-delivered:
	case <-last.C:
	}
}

// setEnd fills in how the program ended; cause is why it was ended from here,
// or "".
func (r *Result) setEnd(cause Cause, exit sandbox.Exit) {
	r.ExitCode = -1
	switch {
	case exit.Lost:
		r.Cause = HelperLost
	case exit.Status.Signaled():
		r.Cause = Signalled
		r.Signal = exit.Status.Signal()
	default:
		r.Cause = Exited
		r.ExitCode = exit.Status.ExitStatus()
	}
	failed := r.ExitCode != 0
	switch {
	case cause != "":
		r.Cause = cause
	case exit.OOM && failed:
		r.Cause = OOM
	case exit.PIDsMax && failed:
		r.Cause = PIDsLimit
	}
}

// streams are the three standard streams of a program and what stands behind
// them here.
type streams struct {
	stdin, stdout, stderr *os.File // what the program gets; nil = /dev/null
	ours                  []*os.File
	limit                 *limit
	outlets               []*outlet
	tails                 [2]*tail
	input                 *os.File // our end of a pipe to stdin, or nil
	feed                  func()
}

// newStreams makes the pipes. An *os.File is handed to the program itself,
// unless its bytes are to be counted.
func newStreams(c *Command) (streams, error) {
	s := streams{limit: &limit{max: c.OutputLimit, reached: make(chan struct{})}}
	if err := s.open(c); err != nil {
		s.abandon()
		return streams{}, err
	}
	return s, nil
}

func (s *streams) open(c *Command) error {
	switch in := c.Stdin.(type) {
	case nil:
	case *os.File:
		s.stdin = in
	default:
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		s.stdin = read
		s.ours = append(s.ours, read)
		s.input = write
		s.feed = func() {
			io.Copy(write, in) // a program need not read all its input
			write.Close()
		}
	}

	stdout, stderr := c.Stdout, c.Stderr
	if stdout == nil {
		s.tails[0] = new(tail)
		stdout = s.tails[0]
	}
	if stderr == nil {
		s.tails[1] = new(tail)
		stderr = s.tails[1]
	}
	var err error
	if s.stdout, err = s.outlet(stdout, c.OutputLimit > 0); err != nil {
		return err
	}
	// One pipe for one writer keeps the order and spares it a lock.
	if sameWriter(stdout, stderr) {
		s.stderr = s.stdout
		return nil
	}
	s.stderr, err = s.outlet(stderr, c.OutputLimit > 0)
	return err
}

func (s *streams) outlet(to io.Writer, count bool) (*os.File, error) {
	if f, ok := to.(*os.File); ok && !count {
		return f, nil
	}
	o, err := newOutlet(to, s.limit)
	if err != nil {
		return nil, err
	}
	s.outlets = append(s.outlets, o)
	s.ours = append(s.ours, o.write)
	return o.write, nil
}

// sameWriter is a == b without the panic for types that cannot be compared.
func sameWriter(a, b io.Writer) bool {
	defer func() { recover() }()
	return a == b
}

// started drops the program's ends and begins to copy.
func (s *streams) started() {
	for _, f := range s.ours {
		f.Close()
	}
	s.ours = nil
	for _, o := range s.outlets {
		go o.copy()
	}
	if s.feed != nil {
		go s.feed()
	}
}

// abandon releases everything when no program was started.
func (s *streams) abandon() {
	for _, f := range s.ours {
		f.Close()
	}
	for _, o := range s.outlets {
		o.read.Close()
	}
	if s.input != nil {
		s.input.Close()
	}
}

// finish waits until all output is delivered.
func (s *streams) finish() {
	if s.input != nil {
		s.input.Close() // its reader may never end
	}
	for _, o := range s.outlets {
		o.end()
	}
	for _, o := range s.outlets {
		<-o.done
	}
}

func (s *streams) output() Output {
	var out Output
	for i, to := range []*Stream{&out.Stdout, &out.Stderr} {
		if t := s.tails[i]; t != nil {
			*to = t.stream()
		}
	}
	return out
}

func (s *streams) notices() []Notice {
	var notices []Notice
	for _, o := range s.outlets {
		if !o.delivered() {
			o.read.Close()
			notices = append(notices, Notice{Kind: NoticeOutput, Text: "the output was not taken by whoever reads it; the rest of it is lost"})
			continue
		}
		if o.err != nil {
			notices = append(notices, Notice{Kind: NoticeOutput, Text: fmt.Sprintf("the output after this was lost: %v", o.err)})
		}
		if o.held {
			notices = append(notices, Notice{Kind: NoticeOutput, Text: "a process that the command left behind kept its output open; what it writes is lost"})
		}
	}
	return notices
}
