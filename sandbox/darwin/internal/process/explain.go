//go:build darwin || linux

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// explain is the error for a program that did not run.
func explain(r *request, m message) error {
	if m.kind == refused {
		return explainTool(syscall.WaitStatus(m.n[0]), string(m.body))
	}
	if m.kind != failed {
		return &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: "wait for the helper", Err: errMessage}
	}
	err, what := syscall.Errno(m.n[1]), string(m.body)
	switch m.n[0] {
	case stepDescriptors:
		return &sandbox.SetupError{Layer: sandbox.LayerDescriptors, Step: "close what is not the program's", Err: err}
	case stepTrack:
		return &sandbox.SetupError{Layer: sandbox.LayerWatch, Step: "make a queue for events of processes", Err: err}
	case stepLimit:
		return &sandbox.SetupError{Layer: sandbox.LayerRlimits, Step: "set " + what, Err: err}
	case stepExec:
		return &sandbox.ExecError{Path: r.path, Err: err}
	case stepTool:
		if errors.Is(err, fs.ErrNotExist) {
			return &sandbox.UnsupportedError{
				Layer: sandbox.LayerSeatbelt, Want: r.tool, Have: "no such file, or no directory " + r.dir,
				Hint: "it is part of macOS; nothing else applies a profile",
			}
		}
		return &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: "start " + r.tool + " in " + r.dir, Err: err}
	case stepCheck:
		want, got := "fail with "+fmt.Sprintf("%q", syscall.Errno(m.n[2]).Error()), fmt.Sprintf("%q", err.Error())
		if m.n[2] == 0 {
			want = "work"
		}
		if err == 0 {
			got = "that it works"
		}
		return &sandbox.SetupError{
			Layer: sandbox.LayerSeatbelt, Step: what,
			Err:  fmt.Errorf("it must %s, got %s: the profile does not hold", want, got),
			Hint: reportIt,
		}
	}
	return &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: "wait for the helper", Err: errMessage}
}

const reportIt = "report it with what sandbox-exec doctor and sandbox-exec seatbelt print; nothing was run"

// explainTool is the error for a tool, or what it turned into, that ended before
// the helper inside had its say. A profile that cannot be read, a sandbox around
// us and a loader that dies under the profile look alike from outside; the words
// on stderr tell them apart where there are any.
func explainTool(status syscall.WaitStatus, words string) error {
	words = oneLine(words)
	switch {
	case strings.Contains(words, "sandbox_apply") && strings.Contains(words, "not permitted"):
		// Exit status 71, EX_OSERR.
		return &sandbox.UnsupportedError{
			Layer: sandbox.LayerSeatbelt, Want: "a sandbox of its own", Have: "another sandbox around it: " + words,
			Hint: "macOS does not put a sandbox into a sandbox: start sandbox-exec outside of the other one (an agent's own, swift build, bazel, an app's), or turn that one off for this command",
		}
	case strings.Contains(words, "execvp()"):
		return &sandbox.SetupError{
			Layer: sandbox.LayerSeatbelt, Step: "execute the helper inside", Err: errors.New(words),
			Hint: "the binary of sandbox-exec must be readable and executable by the command: install it below /usr/local, /opt/homebrew or the home, in no hidden directory",
		}
	case status.Signaled():
		err := fmt.Errorf("the helper died of signal %d (%v) inside", int(status.Signal()), status.Signal())
		if words != "" {
			err = fmt.Errorf("%w: %s", err, words)
		}
		return &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: "start the helper inside", Err: err, Hint: "the profile keeps the loader from its files; " + reportIt}
	case words == "":
		words = fmt.Sprintf("exit status %d without a word", status.ExitStatus())
	}
	return &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: "apply the profile", Err: errors.New(words), Hint: reportIt}
}

// oneLine makes what a program wrote fit for a line of a message.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r > '~':
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(len(s), 300)]
}
