package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// report is the JSON of --report. Fields are added, never renamed; Version
// counts the changes that are not additions.
type report struct {
	Version  int              `json:"version"`
	Ran      bool             `json:"ran"`
	Task     string           `json:"task,omitempty"`      // it goes on in the background, as this task
	Cause    runner.Cause     `json:"cause,omitempty"`     // why it ended; missing when it did not run
	ExitCode *int             `json:"exit_code,omitempty"` // the command's own; missing when it did not exit by itself
	Signal   string           `json:"signal,omitempty"`    // what it died of
	Error    string           `json:"error,omitempty"`     // why it did not run
	Decision *policy.Decision `json:"decision,omitempty"`
	Sandbox  *sandbox.Report  `json:"sandbox,omitempty"`
	Usage    *sandbox.Usage   `json:"usage,omitempty"`
	Notices  []runner.Notice  `json:"notices,omitempty"`
}

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
	r.Notices = append(r.Notices, result.Notices...)
}

func (r *report) write(out *os.File, err error) error {
	if !r.Ran && err != nil {
		r.Error = err.Error()
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = out.Write(append(data, '\n'))
	return errors.Join(err, out.Close())
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
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, misuse("--report: "+err.Error(), "")
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = f.Truncate(0)
	} else if err == nil {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, misuse(fmt.Sprintf("--report %q: %v", target, err), "")
	}
	return f, nil
}
