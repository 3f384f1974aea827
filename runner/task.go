package runner

import (
	"context"
	"errors"
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
	Exited          Cause = "exited"            // by itself; ExitCode is valid
	Signalled       Cause = "signalled"         // by Result.Signal, not from here
	TimedOut        Cause = "timeout"           // Command.Timeout or the context's deadline
	Cancelled       Cause = "cancelled"         // by the program: the context, or Task.Stop
	CancelledByUser Cause = "cancelled-by-user" // the context with ErrCancelledByUser, or Task.Cancel
	OutputLimit     Cause = "output-limit"      // Command.OutputLimit
	OOM             Cause = "oom"               // the memory limit killed a process and the program failed
	PIDsLimit       Cause = "pids-limit"        // the process limit refused a process and the program failed
	HelperLost      Cause = "helper-lost"       // the helper went away; how the program ended is unknown
)

// ErrCancelledByUser as the cause of a context's end (context.WithCancelCause)
// tells that a person cancelled, not the program: the model is not to try again
// by itself.
var ErrCancelledByUser = errors.New("cancelled by the user")

// Result is how a command ended.
type Result struct {
	Cause    Cause
	ExitCode int            // the program's own; -1 if it did not exit by itself
	Signal   syscall.Signal // what it died of; 0 if it exited
	Usage    sandbox.Usage
	Output   Output
	Decision policy.Decision
	Sandbox  sandbox.Report
	// Contacts are the hosts that it asked for, where the network is NetworkAllow.
	Contacts []sandbox.Contact
	Notices  []Notice

	Started time.Time
	Dir     string // where it ran
	// FinalDir is where the shell was in the end, if Command.FinalDir asked for
	// it and it is known: a shell that was killed, or that became another
	// program, does not tell.
	FinalDir string
	Env      []string // names of the variables that it got, sorted
	// Timeout and OutputLimit are those that held; 0 = none.
	Timeout     time.Duration
	OutputLimit int64
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
	NoticeLimit     = "limit"      // a limit that the profile sets did not hold
)

// Task is a command that runs.
type Task struct {
	proc    sandbox.Process
	streams streams
	guards  []guard
	watch   *watchman // nil = none
	place   profiles.Place
	profile profiles.Profile
	names   []sandbox.Name
	stays   bool // nothing in the shell's text changes its directory, which was asked for
	result  Result
	done    chan struct{}
	ended   atomic.Bool   // the program has
	stop    chan Cause    // what Cancel asks for first
	kill    chan struct{} // closed by Kill
	killing sync.Once

	detached time.Duration // the time-out of a detached task, from its start; 0 = none
	detach   chan struct{} // taken until settled is closed: the task ends
	settled  chan struct{}
}

// Signal sends sig to the program. It is an error after the end.
func (t *Task) Signal(sig syscall.Signal) error {
	if t.ended.Load() {
		return os.ErrProcessDone
	}
	return t.proc.Signal(sig)
}

// Done is closed when Wait would return at once.
func (t *Task) Done() <-chan struct{} { return t.done }

// Output is what the command has written so far, as in Result.Output. It may be
// called at any time.
func (t *Task) Output() Output { return t.streams.output() }

// Stop ends the command as the end of its context does, SIGTERM, the grace
// time, SIGKILL to every process, and returns how it ended.
func (t *Task) Stop() Result {
	t.Cancel(Cancelled)
	return t.Wait()
}

// Cancel is Stop that does not wait. why is Cancelled, or CancelledByUser where
// a person wants the end; if something else ended the command before, that
// stays its cause.
func (t *Task) Cancel(why Cause) {
	select {
	case t.stop <- why:
	default: // somebody was first
	}
}

// Kill is Cancel(Cancelled) without a grace time: also of a command that is
// being ended already.
func (t *Task) Kill() {
	t.Cancel(Cancelled)
	t.killing.Do(func() { close(t.kill) })
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

// see sees the task through to its end.
// alone is a lock that it holds, or nil.
func (t *Task) see(ctx context.Context, timeout, grace time.Duration, alone *os.File) {
	defer close(t.done)
	if alone != nil {
		defer alone.Close()
	}

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

	t.streams.tidy()
	var cause Cause
	var last end
	over, began := false, time.Now() // over: last is valid
	for !over && cause == "" {
		select {
		case last = <-ended:
			over = true
		case <-expired:
			cause = TimedOut
		case <-ctx.Done():
			cause = cancelled(ctx)
		case cause = <-t.stop:
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
	if !over {
		select { // of two at the same time the program's own end is the first
		case last = <-ended:
			over, cause = true, ""
		default:
		}
	}
	if !over {
		t.proc.SignalAll(syscall.SIGTERM)
		// A stopped process sees SIGTERM only after it goes on.
		t.proc.SignalAll(syscall.SIGCONT)
		patience := time.NewTimer(grace)
		select {
		case last = <-ended:
		case <-patience.C:
			t.proc.Kill()
			last = <-ended
		case <-t.kill:
			t.proc.Kill()
			last = <-ended
		}
		patience.Stop()
	}

	t.deliver(ctx, expired, cause != "")
	if cause == "" && t.streams.limit.over() {
		cause = OutputLimit // the end of the program was faster than we are
	}
	t.result.Output = t.streams.output()
	t.result.FinalDir = t.finalDir()
	t.result.Notices = append(t.result.Notices, t.streams.notices()...)
	t.result.Notices = append(t.result.Notices, changes(t.guards, t.watch != nil, t.place.Workspace)...)
	if t.watch != nil {
		t.result.Notices = append(t.result.Notices, t.watch.finish(t.names, t.proc.Report().Tier == "namespaces")...)
	}
	t.result.Usage = last.exit.Usage
	t.result.Contacts = last.exit.Contacts
	t.result.Sandbox = t.proc.Report()
	if last.err != nil {
		t.result.Notices = append(t.result.Notices, Notice{Kind: NoticeCleanup, Text: last.err.Error()})
	}
	t.result.setEnd(cause, last.exit)
	if t.profile.Limits.Tmp > 0 && (t.profile.Tmp == "session" || t.result.Sandbox.Tier != "namespaces") {
		t.result.Notices = append(t.result.Notices, Notice{Kind: NoticeLimit, Text: "limits.tmp did not hold: /tmp was on the disk, where nothing but its space limits it"})
	}
	t.result.Notices = append(t.result.Notices, unsigned(&t.result.Decision, &t.profile, &t.place)...)
	if t.result.ExitCode > 0 && t.proc.Report().Tier == "namespaces" {
		t.result.Notices = append(t.result.Notices, checkout(&t.result.Decision, t.guards, &t.place)...)
	}
}

// cancelled is why a context ended.
func cancelled(ctx context.Context) Cause {
	switch {
	case errors.Is(context.Cause(ctx), ErrCancelledByUser):
		return CancelledByUser
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return TimedOut
	}
	return Cancelled
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
		case <-t.stop:
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
