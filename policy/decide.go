package policy

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Decision is the answer to one call. Its JSON form is stable: fields are
// added, never renamed, and Version counts the changes that are not additions.
type Decision struct {
	Version  int      `json:"version"`
	Verdict  Verdict  `json:"decision"` // the strictest verdict of its targets
	Mode     Mode     `json:"mode"`
	Shell    Shell    `json:"shell"`
	Cwd      string   `json:"cwd"`
	Parse    string   `json:"parse"`     // "ok", "error", "skipped" (a gate refused the text) or "argv"
	ReadOnly bool     `json:"read_only"` // allowed, and every target is proven read-only
	Opaque   []Reason `json:"opaque"`    // why the text could not be understood in full, without repetition
	Targets  []Target `json:"targets"`
	Sandbox  Request  `json:"sandbox"`
}

// Target is one thing that a call would do.
type Target struct {
	Action    Action   `json:"action"`
	Argv      []string `json:"argv,omitempty"`     // process.exec: decoded words, wrappers peeled
	Resource  string   `json:"resource,omitempty"` // path, HOST[:PORT] or name, by action; "*" for a host that is not known
	Wrappers  []string `json:"wrappers,omitempty"` // programs that start it, outermost first
	Span      [2]int   `json:"span"`               // byte offsets in the script; of the enclosing command for text found inside a word
	Verdict   Verdict  `json:"decision"`
	Stage     Stage    `json:"layer"`
	Reason    Reason   `json:"reason"`
	Detail    string   `json:"detail,omitempty"`  // for people
	Rule      string   `json:"rule,omitempty"`    // source of the rule that settled it
	Grantable bool     `json:"grantable"`         // an "always" answer may be stored
	Dynamic   bool     `json:"dynamic,omitempty"` // some words are known only when it runs
}

// Stage is the step of the fixed order that settled a target.
type Stage string

const (
	StageRule     Stage = "rule"     // a rule of the policy
	StagePlan     Stage = "plan"     // mode plan refuses what is not proven read-only
	StageBreaker  Stage = "breaker"  // never allowed, in no mode, by no rule
	StageDanger   Stage = "danger"   // always a question, above allow rules and mode allow
	StageReadOnly Stage = "readonly" // proven to change nothing
	StageDefault  Stage = "default"  // what the mode says about the rest
)

// Request is what a call would need from a sandbox beyond its roots. It is
// shown and asked for, never applied by itself.
type Request struct {
	Read    []string `json:"read"`
	Write   []string `json:"write"`
	Network string   `json:"network"`         // "none" or "host"
	Hosts   []string `json:"hosts,omitempty"` // HOST or HOST:PORT that the command names; it may ask for others
	Env     []string `json:"env,omitempty"`   // NAME=VALUE to set; ReadOnlyEnv for a read-only call
}

// Decide judges a script in the dialect of s.Shell.
func (p *Policy) Decide(script string, s Scope) Decision {
	j := newJudge(p, s)
	f := frame{j: j, text: script, lang: langOf(j.scope.Shell)}
	st := j.newState(state{dirs: []string{j.scope.Cwd}, likely: 1})
	f.guard(st, func() {
		f.script(st, stdin{})
		f.runTraps(0, st)
	})
	return j.decision(j.parse)
}

func langOf(s Shell) syntax.LangVariant {
	if s == Bash {
		return syntax.LangBash
	}
	return syntax.LangPOSIX
}

// DecideArgs judges the execution of exactly these arguments, without a shell
// that reads them.
func (p *Policy) DecideArgs(argv []string, s Scope) Decision {
	j := newJudge(p, s)
	if len(argv) == 0 || argv[0] == "" {
		j.note(SyntaxError, "no program", [2]int{})
		return j.decision("argv")
	}
	for _, a := range argv {
		if strings.IndexByte(a, 0) >= 0 {
			j.note(OddCharacter, "U+0000", [2]int{})
		}
	}
	f := frame{j: j, lang: syntax.LangBash, argsOnly: true}
	st := state{dirs: []string{j.scope.Cwd}, likely: 1}
	words := make([]word, len(argv))
	for i, a := range argv {
		words[i] = literal(a)
	}
	f.guard(&st, func() { f.run(&command{argv: words}, &st) })
	return j.decision("argv")
}

