package policy

import (
	"fmt"
	"testing"
)

func TestCheckTool(t *testing.T) {
	rules := []Rule{
		{Action: Tool, Verdict: Allow, Pattern: "todo_*"},
		{Action: Tool, Verdict: Ask, Pattern: "todo_clear"},
		{Action: Tool, Verdict: Deny, Pattern: "browser"},
		{Verdict: Allow, Pattern: "mystery"}, // of programs, not of tools
	}
	for _, test := range []struct {
		name string
		mode Mode
		want Verdict
	}{
		{"todo_add", ModeAsk, Allow},
		{"todo_add", ModePlan, Deny},
		{"todo_clear", ModeAllow, Ask},
		{"browser", ModeAllow, Deny},
		{"mystery", ModeAsk, Ask},
		{"mystery", ModeAllow, Ask}, // no sandbox holds it
		{"mystery", ModeAuto, Ask},
		{"mystery", ModePlan, Deny},
		{"", ModeAllow, Ask},
	} {
		d := (&Policy{Mode: test.mode, Rules: rules}).CheckTool(test.name, exampleScope)
		if d.Verdict != test.want || len(d.Targets) != 1 || d.Targets[0].Action != Tool || d.ReadOnly {
			t.Errorf("%q in mode %v: %v, want %v: %+v", test.name, test.mode, d.Verdict, test.want, d.Targets)
		}
	}
}

func TestCheckHost(t *testing.T) {
	p := &Policy{Mode: ModeAllow, Rules: []Rule{
		{Action: NetworkTo, Verdict: Allow, Pattern: "*.example.org"},
		{Action: NetworkTo, Verdict: Allow, Pattern: "example.net:443"},
		{Action: NetworkTo, Verdict: Deny, Pattern: "bad.example.org"},
		{Action: NetworkTo, Verdict: Allow, Pattern: "10.0.0.1:*"},
	}}
	for _, test := range []struct {
		host string
		port int
		want Verdict
	}{
		{"docs.example.org", 443, Allow},
		{"DOCS.Example.ORG.", 80, Allow},
		{"docs.example.org", 0, Ask}, // an allow rule without a port is for 80 and 443
		{"docs.example.org", 22, Ask},
		{"example.org", 443, Ask}, // not below itself
		{"example.net", 443, Allow},
		{"example.net", 80, Ask},
		{"example.net", 0, Ask},
		{"bad.example.org", 443, Deny},
		{"BAD.example.org.", 443, Deny},
		{"evilexample.org", 443, Ask},
		{"10.0.0.1", 22, Allow},
		{"10.0.0.10", 22, Ask},
		{"[::1]", 80, Ask},
		{"my_host-1", 80, Ask},

		// What one reader takes for a name of example.org and another cuts short.
		{"evil.com\x00.example.org", 443, Deny},
		{"evil.com/.example.org", 443, Deny},
		{"evil.com#.example.org", 443, Deny},
		{"evil.com:80.example.org", 443, Deny},
		{"user@a.example.org", 443, Deny},
		{"a b.example.org", 443, Deny},
		{"ex\u00e4mple.example.org", 443, Deny},
		{"a..example.org", 443, Deny},
		{"-a.example.org", 443, Deny},
		{"*.example.org", 443, Deny},
		// Numbers that some readers take for addresses.
		{"2130706433", 80, Deny},
		{"127.1", 80, Deny},
		{"0x7f.0.0.1", 80, Deny},
		{"010.0.0.1", 80, Deny},
		{"10.0.0.256", 80, Deny},
		{"10.0.0.1.2", 80, Deny},
		{"::1", 80, Deny},
		{"[fe80::1%eth0]", 80, Deny},
		{"[x]", 80, Deny},
		{"", 80, Deny},
		{".", 80, Deny},
		{"docs.example.org", -1, Deny},
		{"docs.example.org", 65536, Deny},
	} {
		if d := p.CheckHost(test.host, test.port, exampleScope); d.Verdict != test.want {
			t.Errorf("%q port %d: %v, want %v: %+v", test.host, test.port, d.Verdict, test.want, d.Targets)
		}
	}
	if d := p.CheckHost("docs.example.org", 443, exampleScope); d.Targets[0].Resource != "docs.example.org:443" || d.Sandbox.Network != "host" {
		t.Errorf("%+v", d)
	}
}

