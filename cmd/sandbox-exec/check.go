package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
)

// maxRequest is the longest line that check --jsonl reads, in bytes.
const maxRequest = 16 << 20

func (e *env) check(c *cli.Context) error {
	f := &flagSet{Context: c}
	cmd, err := e.common(f)
	if err != nil {
		return err
	}
	if f.Bool("jsonl") {
		if cmd.Script != "" || cmd.Args != nil {
			return misuse("--jsonl reads its commands from stdin", "leave out -c and --")
		}
		return answerLines(e.stdin, e.stdout, cmd, e.profileAt(f, cmd.Profile))
	}
	if cmd.Script == "" && len(cmd.Args) == 0 {
		return misuse("nothing to check", "sandbox-exec check [FLAGS] -- PROGRAM [ARG...], -c TEXT, or --jsonl")
	}
	if err := homeIsNamed(f, cmd); err != nil {
		return err
	}
	lines(e.stderr, told(e.notices)...)
	d, err := runner.Decide(cmd)
	if err != nil {
		return err
	}
	switch {
	case f.Bool("explain"):
		fmt.Fprint(e.stdout, d.Explain(cmd.Script))
		if d.Verdict == policy.Ask {
			fmt.Fprintf(e.stdout, "\nhint: %s\n", remedy(d, cmd))
		}
	case f.Bool("json"):
		if err := e.printJSON(d); err != nil {
			return err
		}
	default:
		printDecision(e.stdout, d)
	}
	switch d.Verdict {
	case policy.Allow:
		return nil
	case policy.Ask:
		return silent(3)
	}
	return silent(4)
}

// printDecision writes one line for the call and one for each of its parts.
func printDecision(w io.Writer, d policy.Decision) {
	extra := ""
	if d.ReadOnly {
		extra = " (read-only)"
	}
	fmt.Fprintf(w, "%s%s\n", d.Verdict, extra)
	for _, t := range d.Targets {
		fmt.Fprintf(w, "  %-5s %s: %s\n", t.Verdict, display(t), reason(t))
	}
	for _, r := range d.Opaque {
		fmt.Fprintf(w, "  opaque: %s\n", r)
	}
}

// request is a line of check --jsonl.
type request struct {
	ID        json.RawMessage `json:"id"`
	Cmd       *string         `json:"cmd"`
	Argv      []string        `json:"argv"`
	Cwd       string          `json:"cwd"`
	Workspace string          `json:"workspace"`
	Home      string          `json:"home"`
	Mode      *policy.Mode    `json:"mode"`
}

// answer is the line that answers it.
type answer struct {
	ID json.RawMessage `json:"id,omitempty"`
	*policy.Decision
	Error string `json:"error,omitempty"`
}

// profileAt returns what finds the profile for a line: for one that names its
// place, by the settings there, as the project's file and the stored rules are
// those of a workspace.
func (e *env) profileAt(f *flagSet, here *profiles.Profile) func(runner.Where) (*profiles.Profile, error) {
	known := map[runner.Where]*profiles.Profile{{}: here}
	return func(at runner.Where) (*profiles.Profile, error) {
		key := runner.Where{Dir: at.Dir, Workspace: at.Workspace}
		if p := known[key]; p != nil {
			return p, nil
		}
		settings, err := runner.LoadSettingsAt(at)
		if err == nil {
			err = e.inSession(f, settings)
		}
		if err != nil {
			return nil, err
		}
		p, _, err := e.profile(f, settings)
		if err == nil && len(known) < 1000 {
			known[key] = p
		}
		return p, err
	}
}

// answerLines answers one request a line, in order, each before the next is
// read. A line that is no request is answered with an error.
func answerLines(in io.Reader, out io.Writer, cmd runner.Command, profileAt func(runner.Where) (*profiles.Profile, error)) error {
	r := bufio.NewReaderSize(in, 64<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		line, long, err := readLine(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		a := answer{Error: fmt.Sprintf("longer than %d bytes", maxRequest)}
		if !long {
			a = decideLine(line, cmd, profileAt)
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

// readLine returns the next line. One that is too long is skipped, so that the
// next can be read.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxRequest; !long {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && (long || len(line) > 0):
			return line, long, nil
		default:
			return line, long, err
		}
	}
}

// decideLine answers a request. What it does not say of the place is taken
// from the command line.
func decideLine(line []byte, cmd runner.Command, profileAt func(runner.Where) (*profiles.Profile, error)) answer {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return answer{Error: err.Error()}
	}
	a := answer{ID: req.ID}
	if (req.Cmd == nil) == (req.Argv == nil) {
		a.Error = "want either cmd or argv"
		return a
	}
	if req.Cmd != nil {
		cmd.Script = *req.Cmd
	}
	cmd.Args = req.Argv
	at := runner.Where{Dir: req.Cwd, Workspace: req.Workspace, Home: req.Home}
	var err error
	if cmd.Profile, err = profileAt(at); err != nil {
		a.Error = err.Error()
		return a
	}
	if req.Mode != nil {
		p := *cmd.Profile
		p.Mode = *req.Mode
		cmd.Profile = &p
	}
	d, err := runner.DecideAt(cmd, at)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Decision = &d
	return a
}
