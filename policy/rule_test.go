package policy

import (
	"errors"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	deny := func(p string) Rule { return Rule{Verdict: Deny, Pattern: p, Source: "a.toml:1"} }
	ask := func(p string) Rule { return Rule{Verdict: Ask, Pattern: p} }
	allow := func(p string) Rule { return Rule{Verdict: Allow, Pattern: p} }
	for _, tt := range []struct {
		cmd   string
		rules []Rule
		want  Verdict
	}{
		// Allow: exactly these words, or these and any further ones.
		{"npm test", []Rule{allow("npm test")}, Allow},
		{"npm test x", []Rule{allow("npm test")}, Ask},
		{"npm test x", []Rule{allow("npm test *")}, Allow},
		{"npm test", []Rule{allow("npm test *")}, Allow},
		{"npm tests", []Rule{allow("npm test *")}, Ask},
		{"npm run test", []Rule{allow("npm run {test,lint}")}, Allow},
		{"npm run build", []Rule{allow("npm run {test,lint}")}, Ask},
		{"npm run test:unit", []Rule{allow("npm run test:*")}, Allow},
		{"npm 'test x'", []Rule{allow("npm test x")}, Ask},
		{"npm 'test x'", []Rule{allow("npm 'test x'")}, Allow},
		{"n'p'm te\\st", []Rule{allow("npm test")}, Allow},
		{"timeout 5 npm test", []Rule{allow("npm test")}, Allow},
		{"npm test && ls", []Rule{allow("npm test")}, Allow},
		{"npm test && make", []Rule{allow("npm test")}, Ask},
		{"npm test > out.txt", []Rule{allow("npm test")}, Ask},
		{"FOO=1 npm test", []Rule{allow("npm test")}, Ask},
		{"npm $x", []Rule{allow("npm test")}, Ask},
		{"npm test $x", []Rule{allow("npm test *")}, Allow},
		{"./npm test", []Rule{allow("npm test")}, Ask},
		{"/tmp/npm test", []Rule{allow("npm test")}, Ask},
		{"sudo npm test", []Rule{allow("npm test")}, Ask},
		{"git push", []Rule{allow("git push *")}, Ask}, // danger is above allow rules
		{"rm -rf src", []Rule{allow("rm -rf src")}, Ask},
		{"npm test \u202e", []Rule{allow("npm test *")}, Ask},

		// Ask and deny: any further words, every layer, the base name, options before the verb.
		{"git push", []Rule{deny("git push")}, Deny},
		{"git push origin main", []Rule{deny("git push")}, Deny},
		{"git -C sub push", []Rule{deny("git push")}, Deny},
		{"git --no-pager -c a=b push", []Rule{deny("git push")}, Deny},
		{"git pull", []Rule{deny("git push")}, Ask},
		{"/usr/bin/git push", []Rule{deny("git push")}, Deny},
		{"sudo git push", []Rule{deny("git push")}, Deny},
		{"sudo git push", []Rule{deny("sudo")}, Deny},
		{"timeout 5 git push", []Rule{deny("timeout")}, Deny},
		{"bash -c 'ls; git push'", []Rule{deny("git push")}, Deny},
		{"echo $(git push)", []Rule{deny("git push")}, Deny},
		{"find . -exec git push \\;", []Rule{deny("git push")}, Deny},
		{"x=git; $x push", []Rule{deny("git push")}, Deny},
		{"ls 'unterminated; git push", []Rule{deny("git push")}, Deny},
		{"echo git push", []Rule{deny("git push")}, Allow},
		{"ls", []Rule{ask("ls")}, Ask},
		{"ls", []Rule{deny("ls")}, Deny},
		{"timeout --nonsense 5 git push", []Rule{deny("git push")}, Ask},

		// The strictest rule holds, whatever the order.
		{"npm test", []Rule{allow("npm test"), ask("npm *")}, Ask},
		{"npm test", []Rule{deny("npm *"), allow("npm test")}, Deny},
		{"npm test", []Rule{allow("npm test"), deny("npm *")}, Deny},
		{"npm test", []Rule{{Pattern: "npm test"}}, Deny}, // no verdict is deny

		// A program of which nothing is known may start its words.
		{"rtk git push", []Rule{deny("git push")}, Deny},
		{"./run -v -- git push -f", []Rule{deny("git push")}, Deny},
		{"cat git push", []Rule{deny("git push")}, Allow},

		// Files.
		{"cat .env", []Rule{{Action: FileRead, Verdict: Deny, Pattern: ".env"}}, Deny},
		{"cat sub/.env", []Rule{{Action: FileRead, Verdict: Deny, Pattern: ".env"}}, Deny},
		{"cat secrets/a/b", []Rule{{Action: FileRead, Verdict: Deny, Pattern: "secrets/"}}, Deny}, // a name at any depth
		{"cat secrets/a/b", []Rule{{Action: FileRead, Verdict: Deny, Pattern: "secrets/**"}}, Deny},
		{"cat a/secrets/b", []Rule{{Action: FileRead, Verdict: Deny, Pattern: "secrets/**"}}, Allow},
		{"cat a/secrets/b", []Rule{{Action: FileRead, Verdict: Deny, Pattern: "**/secrets/*"}}, Deny},
		{"cat ~/notes", []Rule{{Action: FileRead, Verdict: Allow, Pattern: "~/notes"}}, Allow},
		{"ls > out.txt", []Rule{{Action: FileWrite, Verdict: Allow, Pattern: "*.txt"}}, Allow},
		{"ls > out.txt", []Rule{{Action: FileWrite, Verdict: Deny, Pattern: "/w/*.txt"}}, Deny},
		{"ls > /etc/x.txt", []Rule{{Action: FileWrite, Verdict: Allow, Pattern: "*.txt"}}, Ask},
		{"ls > $x.txt", []Rule{{Action: FileWrite, Verdict: Allow, Pattern: "*.txt"}}, Ask},

		// Names.
		{"export FOO=1", []Rule{{Action: EnvSet, Verdict: Allow, Pattern: "FOO"}}, Allow},
		{"export FOO=1", []Rule{{Action: EnvSet, Verdict: Deny, Pattern: "F*"}}, Deny},
		{"cat < /dev/tcp/example.com/80", []Rule{{Action: NetworkTo, Verdict: Deny, Pattern: "*.com"}}, Deny},
		{"cat < /dev/tcp/0x7f.1/80", []Rule{{Action: NetworkTo, Verdict: Deny, Pattern: "*"}}, Deny},
		{"cat < /dev/tcp/::1/80", []Rule{{Action: NetworkTo, Verdict: Deny, Pattern: "[::1]"}}, Deny},
		{"cat < /dev/tcp/EXAMPLE.com./80", []Rule{{Action: NetworkTo, Verdict: Deny, Pattern: "example.com"}}, Deny},
	} {
		p := &Policy{Rules: tt.rules}
		if d := p.Decide(tt.cmd, corpusScope()); d.Verdict != tt.want {
			t.Errorf("%q with %v: %v, want %v", tt.cmd, tt.rules, d.Verdict, tt.want)
		}
	}
}

