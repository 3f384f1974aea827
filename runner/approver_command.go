package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

const (
	// DefaultApproverTimeout is how long an approver may take.
	DefaultApproverTimeout = time.Minute
	// maxAnswer bounds what an approver says, in bytes.
	maxAnswer = 64 << 10
)

// CommandApprover asks a program: it writes one request as JSON to its
// standard input and reads one answer as JSON from its standard output.
// docs/approval.md has the protocol.
//
// Only a program that ends with status 0 in time, after one answer to this
// request that is among the offered ones, has answered. All else is an error.
type CommandApprover struct {
	// Args are the program and its arguments; no shell reads them. A name
	// without a slash is looked up in the caller's PATH. A program in the
	// command's workspace is refused, since a command could have put it there.
	Args    []string
	Timeout time.Duration // 0 = DefaultApproverTimeout
}

// approvalRequest is what the program reads.
type approvalRequest struct {
	Version   int             `json:"version"`
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Command   string          `json:"command,omitempty"`
	Args      []string        `json:"argv,omitempty"`
	Dir       string          `json:"cwd"`
	Workspace string          `json:"workspace"`
	Profile   string          `json:"profile"`
	Decision  policy.Decision `json:"decision"`
	Sandbox   Holds           `json:"sandbox"`
	Choices   []Choice        `json:"choices"`
	Rules     []string        `json:"rules"`
}

// approvalAnswer is what the program writes.
type approvalAnswer struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Answer  Choice `json:"answer"`
	Reason  string `json:"reason"`
}

// Approve implements Approver.
func (a *CommandApprover) Approve(ctx context.Context, r Request) (Answer, error) {
	answer, err := a.ask(ctx, r)
	if err != nil && ctx.Err() == nil {
		name := ""
		if len(a.Args) > 0 {
			name = a.Args[0]
		}
		err = fmt.Errorf("approver %q: %w", name, err)
	}
	return answer, err
}

func (a *CommandApprover) ask(ctx context.Context, r Request) (Answer, error) {
	program, err := a.program(r.Workspace)
	if err != nil {
		return Answer{}, err
	}
	q := approvalRequest{
		Version: 1, ID: nonce(), Kind: r.kind(), Command: r.Script, Args: r.Args, Dir: r.Dir, Workspace: r.Workspace,
		Profile: r.Profile, Decision: r.Decision, Sandbox: r.Sandbox, Choices: r.choices(), Rules: []string{},
	}
	for _, rule := range r.Rules {
		q.Rules = append(q.Rules, rule.Pattern)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return Answer{}, err
	}
	timeout := a.Timeout
	if timeout == 0 {
		timeout = DefaultApproverTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	said := capped{max: maxAnswer, over: cancel}
	complaint := capped{max: 1 << 10}
	cmd := exec.CommandContext(limited, program, a.Args[1:]...)
	cmd.Dir = "/" // not a directory whose files the command can write
	cmd.Stdin = bytes.NewReader(append(text, '\n'))
	cmd.Stdout, cmd.Stderr = &said, &complaint
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case said.cut:
		return Answer{}, fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	case limited.Err() != nil:
		return Answer{}, fmt.Errorf("no answer in %v", timeout)
	case err != nil:
		if first, _, _ := strings.Cut(strings.TrimSpace(complaint.text.String()), "\n"); first != "" {
			err = fmt.Errorf("%w: %s", err, policy.Escape(first))
		}
		return Answer{}, err
	}
	return q.read(said.text.Bytes())
}

// read takes an answer, which must be one to this request.
func (q *approvalRequest) read(text []byte) (Answer, error) {
	var in approvalAnswer
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&in)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one answer")
		}
	}
	switch {
	case err != nil:
		return Answer{}, fmt.Errorf("no answer that can be read: %w", err)
	case in.Version != q.Version:
		return Answer{}, fmt.Errorf("an answer of version %d; this is version %d", in.Version, q.Version)
	case in.ID != q.ID:
		return Answer{}, errors.New("an answer to another request")
	case !slices.Contains(q.Choices, in.Answer):
		return Answer{}, fmt.Errorf("the answer %q is none of %q", in.Answer, q.Choices)
	}
	a := Answer{Allow: in.Answer != Deny, Reason: in.Reason}
	if in.Answer == ForSession || in.Answer == ForProject {
		a.Remember = in.Answer
	}
	return a, nil
}

// program finds the program, by the PATH of this process.
func (a *CommandApprover) program(workspace string) (string, error) {
	if len(a.Args) == 0 || a.Args[0] == "" {
		return "", errors.New("there is no program to ask")
	}
	path, err := exec.LookPath(a.Args[0]) // refuses what it finds by a relative entry of PATH
	if err != nil {
		return "", errors.Unwrap(err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", cause(err)
	}
	for _, p := range []string{path, real} {
		if workspace != "" && within(p, workspace) {
			return "", fmt.Errorf("%s is in the workspace, where a command could have put it", p)
		}
	}
	return path, nil
}

// FirstAnswer asks one approver after the other until one has answered. Nil
// ones are left out.
func FirstAnswer(approvers ...Approver) Approver {
	approvers = slices.DeleteFunc(slices.Clone(approvers), func(a Approver) bool { return a == nil })
	if len(approvers) == 0 {
		return nil
	}
	return firstAnswer(approvers)
}

type firstAnswer []Approver

func (list firstAnswer) Approve(ctx context.Context, r Request) (Answer, error) {
	var all error
	for _, a := range list {
		answer, err := a.Approve(ctx, r)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
		all = errors.Join(all, err)
	}
	return Answer{}, all
}

func nonce() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// capped keeps the first max bytes and tells when there are more.
type capped struct {
	max  int
	over func() // or nil
	text bytes.Buffer
	cut  bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := min(len(p), c.max-c.text.Len())
	c.text.Write(p[:room])
	if room < len(p) && !c.cut {
		c.cut = true
		if c.over != nil {
			c.over()
		}
	}
	return len(p), nil
}
