package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// report is the JSON of --report and --json; docs/report.schema.json describes
// it. Fields are added, never renamed; Version counts the changes that are not
// additions.
type report struct {
	Version  int               `json:"version"`
	Ran      bool              `json:"ran"`
	Task     string            `json:"task,omitempty"`      // it goes on in the background, as this task
	Cause    runner.Cause      `json:"cause,omitempty"`     // why it ended; missing when it did not run
	ExitCode *int              `json:"exit_code,omitempty"` // the command's own; missing when it did not exit by itself
	Signal   string            `json:"signal,omitempty"`    // what it died of
	Status   int               `json:"status"`              // the exit status of sandbox-exec itself; 128+n for a signal
	Error    string            `json:"error,omitempty"`     // why it did not run
	Hint     string            `json:"hint,omitempty"`      // what to do about that
	Text     string            `json:"text,omitempty"`      // what to tell a model; with --json
	Output   *output           `json:"output,omitempty"`    // with --json
	Decision *policy.Decision  `json:"decision,omitempty"`
	Answered bool              `json:"answered,omitempty"` // somebody answered a question about it
	Sandbox  *sandbox.Report   `json:"sandbox,omitempty"`
	Usage    *sandbox.Usage    `json:"usage,omitempty"`
	Notices  []runner.Notice   `json:"notices,omitempty"`
	Hosts    []sandbox.Contact `json:"hosts,omitempty"` // that it asked for

	Started  time.Time     `json:"started"`
	Origin   runner.Origin `json:"origin,omitempty"`
	Profile  string        `json:"profile,omitempty"`
	Mode     string        `json:"mode,omitempty"`
	Command  string        `json:"command,omitempty"`
	Argv     []string      `json:"argv,omitempty"`
	Space    string        `json:"workspace,omitempty"`
	Cwd      string        `json:"cwd,omitempty"`
	FinalCwd string        `json:"final_cwd,omitempty"`   // where the shell was in the end, if it is known
	Env      []string      `json:"environment,omitempty"` // names of the command's variables
	Timeout  time.Duration `json:"timeout_ns,omitempty"`
	Limit    int64         `json:"output_limit_bytes,omitempty"`

	tool bool // the call of a tool: Text and Output are filled in
}

// output is what was captured.
type output struct {
	Merged bool    `json:"merged,omitempty"` // stdout is both
	Stdout stream  `json:"stdout"`
	Stderr *stream `json:"stderr,omitempty"`
}

type stream struct {
	Tail      string `json:"tail"`                  // the end; what is no UTF-8 is U+FFFD
	Base64    []byte `json:"tail_base64,omitempty"` // its bytes, where that is not exact
	Bytes     int64  `json:"bytes"`
	Lines     int64  `json:"lines"`
	Truncated bool   `json:"truncated"`
	File      string `json:"file,omitempty"`     // holds the whole
	Redacted  int    `json:"redacted,omitempty"` // values that were replaced
}

func newStream(s runner.Stream) stream {
	out := stream{Tail: s.Text(), Bytes: s.Bytes, Lines: s.Lines, Truncated: s.Truncated(), File: s.File, Redacted: s.Redacted}
	if !utf8.Valid(s.Tail) {
		out.Base64 = s.Tail
	}
	return out
}

func newReport(tool bool) *report { return &report{Version: 1, Started: time.Now(), tool: tool} }

// describe fills in what is known before anything runs.
func (r *report) describe(cmd runner.Command) {
	r.Origin = cmd.Origin
	if r.Origin == "" {
		r.Origin = runner.Agent
	}
	r.Profile, r.Mode = cmd.Profile.Name, cmd.Profile.Mode.String()
	r.Command, r.Argv = cmd.Script, cmd.Args
	r.Space = cmd.Settings.Workspace
}

// set fills in what is known of a command that ran.
func (r *report) set(result runner.Result) {
	r.Ran = true
	r.Cause = result.Cause
	if result.ExitCode >= 0 {
		r.ExitCode = &result.ExitCode
	}
	if result.Signal != 0 {
		r.Signal = unix.SignalName(result.Signal)
	}
	r.Decision, r.Sandbox, r.Usage = &result.Decision, &result.Sandbox, &result.Usage
	r.Hosts = result.Contacts
	r.Notices = append(r.Notices, result.Notices...)
	r.Started, r.Cwd, r.FinalCwd, r.Env = result.Started, result.Dir, result.FinalDir, result.Env
	r.Timeout, r.Limit = result.Timeout, result.OutputLimit
	if r.tool {
		r.Text = result.Text()
		r.capture(result.Output)
	}
}

// capture fills in the output.
func (r *report) capture(out runner.Output) {
	r.Output = &output{Merged: out.Merged, Stdout: newStream(out.Stdout)}
	if !out.Merged {
		stderr := newStream(out.Stderr)
		r.Output.Stderr = &stderr
	}
}

// finish fills in how sandbox-exec itself ends.
func (r *report) finish(err error) {
	status, signal, said := outcome(err)
	if r.Status = status; signal != 0 {
		r.Status = 128 + int(signal)
	}
	if r.Ran || err == nil {
		return
	}
	r.Error, r.Text = err.Error(), ""
	var b strings.Builder
	lines(&b, said...)
	for line := range strings.Lines(b.String()) {
		line = strings.TrimPrefix(line, "sandbox-exec: ")
		if hint, ok := strings.CutPrefix(line, "hint: "); ok {
			r.Hint = strings.TrimSuffix(hint, "\n")
		}
		r.Text += line
	}
	if r.Text = "[not run] " + r.Text; !r.tool {
		r.Text = ""
	}
}

func (r *report) encode(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// write writes the report of a run, which ended with err, and closes out.
func (r *report) write(out *os.File, err error) error {
	r.finish(err)
	return errors.Join(r.encode(out), out.Close())
}

// openReport opens where the report goes, before anything runs that could put
// a link in its place. nil means that none is wanted.
func openReport(target string) (*os.File, error) {
	if target == "" {
		return nil, nil
	}
	if number, ok := strings.CutPrefix(target, "fd:"); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return nil, misuse(fmt.Sprintf("--report %q: want fd:N, the number of an open descriptor", target), "")
		}
		if n <= 2 {
			return os.NewFile(uintptr(n), target), nil
		}
		f, err := inherited(n)
		if err != nil {
			return nil, misuse(fmt.Sprintf("--report %q: %v", target, err), "")
		}
		return f, nil
	}
	f, err := openRegular("--report", target, 0)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, misuse(fmt.Sprintf("--report %q: %v", target, err), "")
	}
	return f, nil
}

// openRegular opens a file for writing, or makes it for its user alone. A link,
// a FIFO or a device is none.
func openRegular(flag, path string, more int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|more, 0o600)
	if err != nil {
		return nil, misuse(flag+": "+err.Error(), "")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, misuse(fmt.Sprintf("%s %q: %v", flag, path, err), "")
	}
	return f, nil
}
