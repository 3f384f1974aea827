package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// entry is a line of --audit: of the report what is worth keeping of every run.
type entry struct {
	Version   int               `json:"version"`
	Time      time.Time         `json:"time"` // of the start
	UID       int               `json:"uid"`
	PID       int               `json:"pid"`
	Origin    runner.Origin     `json:"origin,omitempty"`
	Profile   string            `json:"profile,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	Workspace string            `json:"workspace,omitempty"`
	Cwd       string            `json:"cwd,omitempty"`
	Command   string            `json:"command,omitempty"`
	Argv      []string          `json:"argv,omitempty"`
	Verdict   string            `json:"verdict,omitempty"`
	Reasons   []policy.Reason   `json:"reasons,omitempty"` // of what was not just allowed
	Answered  bool              `json:"answered,omitempty"`
	Ran       bool              `json:"ran"`
	Cause     runner.Cause      `json:"cause,omitempty"`
	ExitCode  *int              `json:"exit_code,omitempty"`
	Signal    string            `json:"signal,omitempty"`
	Status    int               `json:"status"`
	Error     string            `json:"error,omitempty"`
	Tier      string            `json:"tier,omitempty"`
	Layers    map[string]string `json:"layers,omitempty"`
	Usage     *sandbox.Usage    `json:"usage,omitempty"`
	Notices   []runner.Notice   `json:"notices,omitempty"`
	Hosts     []sandbox.Contact `json:"hosts,omitempty"`
}

// openAudit opens the file, before anything runs. nil means that none is
// wanted.
func openAudit(f *flagSet) (*os.File, error) {
	path := f.String("audit")
	switch {
	case path == "" && f.Bool("audit-sync"):
		return nil, misuse("--audit-sync: there is no --audit FILE", "")
	case path == "":
		return nil, nil
	}
	return openRegular("--audit", path, os.O_APPEND)
}

// hideAudit hides the file from the command, and refuses one in a directory
// that the command can write to: it could put another file in its place.
func hideAudit(log *os.File, cmd *runner.Command) error {
	if log == nil {
		return nil
	}
	path, err := filepath.Abs(log.Name())
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return misuse("--audit: "+err.Error(), "")
	}
	cmd.Profile.Hide = append(slices.Clip(cmd.Profile.Hide), path)
	spec, err := runner.Resolve(*cmd)
	if err != nil {
		return err
	}
	if sandbox.AccessOf(spec.Files, filepath.Dir(path)) == sandbox.ReadWrite {
		if info, err := log.Stat(); err == nil && info.Size() == 0 {
			os.Remove(path) // we made it
		}
		return misuse(fmt.Sprintf("--audit %q: the command can write to its directory", log.Name()), "name a file outside of the workspace")
	}
	return nil
}

// record appends the run's line. The line is whole or not there: writers take
// turns, and of a line that did not fit on the disk nothing stays.
func (r *report) record(log *os.File, ended error, sync bool) error {
	defer log.Close()
	r.finish(ended)
	e := entry{
		Version: 1, Time: r.Started, UID: os.Getuid(), PID: os.Getpid(),
		Origin: r.Origin, Profile: r.Profile, Mode: r.Mode, Workspace: r.Space, Cwd: r.Cwd, Command: r.Command, Argv: r.Argv,
		Answered: r.Answered, Ran: r.Ran, Cause: r.Cause, ExitCode: r.ExitCode, Signal: r.Signal, Status: r.Status,
		Error: r.Error, Usage: r.Usage, Notices: r.Notices, Hosts: r.Hosts,
	}
	if d := r.Decision; d != nil {
		e.Verdict = d.Verdict.String()
		for _, t := range d.Targets {
			if t.Verdict != policy.Allow && !slices.Contains(e.Reasons, t.Reason) {
				e.Reasons = append(e.Reasons, t.Reason)
			}
		}
	}
	if s := r.Sandbox; s != nil {
		e.Tier, e.Layers = s.Tier, map[string]string{}
		for _, layer := range s.Layers {
			e.Layers[layer.Name] = layer.State.String()
		}
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for {
		if err = unix.Flock(int(log.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return err
	}
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := log.Write(append(line, '\n')); err != nil {
		return errors.Join(err, log.Truncate(end))
	}
	if sync {
		return log.Sync()
	}
	return nil
}
