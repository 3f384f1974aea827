package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

func (e *env) run(c *cli.Context) error {
	f := &flagSet{Context: c}
	if f.Bool("dry-run") {
		cmd, err := e.command(f)
		if err != nil {
			return err
		}
		return e.dryRun(cmd)
	}
	if f.choice("on-timeout", "kill", "background") == "background" {
		return e.inBackground(f)
	}
	if f.err != nil {
		return f.err
	}
	// Before all that can fail, so that no report of an earlier run stays.
	out, err := openReport(f.String("report"))
	if err != nil {
		return err
	}
	log, err := openAudit(f)
	r := newReport(f.Bool("json"))
	var cmd runner.Command
	if err == nil {
		cmd, err = e.command(f)
	}
	if err == nil {
		r.describe(cmd)
		err = hideAudit(log, &cmd)
	}
	if err == nil {
		err = e.start(f, cmd, r)
	}
	if out != nil {
		if writeErr := r.write(out, err); writeErr != nil {
			lines(e.stderr, "error: --report: "+writeErr.Error())
		}
	}
	if log != nil {
		if writeErr := r.record(log, err, f.Bool("audit-sync")); writeErr != nil {
			lines(e.stderr, "error: --audit: "+writeErr.Error())
		}
	}
	if r.tool {
		return e.answer(r, err)
	}
	return err
}

// answer writes the result of a tool's call. How the process ends is then an
// exit status, never a signal: the result has the signal's name.
func (e *env) answer(r *report, err error) error {
	r.finish(err)
	if writeErr := r.encode(e.stdout); writeErr != nil {
		lines(e.stderr, "error: --json: "+writeErr.Error())
		return silent(exitFailed)
	}
	if r.Status == 0 {
		return nil
	}
	return silent(r.Status)
}

// command makes the command that the flags of run describe.
func (e *env) command(f *flagSet) (runner.Command, error) {
	cmd, err := e.common(f)
	if err == nil {
		err = homeIsNamed(f, cmd)
	}
	if err != nil {
		return cmd, err
	}
	if err := e.wrapped(f, &cmd); err != nil {
		return cmd, err
	}
	if cmd.Script == "" && len(cmd.Args) == 0 {
		return cmd, misuse("nothing to run", "sandbox-exec [FLAGS] -- PROGRAM [ARG...], or -c TEXT")
	}
	return cmd, nil
}

// homeIsNamed refuses the whole home as a workspace that nobody named: it is
// where a terminal starts, and everything that the person has.
func homeIsNamed(f *flagSet, cmd runner.Command) error {
	if f.IsSet("workspace") || !cmd.Settings.AtHome() || cmd.Profile.Workspace != sandbox.ReadWrite {
		return nil
	}
	return misuse("workspace: the current directory is your home, all of which the command could write to",
		"go to the project's directory or name it with --workspace DIR; --workspace ~ means the home")
}

// start runs cmd, passes signals on to it, and fills in the report.
func (e *env) start(f *flagSet, cmd runner.Command, r *report) error {
	if cmd.Wrapper {
		cmd.Stdout, cmd.Stderr = e.stdout, e.stderr
	}
	if cmd.Wrapper && cmd.Profile.Stdin == "inherit" || f.String("stdin") == "inherit" {
		cmd.Stdin = e.stdin
	}
	ctx, relay := watchSignals(context.Background(), !cmd.Wrapper)
	task, err := e.begin(ctx, f, cmd, r)
	if err != nil {
		if sig := relay.got(); sig != 0 && errors.Is(err, context.Canceled) {
			return killedBy(sig)
		}
		return err
	}
	relay.to(task)
	result := task.Wait()
	if !cmd.Wrapper {
		relay.settle(&result)
	}
	return e.conclude(f, cmd, result, r, relay.got())
}

// begin starts cmd, after questions where there are any, and tells what is
// weaker.
func (e *env) begin(ctx context.Context, f *flagSet, cmd runner.Command, r *report) (*runner.Task, error) {
	if p := e.openPrompt(cmd.Profile); p != nil {
		defer p.Close()
		cmd.Approver = runner.FirstAnswer(cmd.Approver, p)
	}
	var asked witness
	if cmd.Approver != nil {
		asked.Approver = cmd.Approver
		cmd.Approver = &asked
	}
	r.Notices = e.notices
	if !f.quiet() {
		lines(e.stderr, told(e.notices)...)
	}

	task, err := runner.Start(ctx, cmd)
	r.Answered = asked.answered
	if err != nil {
		var refusedErr *runner.RefusedError
		if errors.As(err, &refusedErr) {
			r.Decision = &refusedErr.Decision
			err = refused(refusedErr, cmd, asked.answered)
		}
		return nil, err
	}
	if !f.quiet() {
		lines(e.stderr, weaker(task.Sandbox(), f.Bool("v") || e.terminal != nil || isTerminal(e.stderr)), f.unheld(task.Sandbox()))
	}
	return task, nil
}

// quiet says whether only errors are told: with -q, and where all else stands
// in the result.
func (f *flagSet) quiet() bool { return f.Bool("q") || f.Bool("json") && !f.Bool("v") }

// conclude fills in the report of a command that ran, tells what is to be told,
// and says how the process ends. sig is the first signal that came from outside.
func (e *env) conclude(f *flagSet, cmd runner.Command, result runner.Result, r *report, sig syscall.Signal) error {
	if result.ExitCode > 0 {
		result.Notices = append(result.Notices, afterFailure(result.Decision, cmd.Profile)...)
		result.Notices = append(result.Notices, refusedHosts(result.Contacts)...)
	}
	r.set(result)
	if f.Bool("v") {
		lines(e.stderr, summary(result))
	}
	if !f.quiet() {
		lines(e.stderr, epilogue(result, cmd.Timeout)...)
	}
	return ending(result, sig)
}