// links is a Resolver of fixed links.
type links map[string]string

func (l links) Resolve(path string) (string, error) {
	if to, ok := l[path]; ok {
		return to, nil
	}
	return path, nil
}
func (l links) ReadFile(string, int) ([]byte, error) { return nil, fmt.Errorf("no files here") }

func TestCheckFiles(t *testing.T) {
	s := exampleScope
	s.Read = []string{"/workspace", "/usr"}
	s.Hidden = []string{"/workspace/.env"}
	s.Resolver = links{"/workspace/out": "/etc/shadow", "/workspace/in": "/workspace/a", "/workspace/git": "/workspace/.git/config"}
	rules := []Rule{
		{Action: FileRead, Verdict: Deny, Pattern: "private/**"},
		{Action: FileWrite, Verdict: Deny, Pattern: "*.lock"},
		{Action: FileWrite, Verdict: Allow, Pattern: "docs/**"},
	}
	for _, test := range []struct {
		path                            string
		read                            Verdict // the same in each mode but plan
		writeAsk, writeAllow, writePlan Verdict
	}{
		{"a", Allow, Ask, Allow, Deny},
		{"/workspace/x/../a", Allow, Ask, Allow, Deny},
		{"in", Allow, Ask, Allow, Deny},
		{"docs/x", Allow, Allow, Allow, Deny},
		{"x.lock", Allow, Deny, Deny, Deny},
		{"private/x", Deny, Ask, Allow, Deny},
		{".env", Ask, Ask, Ask, Deny},
		{"../secret", Ask, Ask, Ask, Deny},
		{"/etc/shadow", Ask, Ask, Ask, Deny},
		{"out", Ask, Ask, Ask, Deny},
		{"/usr/bin/env", Allow, Ask, Ask, Deny},
		{".git/hooks/pre-commit", Allow, Ask, Ask, Deny},
		{"git", Allow, Ask, Ask, Deny},
		{"~/x", Allow, Ask, Allow, Deny}, // no shell reads it
		{"$HOME", Allow, Ask, Allow, Deny},
		{"*", Allow, Ask, Allow, Deny},
		{"", Deny, Deny, Deny, Deny},
		{"a\x00b", Deny, Deny, Deny, Deny},
	} {
		for _, mode := range []Mode{ModeAsk, ModeAllow, ModePlan} {
			p := &Policy{Mode: mode, Rules: rules}
			wantRead, wantWrite := test.read, map[Mode]Verdict{ModeAsk: test.writeAsk, ModeAllow: test.writeAllow, ModePlan: test.writePlan}[mode]
			if mode == ModePlan && wantRead == Ask {
				wantRead = Deny
			}
			if d := p.CheckRead(test.path, s); d.Verdict != wantRead || len(d.Targets) == 0 || d.Targets[0].Action != FileRead {
				t.Errorf("read %q in mode %v: %v, want %v: %+v", test.path, mode, d.Verdict, wantRead, d.Targets)
			}
			if d := p.CheckWrite(test.path, s); d.Verdict != wantWrite || len(d.Targets) == 0 || d.Targets[0].Action != FileWrite {
				t.Errorf("write %q in mode %v: %v, want %v: %+v", test.path, mode, d.Verdict, wantWrite, d.Targets)
			}
		}
	}
}

func ExamplePolicy_CheckHost() {
	p := &Policy{Rules: []Rule{{Action: NetworkTo, Verdict: Allow, Pattern: "*.example.org"}}}
	fmt.Println(p.CheckHost("docs.example.org", 443, Scope{}).Verdict)
	fmt.Println(p.CheckHost("evil.com\x00.example.org", 443, Scope{}).Verdict)
	// Output:
	// allow
	// deny
}
