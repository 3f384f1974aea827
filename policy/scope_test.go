package policy

import (
	"slices"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// A root at or below a hidden path opens it again; its neighbours stay hidden.
func TestRootsInsideHiddenFolders(t *testing.T) {
	s := Scope{
		Cwd: "/w", Workspace: "/w", Home: "/home/dev",
		Read:   []string{"/", "/home/dev/.ssh/id_x", "/home/dev/.netrc"},
		Write:  []string{"/w", "/home/dev/.cache/secret/out"},
		Hidden: []string{"/home/dev/.ssh", "/home/dev/.netrc", "/home/dev/.cache/secret", "/w/.env"},
	}
	p := &Policy{Mode: ModeAllow}
	for _, test := range []struct {
		script string
		want   Verdict
	}{
		{"cat ~/.ssh/id_x", Allow},
		{"cat ~/.ssh/id_rsa", Ask},
		{"cat ~/.ssh/id_x.pub", Ask},
		{"cat ~/.ssh", Ask},
		{"cat ~/.netrc", Allow},
		{"cat .env", Ask},
		{"cat notes", Allow},
		{"grep -r x /home/dev/.ssh/id_x", Allow},
		{"echo x > ~/.cache/secret/out/a", Allow},
		{"echo x > ~/.cache/secret/a", Ask},
	} {
		if d := p.Decide(test.script, s); d.Verdict != test.want {
			t.Errorf("%q: %v, want %v: %v", test.script, d.Verdict, test.want, d.Err())
		}
	}
	if d := (&Policy{}).Decide("grep -r x ./sub/..", s); d.Verdict != Ask {
		t.Errorf("a search through a folder with hidden files: %v", d.Verdict)
	}
}

func TestProtectedNames(t *testing.T) {
	for _, test := range []struct {
		workspace string
		protected []string
		script    string
		want      Verdict
	}{
		{"/w", nil, "echo x > .git/hooks/pre-commit", Ask},
		{"/w", nil, "echo x > .mise.toml", Allow},
		{"/w", []string{"/w/.mise.toml", "/w/.git/hooks"}, "echo x > .mise.toml", Ask},
		{"/w", []string{"/w/.mise.toml", "/w/.git/hooks"}, "echo x > .git/hooks/pre-commit", Ask},
		{"/w", []string{"/w/.mise.toml", "/w/.git/hooks"}, "echo x > sub/.git/hooks/pre-commit", Ask},
		{"/w", []string{"/w/.mise.toml", "/w/.git/hooks"}, "echo x > .mise.toml.bak", Allow},
		{"/w", []string{"/w/.mise.toml", "/w/.git/hooks"}, "echo x > .vscode/settings.json", Allow},
		{"/w", []string{}, "echo x > .git/hooks/pre-commit", Allow},
		{"/home/dev/.claude-x/ws", nil, "echo x > .claude/settings.json", Ask},
		{"/home/dev/.claude-x/ws", nil, "echo x > .claude-x/.claude/settings.json", Ask},
		{"/srv/.vscode/ws", nil, "echo x > notes", Allow},
	} {
		s := Scope{Cwd: test.workspace, Workspace: test.workspace, Home: "/home/dev", Protected: test.protected}
		p := &Policy{Mode: ModeAllow}
		if d := p.Decide(test.script, s); d.Verdict != test.want {
			t.Errorf("workspace %s, protected %q: %q: %v, want %v: %v", test.workspace, test.protected, test.script, d.Verdict, test.want, d.Err())
		}
	}
}

// What is scratch below /tmp is not so in a workspace there.
func TestWorkspaceBelowTmp(t *testing.T) {
	s := Scope{Cwd: "/tmp/ws", Workspace: "/tmp/ws", Home: "/home/dev"}
	p := &Policy{Mode: ModeAllow, Disposable: disposable}
	for script, want := range map[string]Verdict{
		"rm -rf src":           Ask,
		"rm -rf /tmp/ws/src":   Ask,
		"rm -rf dist":          Allow,
		"rm -rf /tmp/other":    Allow,
		"find src -delete":     Ask,
		"find /tmp/x1 -delete": Allow,
	} {
		if d := p.Decide(script, s); d.Verdict != want {
			t.Errorf("%q: %v, want %v: %v", script, d.Verdict, want, d.Err())
		}
	}
}

// A path that is not certain asks where a rule may deny it.
func TestRulesForUncertainPaths(t *testing.T) {
	p := &Policy{Mode: ModeAllow, Rules: []Rule{
		{Action: FileRead, Verdict: Deny, Pattern: "*.key"},
		{Action: FileRead, Verdict: Deny, Pattern: "vault/prod"},
		{Action: FileWrite, Verdict: Deny, Pattern: "*.lock"},
	}}
	for script, want := range map[string]Verdict{
		"cat a.key":                             Deny,
		`cat "$X.key"`:                          Deny,
		`cat "$X"`:                              Ask,
		"cat < \"$X\"":                          Ask,
		"cat *.key":                             Deny,
		"cp a.key b":                            Deny,
		"cat --what a.key":                      Deny,
		"cat *":                                 Ask,
		"cat ?.ke*":                             Ask,
		"cat *.go":                              Allow,
		"cat vault/*":                           Ask,
		"cat vault/p*/x":                        Ask,
		"cat vault/test/*.go":                   Allow,
		"for f in *.key; do cat $f; done":       Deny,
		"for f in *.go; do cat $f; done":        Allow,
		"find . -name '*.key' -exec cat {} +":   Deny,
		"rm *.lock":                             Deny,
		"rm *.o":                                Allow,
		`rm "$X"`:                               Ask,
		`echo x > "$X"`:                         Ask,
		"cat vault/[p]rod":                      Ask,
		"cat notes":                             Allow,
		"for f in vault/*; do cat \"$f\"; done": Ask,
	} {
		if d := p.Decide(script, corpusScope()); d.Verdict != want {
			t.Errorf("%q: %v, want %v: %+v", script, d.Verdict, want, d.Targets)
		}
	}
	if d := (&Policy{Mode: ModeAllow}).Decide(`cat "$X.key"`, corpusScope()); d.Verdict != Allow {
		t.Errorf("without a rule: %v", d.Err())
	}
}

// A rule for a link holds wherever the link leads.
func TestRulesForLinks(t *testing.T) {
	s := corpusScope()
	s.Resolver = links{"/w/secret": "/outside/a", "/w/other": "/outside/b"}
	p := &Policy{Mode: ModeAllow, Rules: []Rule{
		{Action: FileRead, Verdict: Deny, Pattern: "secret"},
		{Action: FileWrite, Verdict: Deny, Pattern: "secret"},
		{Action: FileRead, Verdict: Deny, Pattern: "/outside/b"},
	}}
	for script, want := range map[string]Verdict{
		"cat secret": Deny, "echo x > secret": Deny, "cat other": Deny, "echo x > other": Ask,
	} {
		if d := p.Decide(script, s); d.Verdict != want {
			t.Errorf("%q: %v, want %v: %v", script, d.Verdict, want, d.Err())
		}
	}
}

// A denial by a rule without a reason still says what it is about.
func TestDeniedWithoutReason(t *testing.T) {
	p := &Policy{Rules: []Rule{{Verdict: Deny, Pattern: "git push", Source: "rules:1"}}}
	d := p.Decide("git push", corpusScope())
	if i := slices.IndexFunc(d.Targets, func(t Target) bool { return t.Verdict == Deny }); i < 0 || d.Targets[i].Detail == "" {
		t.Errorf("no detail: %+v", d.Targets)
	}
}

// An address has many spellings; a rule holds for all.
func TestRulesForAddresses(t *testing.T) {
	p := &Policy{Rules: []Rule{
		{Action: NetworkTo, Verdict: Deny, Pattern: "[::1]"},
		{Action: NetworkTo, Verdict: Deny, Pattern: "[2001:DB8::1]:443"},
		{Action: NetworkTo, Verdict: Deny, Pattern: "127.0.0.1"},
		{Action: NetworkTo, Verdict: Deny, Pattern: "example.org:80"},
	}}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host string
		port int
		want Verdict
	}{
		{"[::1]", 0, Deny},
		{"[::1]", 443, Deny},
		{"[0:0:0:0:0:0:0:1]", 443, Deny},
		{"[::0001]", 443, Deny},
		{"[2001:db8:0::1]", 443, Deny},
		{"[2001:db8::1]", 80, Ask},
		{"[::2]", 443, Ask},
		{"[::ffff:127.0.0.1]", 443, Deny},
		{"[::ffff:7f00:1]", 443, Deny},
		{"[1:2:3]", 443, Deny},
		{"[::1%lo]", 443, Deny},
		{"example.org", 80, Deny},
		{"example.org", 443, Ask},
	} {
		if d := p.CheckHost(test.host, test.port, corpusScope()); d.Verdict != test.want {
			t.Errorf("%s, port %d: %v, want %v", test.host, test.port, d.Verdict, test.want)
		}
	}
	if d := p.Decide("cat < /dev/tcp/0::1/80", corpusScope()); d.Verdict != Deny {
		t.Errorf("a redirection: %v", d.Verdict)
	}
	if (&Policy{Rules: []Rule{{Action: NetworkTo, Verdict: Deny, Pattern: "[1:2:3]"}}}).Check() == nil {
		t.Error("a rule for what is no address is taken")
	}
}

func TestTrimmed(t *testing.T) {
	for _, test := range []struct {
		text    string
		op      syntax.ParExpOperator
		pattern string
		want    string // "?" when it is not certain
	}{
		{"/home/dev", syntax.RemSmallSuffix, "/*", "/home"},
		{"/home/dev", syntax.RemLargeSuffix, "/*", ""},
		{"/home/dev", syntax.RemSmallPrefix, "*/", "home/dev"},
		{"/home/dev", syntax.RemLargePrefix, "*/", "dev"},
		{"/home/dev", syntax.RemSmallSuffix, "/", "/home/dev"},
		{"a.txt", syntax.RemSmallSuffix, ".t?t", "a"},
		{"ä", syntax.RemSmallSuffix, "?", "?"},
		{"a1", syntax.RemSmallSuffix, "[0-9]", "?"},
		{"/home/dev", syntax.RemSmallPrefix, "~", "?"},
	} {
		got, ok := trimmed(test.text, test.op, test.pattern)
		if !ok {
			got = "?"
		}
		if got != test.want {
			t.Errorf("%s %v %s: %q, want %q", test.text, test.op, test.pattern, got, test.want)
		}
	}
}