// weaker is the one line that tells which layers do not fully hold. A missing
// layer is always told; one that is only weaker is told to a person, as a
// harness that takes stderr for the command's reads the report.
func weaker(s sandbox.Report, person bool) string {
	var parts []string
	for _, layer := range s.Layers {
		if layer.State == sandbox.Missing || person && layer.State == sandbox.Weaker {
			parts = append(parts, layer.Name+" "+layer.State.String())
		}
	}
	if parts == nil {
		return ""
	}
	return "weaker here: " + strings.Join(parts, ", ") + "; sandbox-exec doctor says why and what that costs"
}

// unheld is the line that tells which limits that the command line asks for do
// not fully hold, to whomever.
func (f *flagSet) unheld(s sandbox.Report) string {
	var asked []string
	for _, name := range []string{"memory", "pids", "cpus"} {
		if f.IsSet(name) && f.String(name) != "unlimited" {
			asked = append(asked, "--"+name+" "+f.String(name))
		}
	}
	for _, layer := range s.Layers {
		limits := layer.Name == sandbox.LayerCgroup || layer.Name == sandbox.LayerWatch // Linux, macOS
		if limits && layer.State != sandbox.Enforced && asked != nil {
			return fmt.Sprintf("weaker here than asked for: %s: %s %s: %s", strings.Join(asked, " "), layer.Name, layer.State, layer.Lost)
		}
	}
	return ""
}

// epilogue says what a person cannot see from the command's own output.
func epilogue(r runner.Result, timeout time.Duration) []string {
	var out []string
	switch r.Cause {
	case runner.TimedOut:
		out = append(out, fmt.Sprintf("ended: it ran longer than --timeout allows (%v)", timeout))
	case runner.OOM:
		out = append(out, "ended: it used more memory than "+mebibytes(r.Usage.MemoryLimit), "hint: --memory SIZE gives it more")
	case runner.PIDsLimit:
		out = append(out, fmt.Sprintf("ended: it started more than %d processes and threads", r.Usage.PIDsLimit), "hint: --pids NUMBER gives it more")
	case runner.OutputLimit:
		out = append(out, fmt.Sprintf("ended: it wrote more than --output-limit allows (%d bytes)", r.OutputLimit))
	case runner.HelperLost:
		out = append(out, "error: the helper that confines the command was killed; how the command ended is unknown")
	}
	return append(out, told(r.Notices)...)
}

func told(notices []runner.Notice) (out []string) {
	for _, n := range notices {
		out = append(out, "notice: "+n.Text)
	}
	return out
}

// summary is what -v tells of a run.
func summary(r runner.Result) string {
	how := string(r.Cause)
	switch {
	case r.Signal != 0:
		how += " (" + unix.SignalName(r.Signal) + ")"
	case r.ExitCode >= 0:
		how += fmt.Sprintf(" (%d)", r.ExitCode)
	}
	var held []string
	for _, layer := range r.Sandbox.Layers {
		if layer.State == sandbox.Enforced {
			held = append(held, layer.Name)
		}
	}
	return fmt.Sprintf("%s after %.2f s, %.2f s of processor time, memory %d MiB; decision: %s; enforced: %s",
		how, r.Usage.Wall.Seconds(), r.Usage.CPU.Seconds(), r.Usage.MemoryPeak>>20, r.Decision.Verdict, strings.Join(held, ", "))
}

func mebibytes(n int64) string {
	const mib = 1 << 20
	if n <= 0 {
		return "its limit"
	}
	return fmt.Sprintf("%d MiB", n/mib)
}

// ending is how the process ends after a command that ran. sig is the first
// signal that came from outside, or 0.
func ending(r runner.Result, sig syscall.Signal) error {
	switch {
	case r.Cause == runner.TimedOut:
		return silent(exitTimeout)
	case r.Cause == runner.HelperLost:
		return silent(exitFailed)
	case r.Cause == runner.Cancelled || r.Cause == runner.CancelledByUser:
		return killedBy(sig)
	case r.Signal != 0:
		return killedBy(r.Signal)
	case r.Cause == runner.OutputLimit && r.ExitCode == 0:
		return silent(128 + int(syscall.SIGTERM)) // it ended in good order, but did not do all
	case r.ExitCode != 0:
		return silent(r.ExitCode)
	}
	return nil
}

func (e *env) dryRun(cmd runner.Command) error {
	preview, err := runner.DryRun(cmd)
	if preview.Decision.Verdict != 0 {
		printDecision(e.stdout, preview.Decision)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout)
	for _, v := range preview.Env {
		name, _, _ := strings.Cut(v, "=")
		fmt.Fprintln(e.stdout, "environment", policy.Escape(name))
	}
	fmt.Fprintln(e.stdout)
	fmt.Fprintln(e.stdout, strings.TrimRight(preview.Setup, "\n"))
	lines(e.stderr, told(append(e.notices, preview.Notices...))...)
	return nil
}

// inherited returns descriptor n, which the caller must have opened for us:
// those that the Go runtime opens for itself are closed on exec.
func inherited(n int) (*os.File, error) {
	flags, err := descriptorFlags(n)
	if err != nil || flags&syscall.FD_CLOEXEC != 0 {
		return nil, errors.New("no such descriptor is open")
	}
	syscall.CloseOnExec(n)
	return os.NewFile(uintptr(n), fmt.Sprint("descriptor ", n)), nil
}
