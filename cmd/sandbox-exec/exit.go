package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/cmd/sandbox-exec/selftest"
	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Exit statuses of our own. They follow env(1) and timeout(1) and can collide
// with those of the command; --report has the truth.
const (
	exitTimeout  = 124
	exitFailed   = 125 // sandbox-exec itself: usage, setup, unsupported, a bad file
	exitRefused  = 126 // denied, not approved, or found but not executable
	exitNotFound = 127
)

// usageError is a command line that makes no sense.
type usageError struct{ what, hint string }

func (e *usageError) Error() string { return e.what }

func misuse(what, hint string) error { return &usageError{what, hint} }

// silent ends the process with a status and says nothing.
type silent int

func (s silent) Error() string { return fmt.Sprint("exit status ", int(s)) }

// killedBy ends the process by a signal, so that whoever waits for it sees
// what it would see of the command itself.
type killedBy syscall.Signal

func (k killedBy) Error() string { return syscall.Signal(k).String() }

// exit ends the process as err says.
func exit(err error, stderr io.Writer) {
	status, signal, said := outcome(err)
	lines(stderr, said...)
	if signal != 0 {
		die(signal)
	}
	os.Exit(status)
}

// outcome is the exit status, or the signal, with which the process ends, and
// what it says before.
func outcome(err error) (status int, signal syscall.Signal, said []string) {
	var known silent
	var by killedBy
	switch {
	case err == nil:
		return 0, 0, nil
	case errors.As(err, &known):
		return int(known), 0, nil
	case errors.As(err, &by):
		return 0, syscall.Signal(by), nil
	}
	return statusOf(err), 0, explain(err)
}

// statusOf is the exit status for a command that was not run.
func statusOf(err error) int {
	var refused *runner.RefusedError
	var notRun *sandbox.ExecError
	switch {
	case errors.As(err, &refused):
		return exitRefused
	case errors.As(err, &notRun):
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return exitNotFound
		}
		return exitRefused
	case errors.Is(err, context.Canceled):
		return 128 + int(syscall.SIGINT)
	}
	return exitFailed
}

// explain says what happened and why, and in a line of its own what to do.
func explain(err error) []string {
	var refused *runner.RefusedError
	if errors.As(err, &refused) {
		var with *refusal
		hint := "sandbox-exec check shows every part of the decision"
		if errors.As(err, &with) {
			hint = with.hint
		}
		return explainRefusal(refused, hint)
	}
	what, line, hint := err.Error(), "", ""
	var misused *usageError
	var command *runner.CommandError
	var spec *sandbox.SpecError
	var setup *sandbox.SetupError
	var unsupported *sandbox.UnsupportedError
	var program *sandbox.ExecError
	var profile *profiles.Error
	var state *runner.StateError
	var rule *policy.RuleError
	var test *selftest.Error
	var busy *runner.BusyError
	switch {
	case errors.As(err, &misused):
		hint = misused.hint
	case errors.As(err, &command):
		hint = command.Hint
	case errors.As(err, &spec):
		hint = spec.Hint
	case errors.As(err, &setup):
		hint = setup.Hint
		if hint == "" {
			hint = "sandbox-exec doctor shows what this machine can enforce"
		}
	case errors.As(err, &unsupported):
		hint = unsupported.Hint
		if hint == "" {
			hint = "sandbox-exec doctor shows what this machine can enforce"
		}
	case errors.As(err, &program):
		if errors.Is(err, exec.ErrNotFound) {
			hint = "it is in no directory of the command's PATH"
		} else if errors.Is(err, fs.ErrPermission) {
			hint = "it is no file that may be executed (chmod +x FILE), or it lies where the command cannot look"
		}
	case errors.As(err, &state):
		hint = state.Hint
	case errors.As(err, &test):
		hint = test.Hint
	case errors.As(err, &busy):
		hint = "--exclusive wait waits for its end"
	case errors.As(err, &profile): // before the rule in it
		hint = profile.Hint
		if profile.Text != "" {
			line = fmt.Sprintf("%d | %s", profile.Line, strings.ReplaceAll(profile.Text, "\t", " "))
		}
	case errors.As(err, &rule):
		hint = "the rule was not stored"
	}
	if hint != "" {
		hint = "hint: " + hint
	}
	return []string{"error: " + what, line, hint}
}

// explainRefusal names the targets for which a command was refused.
func explainRefusal(err *runner.RefusedError, hint string) []string {
	var targets []policy.Target
	what := "denied"
	var denied *policy.DeniedError
	var ask *policy.NeedsApprovalError
	switch {
	case errors.As(err, &denied):
		targets = denied.Targets
	case errors.As(err, &ask):
		targets = ask.Targets
		what = "not approved"
	}
	targets = distinct(targets)
	var out []string
	for _, t := range firstOf(targets, 3) {
		if t.Reason == policy.SyntaxError {
			out = append(out, display(t)+": "+reason(t))
			continue
		}
		out = append(out, what+": "+display(t)+": "+reason(t))
	}
	if n := len(targets) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("%s: and %d more", what, n))
	}
	if len(out) == 0 {
		out = append(out, what)
	}
	if err.Reason != "" {
		out = append(out, "why: "+err.Reason)
	}
	if hint != "" {
		out = append(out, "hint: "+hint)
	}
	return out
}

func firstOf[T any](list []T, n int) []T { return list[:min(n, len(list))] }