func TestRuleOfTarget(t *testing.T) {
	p := &Policy{Rules: []Rule{{Verdict: Deny, Pattern: "git push", Reason: "the person pushes", Source: "a.toml:3"}}}
	d := p.Decide("ls && git push", corpusScope())
	var denied *DeniedError
	if !errors.As(d.Err(), &denied) || len(denied.Targets) != 1 {
		t.Fatalf("%v", d.Err())
	}
	if target := denied.Targets[0]; target.Rule != "a.toml:3" || target.Detail != "the person pushes" || target.Stage != StageRule || target.Span != [2]int{6, 14} {
		t.Errorf("%+v", target)
	}
	if msg := denied.Error(); !strings.Contains(msg, "git push") || !strings.Contains(msg, "the person pushes") || !strings.Contains(msg, "a.toml:3") {
		t.Error(msg)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want string // part of the problem; "" = valid
	}{
		{Rule{Verdict: Allow, Pattern: "npm test *", Match: []string{"npm test", "npm test x", "cd a && npm test"}, NotMatch: []string{"npm tests", "echo npm test"}}, ""},
		{Rule{Verdict: Deny, Pattern: "git push", Match: []string{"git -C x push -f", "sudo git push"}, NotMatch: []string{"git pull"}}, ""},
		{Rule{Verdict: Deny, Pattern: "git push", Match: []string{"git pull"}}, `example "git pull" does not match`},
		{Rule{Verdict: Deny, Pattern: "git push", NotMatch: []string{"git push -f"}}, `counter-example "git push -f" matches`},
		{Rule{Pattern: "ls"}, "verdict"},
		{Rule{Verdict: Deny, Pattern: "  "}, "empty"},
		{Rule{Verdict: Deny, Action: "file.delete", Pattern: "x"}, "unknown action"},
		{Rule{Verdict: Deny, Pattern: "*"}, ""},
		{Rule{Verdict: Allow, Pattern: "*"}, "must name its program"},
		{Rule{Verdict: Allow, Pattern: "git*"}, "must name its program"},
		{Rule{Verdict: Allow, Pattern: "{npm,bash} *"}, "runs any code"},
		{Rule{Verdict: Allow, Pattern: "bash *"}, "runs any code"},
		{Rule{Verdict: Allow, Pattern: "bash"}, "runs any code"},
		{Rule{Verdict: Allow, Pattern: "bash build.sh"}, ""},
		{Rule{Verdict: Allow, Pattern: "sudo *"}, "starts other programs"},
		{Rule{Verdict: Allow, Pattern: "env npm test"}, "starts other programs"},
		{Rule{Verdict: Allow, Pattern: "xargs *"}, "starts other programs"},
		{Rule{Verdict: Allow, Pattern: "find *"}, "any arguments"},
		{Rule{Verdict: Allow, Pattern: "git *"}, "any arguments"},
		{Rule{Verdict: Allow, Pattern: "python3 *"}, "any arguments"},
		{Rule{Verdict: Allow, Pattern: "python3 -c *"}, "any arguments"},
		{Rule{Verdict: Allow, Pattern: "python3 tool.py *"}, ""},
		{Rule{Verdict: Allow, Pattern: "npm run {a,b"}, "unbalanced"},
		{Rule{Verdict: Allow, Pattern: "npm [run"}, "malformed"},
		{Rule{Verdict: Allow, Action: NetworkTo, Pattern: "*"}, "everything"},
		{Rule{Verdict: Allow, Action: NetworkTo, Pattern: "*.example.com", Match: []string{"a.example.com", "a.example.com:443"}, NotMatch: []string{"example.com", "example.com.evil"}}, ""},
		{Rule{Verdict: Allow, Action: NetworkTo, Pattern: "example.com:443", Match: []string{"example.com:443"}, NotMatch: []string{"example.com:80"}}, ""},
		{Rule{Verdict: Allow, Action: NetworkTo, Pattern: "example.com", Match: []string{"example.com", "example.com:80"}, NotMatch: []string{"example.com:22"}}, ""},
		{Rule{Verdict: Deny, Action: NetworkTo, Pattern: "example.com", Match: []string{"example.com:22"}}, ""},
		{Rule{Verdict: Deny, Action: NetworkTo, Pattern: "example.com", NotMatch: []string{"user@example.com"}}, "is no host"},
		{Rule{Verdict: Deny, Action: NetworkTo, Pattern: "*", Match: []string{"example.com", "[::1]:22"}}, ""},
		{Rule{Verdict: Deny, Action: NetworkTo, Pattern: "a.*.com"}, "* stands alone"},
		{Rule{Verdict: Deny, Action: NetworkTo, Pattern: "::1"}, "brackets"},
		{Rule{Verdict: Deny, Action: NetworkTo, Pattern: "example.com:0"}, "port"},
		{Rule{Verdict: Deny, Action: FileRead, Pattern: "~/.ssh", Match: []string{"~/.ssh/id_rsa"}, NotMatch: []string{"~/.sshx"}}, ""},
		{Rule{Verdict: Deny, Action: FileWrite, Pattern: "docs/*.md", Match: []string{"docs/a.md"}, NotMatch: []string{"docs/a/b.md", "x/docs/a.md"}}, ""},
		{Rule{Verdict: Deny, Action: FileRead, Pattern: "a[b"}, "malformed"},
	} {
		tt.rule.Source = "rules.toml:7"
		p := &Policy{Rules: []Rule{tt.rule}}
		err := p.Check()
		if tt.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		var re *RuleError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "rules.toml:7") {
			t.Errorf("%+v: %v, want %q", tt.rule, err, tt.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	for _, tt := range []struct {
		cmd  string
		want string // patterns joined with "; "
	}{
		{"npm run build -- --prod", "npm run build *"},
		{"npm test", "npm test"},
		{"go test ./... && go vet ./...", "go test *; go vet *"},
		{"go test ./... && go test ./x", "go test *"},
		{"frobnicate -x y", "frobnicate -x y"},
		{"ls && make lint", "make lint"},
		{"ls", ""},
		{"rm -rf src", ""},
		{"sudo make", ""},
		{"npm test $x", ""},
		{"python3 x.py", "python3 x.py"},
		{"npm exec foo bar", "npm exec foo bar"},
		{"uv run x --y", "uv run x --y"},
		{"go run ./cmd x", "go run ./cmd x"},
		{"npx foo bar", ""},
		{"docker compose ps x", ""},
		{"bundle exec rake x", "bundle exec rake x"},
		{"npm test && rm -rf src", ""},
	} {
		p := &Policy{}
		var got []string
		for _, r := range p.Suggest(tt.cmd, corpusScope()) {
			got = append(got, r.Pattern)
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%q: %q, want %q", tt.cmd, got, tt.want)
		}
	}
}
