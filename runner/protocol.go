package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// Choice is an answer to a question, as the protocol of approvals writes it.
type Choice string

const (
	Once       Choice = "once"
	ForSession Choice = "session" // and for its like in the calls of this session
	ForProject Choice = "project" // and for its like in this workspace, from now on
	Deny       Choice = "deny"
)

// Holds is what the sandbox will hold a command to in spite of a yes.
type Holds struct {
	Workspace string   `json:"workspace"` // access to it: "none", "read-only" or "read-write"
	Network   string   `json:"network"`   // "off", "localhost", "allow" or "host"
	Read      []string `json:"read"`      // paths that the yes opens for reading
	Write     []string `json:"write"`     // paths that the yes opens for writing
}

func holds(p *profiles.Profile, asked []policy.Target) Holds {
	h := Holds{Workspace: p.Workspace.String(), Network: p.Network.String(), Read: []string{}, Write: []string{}}
	for _, t := range asked {
		switch {
		case !opens(t) || t.Reason == policy.FileChange || t.Reason == policy.InsideRoot:
		case t.Action == policy.FileRead:
			h.Read = append(h.Read, t.Resource)
		case t.Action == policy.FileWrite:
			h.Write = append(h.Write, t.Resource)
		}
	}
	return h
}

// opens says whether a yes to a question about t opens a path: one that is
// shown in full and is not protected.
func opens(t policy.Target) bool {
	return (t.Action == policy.FileRead || t.Action == policy.FileWrite) &&
		!t.Dynamic && strings.HasPrefix(t.Resource, "/") && t.Reason != policy.ProtectedPath
}

// asked are the targets that need an answer.
func asked(d policy.Decision) []policy.Target {
	return slices.DeleteFunc(slices.Clone(d.Targets), func(t policy.Target) bool { return t.Verdict != policy.Ask })
}

// kind is what the request asks about: a command, or only paths, hosts or
// tools.
func (r *Request) kind() string {
	kind := ""
	for _, t := range asked(r.Decision) {
		this := "command"
		switch t.Action {
		case policy.FileRead, policy.FileWrite:
			this = "path"
		case policy.NetworkTo:
			this = "host"
		case policy.Tool:
			this = "tool"
		}
		if kind != "" && this != kind {
			return "command"
		}
		kind = this
	}
	return cmp.Or(kind, "command")
}

// choices are the answers that can be given.
func (r *Request) choices() []Choice {
	return append(append([]Choice{Once}, r.Remember...), Deny)
}

// suggest returns the rules that answer the question from now on; none where no
// rule may: for danger, for what is known only when it runs, for what a yes opens,
// which is for one run, and for words that a rule would read as patterns.
func (k *call) suggest() []policy.Rule {
	for _, t := range asked(k.decision) {
		if t.Reason == policy.OutsideRead || t.Reason == policy.OutsideWrite {
			return nil
		}
	}
	script := k.Script
	if script == "" {
		for _, arg := range k.Args {
			script += "'" + strings.ReplaceAll(arg, "'", `'\''`) + "' "
		}
	}
	rules := k.profile.Policy().Suggest(script, k.scope)
	for _, r := range rules {
		tokens, err := TokensOf(r.Action, r.Pattern)
		if err != nil || CheckRule(r, tokens) != nil {
			return nil
		}
		if n := len(tokens) - 1; n > 0 && tokens[n] == "*" {
			tokens = tokens[:n]
		}
		if slices.ContainsFunc(tokens, func(t string) bool { return strings.ContainsAny(t, "*?[{") }) {
			return nil
		}
	}
	if len(rules) == 0 || k.decideWith(rules).Verdict != policy.Allow {
		return nil
	}
	return rules
}

// CheckRule says what keeps a rule from being stored: it is not valid, or it
// allows what is always a question, so that it would have no effect. tokens
// are those of its pattern.
func CheckRule(r policy.Rule, tokens []string) error {
	judge := policy.Policy{Rules: []policy.Rule{r}}
	if err := judge.Check(); err != nil {
		return err
	}
	if r.Verdict != policy.Allow || r.Action != "" && r.Action != policy.Exec {
		return nil
	}
	// A rule for any further words is judged by what it allows without one and
	// with one.
	calls := [][]string{tokens}
	if n := len(tokens) - 1; n > 0 && tokens[n] == "*" {
		calls = [][]string{tokens[:n], append(slices.Clone(tokens[:n]), "x")}
	}
	for _, argv := range calls {
		d := judge.DecideArgs(argv, policy.Scope{Cwd: "/workspace", Workspace: "/workspace", Home: "/home/user"})
		for _, t := range d.Targets {
			if t.Stage == policy.StageDanger || t.Stage == policy.StageBreaker {
				return &policy.RuleError{Rule: r, Problem: "this is always a question, whatever the rules: " + cmp.Or(t.Detail, string(t.Reason))}
			}
		}
	}
	return nil
}

// Session remembers answers for the calls that share it. The zero value has
// none. It may be used by several goroutines: of the calls that share it one
// asks at a time, and an answer ForSession holds for those that wait.
type Session struct {
	mu     sync.Mutex
	rules  []policy.Rule
	asking chan struct{} // full while a call asks
}

func (s *Session) remember(rules []policy.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rules {
		r.Source = "an answer in this session"
		s.rules = append(s.rules, r)
	}
}

// allowed are the rules of the answers; none for nil.
func (s *Session) allowed() []policy.Rule {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rules)
}

// review lets settle the question of a decision without an approver: who wrote
// the command has answered, or, in mode auto, the reviewer may settle what only
// the mode's default asks. nil where neither did; silence is why not.
func review(ctx context.Context, c *Command, p *profiles.Profile, r Request) (answer *Answer, silence string, err error) {
	if c.Origin == User {
		return &Answer{Allow: true}, "", nil
	}
	if p.Mode != policy.ModeAuto || c.Reviewer == nil || !reviewable(r.Decision) {
		return nil, "", nil
	}
	r.Remember, r.Rules = nil, nil
	a, err := c.Reviewer.Approve(ctx, r)
	if err == nil || ctx.Err() != nil {
		return &a, "", err
	}
	return nil, err.Error() + "; ", nil
}

// approve asks whom the profile names. What nobody answers is refused.
func approve(ctx context.Context, c *Command, p *profiles.Profile, r Request, silence string) (Answer, error) {
	switch {
	case p.Ask == "allow":
		return Answer{Allow: true}, nil
	case p.Ask != "prompt":
		return Answer{Reason: silence + "nobody is asked"}, nil
	case c.Approver == nil:
		return Answer{Reason: silence + "there is nobody to ask"}, nil
	}
	a, err := c.Approver.Approve(ctx, r)
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil:
		return Answer{}, fmt.Errorf("asking for approval: %w", ctx.Err())
	}
	return Answer{Reason: silence + "no answer: " + err.Error()}, nil
}

// reviewable says whether a reviewer may settle all that a decision asks: no
// danger, no rule, and nothing that a yes would open.
func reviewable(d policy.Decision) bool {
	return !slices.ContainsFunc(asked(d), func(t policy.Target) bool {
		return t.Stage != policy.StageDefault || t.Reason == policy.OutsideRead
	})
}
