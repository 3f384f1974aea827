package policy

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

	text string // what was judged, for messages
}

// Target is one thing that a call would do.
type Target struct {
	Action    Action   `json:"action"`
	Argv      []string `json:"argv,omitempty"`     // process.exec: decoded words, wrappers peeled
	Resource  string   `json:"resource,omitempty"` // path, host or name, by action
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
	Network string   `json:"network"`       // "none" or "host"
	Env     []string `json:"env,omitempty"` // NAME=VALUE to set; ReadOnlyEnv for a read-only call
}

// Check reports the first rule that is not valid or whose examples do not hold.
func (p *Policy) Check() error { return nil }

// Decide judges a script in the dialect of s.Shell.
func (p *Policy) Decide(script string, s Scope) Decision {
	return Decision{Version: 1, Verdict: Ask, Mode: p.Mode, Shell: s.Shell, Cwd: s.Cwd, Parse: "ok", Opaque: []Reason{}, text: script,
		Targets: []Target{{Action: Exec, Resource: script, Span: [2]int{0, len(script)}, Verdict: Ask, Stage: StageDefault, Reason: "unproven"}},
		Sandbox: Request{Read: []string{}, Write: []string{}, Network: "none"}}
}

// DecideArgs judges the execution of exactly these arguments, without a shell.
func (p *Policy) DecideArgs(argv []string, s Scope) Decision {
	return Decision{Version: 1, Verdict: Ask, Mode: p.Mode, Shell: s.Shell, Cwd: s.Cwd, Parse: "argv", Opaque: []Reason{},
		Targets: []Target{{Action: Exec, Argv: argv, Verdict: Ask, Stage: StageDefault, Reason: "unproven"}},
		Sandbox: Request{Read: []string{}, Write: []string{}, Network: "none"}}
}
