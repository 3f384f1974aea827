// Package profiles turns named sets of permissions into what the judge and the
// sandbox need: a [policy.Policy], a [policy.Scope], a [sandbox.Spec] and an
// environment.
//
// A profile is one TOML file. What all profiles share (the lists of secrets,
// protected names, environment names, caches, sockets and disposable folders)
// are data files of their own, in which every row gives its reason.
package profiles

import (
	"cmp"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Profile says what a command may do. The zero value is the strictest: the
// workspace is hidden, the network is off, what is not proven read-only asks
// and nobody answers.
//
// The lists named "the person's own" may be extended by a caller for one run,
// from flags, before Policy, Scope, Spec or Environ is called.
type Profile struct {
	Name        string // "workspace", or the name that was given to Parse
	File        string // the file it came from, for messages
	Description string // one line, for people

	Mode policy.Mode
	// Ask is what answers a question: "prompt" asks the person on the
	// terminal and denies where there is none, "deny" and "allow" ask nobody.
	// Empty means "deny".
	Ask   string
	Rules []policy.Rule

	Workspace sandbox.Access // of the workspace and its git directories
	// Tmp is "private" (an empty /tmp, gone at the end) or "session" (kept
	// between the runs in one workspace). Empty means "private".
	Tmp     string
	Network sandbox.Network
	// AllowHosts are the hosts that NetworkAllow lets through, as
	// policy.ParseHostPattern reads them, and sets of them, "@npm", that the
	// person's tools are set to. DenyHosts wins over it, as do the Rules that
	// deny a host.
	AllowHosts, DenyHosts []string
	ServerName            sandbox.ServerName
	Limits                sandbox.Limits
	// MemoryShare is the part of the machine's memory, above 0 and at most 1,
	// that becomes Limits.Memory where that is zero. Zero means no such rule.
	MemoryShare float64

	Require      []string // layers without which nothing runs
	AllowMissing []string // layers without which the command may run

	// Read and Write are the person's own grants, "~/x" or absolute. They are
	// the only way to reopen a secret, by exactly its path or one below it.
	Read, Write []string
	// Hide names what is hidden besides the shared secrets: "~/x", an absolute
	// path, or a name (or a pattern of path.Match) in the workspace's root and
	// the current directory. HideExcept takes names out of it again.
	Hide, HideExcept []string
	// Protect names files and folders of the workspace, relative to its root,
	// that are protected besides those of the shared list. Unprotect takes
	// names out of both: ".vscode", ".git/hooks".
	Protect, Unprotect []string
	// ProjectRead and ProjectWrite are grants of the project's own file that
	// the person trusts. Unlike Read and Write they reopen no secret.
	ProjectRead, ProjectWrite []string
	// Sockets are pathname sockets that stay reachable.
	Sockets []string

	// GitConfig is "read-only" or "checked": the repositories' configuration can
	// be written, and the settings in it that run programs are put back after the
	// run. Until then, who runs git outside runs them. Empty means "read-only".
	GitConfig string
	// GitSign is "off", by which no commit or tag is signed that is not asked to
	// be on its command line, or "agent": the sockets of ssh-agent and gpg-agent
	// and the public keys are opened. Empty means "off".
	GitSign string

	// Toolchains says what becomes of what a toolchain ("go", "node") writes into
	// its caches. "private": home's are read-only, and it goes to a folder that is
	// kept for the workspace; what is left out is that. "read-only": it goes
	// with /tmp. "shared": those of home that are there are written to, and what
	// a command puts there other commands use, outside too.
	Toolchains map[string]string

	// Pass names variables that are kept besides the shared list; a trailing
	// "*" means every name that begins so. Set gives values; it wins.
	Pass []string
	Set  map[string]string

	// Stdin is "inherit" or "null". Empty means "null".
	Stdin    string
	ToolCall ToolCall
}

// ToolCall is what holds for the calls of a tool (a captured run with one
// result), not for a command that is only wrapped. What is zero is as in
// [DefaultToolCall].
type ToolCall struct {
	Timeout    time.Duration // when the caller gives none; Unlimited = none
	MaxTimeout time.Duration // the most a caller may ask for; Unlimited = even none
	// The same for a command that runs in the background.
	BackgroundTimeout, MaxBackgroundTimeout time.Duration

	Grace  time.Duration // between TERM and KILL
	Output int64         // bytes of output that end the command; Unlimited = none
	// Redact replaces, in captured output, the values of variables that were
	// kept from the command and whose names are those of secrets.
	Redact bool
}

// DefaultToolCall is what holds where a profile does not say.
var DefaultToolCall = ToolCall{
	Timeout: time.Minute, MaxTimeout: 5 * time.Minute,
	BackgroundTimeout: 10 * time.Minute, MaxBackgroundTimeout: 24 * time.Hour,
	Grace: 5 * time.Second, Output: 16 << 20,
}

// Complete returns t with the defaults in place of zeros. A cap that the
// profile sets lowers a default time-out that would be above it.
func (t ToolCall) Complete() ToolCall {
	d := DefaultToolCall
	t.MaxTimeout = cmp.Or(t.MaxTimeout, d.MaxTimeout)
	t.Timeout = cmp.Or(t.Timeout, atMost(d.Timeout, t.MaxTimeout))
	t.MaxBackgroundTimeout = cmp.Or(t.MaxBackgroundTimeout, d.MaxBackgroundTimeout)
	t.BackgroundTimeout = cmp.Or(t.BackgroundTimeout, atMost(d.BackgroundTimeout, t.MaxBackgroundTimeout))
	t.Grace = cmp.Or(t.Grace, d.Grace)
	t.Output = cmp.Or(t.Output, d.Output)
	return t
}

// Within says whether a time-out is at most another; Unlimited is the longest.
func Within(timeout, most time.Duration) bool {
	return most == sandbox.Unlimited || timeout != sandbox.Unlimited && timeout <= most
}

func atMost(d, most time.Duration) time.Duration {
	if most == sandbox.Unlimited {
		return d
	}
	return min(d, most)
}