// guard makes a failure of the parser or the analysis a question instead of
// the end of the embedding program.
func (f *frame) guard(st *state, analyse func()) {
	defer func() {
		if r := recover(); r != nil {
			f.j.repeat, f.j.denyOnly, f.j.dry = 0, 0, 0
			f.j.note(InternalError, fmt.Sprint(r), [2]int{0, len(f.text)})
			*st = state{dirs: []string{f.j.scope.Cwd}, likely: 1}
			f.rawScan(f.text, st)
		}
	}()
	analyse()
}

func newJudge(p *Policy, s Scope) *judge {
	j := &judge{policy: p, scope: s, parse: "ok"}
	j.items, j.spec.opts = make([]item, 0, 8), make([]option, 0, 8)
	if j.scope.Cwd == "" {
		j.scope.Cwd = j.scope.Workspace
	}
	if j.scope.Write == nil {
		j.scope.Write = []string{s.Workspace, "/tmp"}
	}
	if j.scope.Read == nil {
		j.scope.Read = slices.Concat([]string{s.Workspace}, systemRoots)
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		j.denyRules = j.denyRules || r.strictness() == Deny
		j.fileRules = j.fileRules || r.Action == FileRead
	}
	return j
}

// decision settles every target and takes the strictest verdict.
func (j *judge) decision(parse string) Decision {
	d := Decision{
		Version: 1, Verdict: Allow, Mode: j.policy.Mode, Shell: j.scope.Shell, Cwd: j.scope.Cwd, Parse: parse,
		Opaque: j.opaque, Sandbox: Request{Read: []string{}, Write: []string{}, Network: "none"},
	}
	if d.Opaque == nil {
		d.Opaque = []Reason{}
	}
	d.Targets = make([]Target, 0, len(j.items))
	readOnly := true
	for i := range j.items {
		it := &j.items[i]
		why := it.Reason
		j.settle(it)
		if it.denyOnly && it.Verdict != Deny {
			continue
		}
		d.Targets = append(d.Targets, it.Target)
		d.Verdict = max(d.Verdict, it.Verdict)
		readOnly = readOnly && it.risk == riskSafe
		switch {
		case it.Action == FileRead && it.Reason == OutsideRead && !contains(d.Sandbox.Read, it.Resource):
			d.Sandbox.Read = append(d.Sandbox.Read, it.Resource)
		case it.Action == FileWrite && it.Reason == OutsideWrite && !contains(d.Sandbox.Write, it.Resource):
			d.Sandbox.Write = append(d.Sandbox.Write, it.Resource)
		case it.Action == NetworkTo && it.Resource != unknownHost && !contains(d.Sandbox.Hosts, it.Resource):
			d.Sandbox.Network, d.Sandbox.Hosts = "host", append(d.Sandbox.Hosts, it.Resource)
		case it.Action == NetworkTo || why == NetworkAccess || why == RemoteEffect || why == RemoteShell:
			d.Sandbox.Network = "host"
		}
	}
	d.ReadOnly = readOnly && d.Verdict == Allow
	if d.ReadOnly && j.git {
		d.Sandbox.Env = ReadOnlyEnv
	}
	return d
}

// settle takes a target through the fixed order of stages.
func (j *judge) settle(it *item) {
	rule, possible := j.match(it), j.mayDeny(it)
	mode := j.policy.Mode
	set := func(v Verdict, s Stage) { it.Verdict, it.Stage = v, s }
	switch {
	case rule != nil && rule.strictness() == Deny:
		set(Deny, StageRule)
		it.Rule, it.Reason = rule.Source, ByRule
		if rule.Reason != "" {
			it.Detail = rule.Reason
		}
	case it.risk == riskBreaker:
		set(Deny, StageBreaker)
	case mode == ModePlan && it.risk > riskSafe:
		set(Deny, StagePlan)
	case it.risk == riskDanger:
		set(Ask, StageDanger)
	case possible != nil:
		set(Ask, StageRule)
		it.Rule, it.Detail, it.Dynamic = possible.Source, "may be one that a rule denies", true
	case rule != nil && rule.Verdict == Ask:
		set(Ask, StageRule)
		it.Rule = rule.Source
		if rule.Reason != "" {
			it.Detail = rule.Reason
		}
	case rule != nil:
		set(Allow, StageRule)
		it.Rule = rule.Source
	case it.risk == riskSafe:
		set(Allow, StageReadOnly)
	case it.risk == riskOutside:
		set(Ask, StageDefault)
		it.Grantable = true
	case mode == ModeAllow:
		set(Allow, StageDefault)
	default:
		set(Ask, StageDefault)
		it.Grantable = !it.Dynamic && (it.Action != NetworkTo || it.Resource != unknownHost)
	}
}
