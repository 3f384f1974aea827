package profiles

import (
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

func TestAddRule(t *testing.T) {
	deny := policy.Rule{Verdict: policy.Deny, Pattern: "git push"}
	full := policy.Rule{Action: policy.FileWrite, Verdict: policy.Ask, Pattern: `~/a "b"\*`, Reason: "tab\there\x7f"}
	for _, test := range []struct {
		name, before string
		rule         policy.Rule
		after        string
	}{
		{"to nothing", "", deny, "[[rule]]\nverdict = \"deny\"\npattern = \"git push\"\n"},
		{"behind a table", "[files]\nread = ['/x'] # x", deny, "[files]\nread = ['/x'] # x\n\n[[rule]]\nverdict = \"deny\"\npattern = \"git push\"\n"},
		{"odd characters", "", full, "[[rule]]\naction = \"file.write\"\nverdict = \"ask\"\npattern = \"~/a \\\"b\\\"\\\\*\"\nreason = \"tab\\u0009here\\u007F\"\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := AddRule("c.toml", []byte(test.before), test.rule)
			if err != nil || string(got) != test.after {
				t.Errorf("%v\ngot  %q\nwant %q", err, got, test.after)
			}
		})
	}
	for name, bad := range map[string]struct {
		text string
		rule policy.Rule
	}{
		"a malformed file":  {"mode =", deny},
		"an inline array":   {"rule = [{ verdict = 'deny', pattern = 'x' }]\n", deny},
		"a rule of no use":  {"", policy.Rule{Verdict: policy.Allow, Pattern: "bash *"}},
		"an invalid UTF-8":  {"", policy.Rule{Verdict: policy.Deny, Pattern: "a\xff"}},
		"without a verdict": {"", policy.Rule{Pattern: "x"}},
	} {
		if got, err := AddRule("c.toml", []byte(bad.text), bad.rule); err == nil {
			t.Errorf("%s: no error, but %q", name, got)
		}
	}
}

func TestRemoveRule(t *testing.T) {
	const text = `mode = "ask" # top

# first
[[rule]]
verdict = "deny"
pattern = "a"
match = [
  # inside
  "a b",
]
# trailing

# second
[[rule]]
pattern = "b" # same line
verdict = """
deny"""

[files]
read = ["/x"]

[[rule]]
verdict = "deny"
pattern = "c"
# the end
`
	for i, test := range []struct{ removed string }{
		{"[[rule]]\nverdict = \"deny\"\npattern = \"a\"\nmatch = [\n  # inside\n  \"a b\",\n]\n"},
		{"[[rule]]\npattern = \"b\" # same line\nverdict = \"\"\"\ndeny\"\"\"\n\n"},
		{"[[rule]]\nverdict = \"deny\"\npattern = \"c\"\n"},
	} {
		got, err := RemoveRule("c.toml", []byte(text), i)
		want := strings.Replace(text, test.removed, "", 1)
		if err != nil || string(got) != want {
			t.Errorf("rule %d: %v\ngot  %s\nwant %s", i, err, got, want)
		}
	}
	if _, err := RemoveRule("c.toml", []byte("rule = [{ verdict = 'deny', pattern = 'x' }]\n"), 0); err == nil {
		t.Error("a rule in an inline array was removed")
	}
}

// Whatever the file holds, a rule that is added and removed again leaves the
// same rules, and every other line.
func FuzzEditRules(f *testing.F) {
	f.Add("", "git push", "why")
	f.Add("mode = 'ask'\n[[rule]]\nverdict='deny'\npattern='''\n[[rule]]\n'''\n", `a"b\`, "\x00\x7f\u2028")
	f.Add("[files]\nread=['/x']\n# end", "'a b' *", "")
	f.Fuzz(func(t *testing.T, text, pattern, reason string) {
		before, err := ParseConfig("c.toml", []byte(text))
		if err != nil {
			return
		}
		added, err := AddRule("c.toml", []byte(text), policy.Rule{Verdict: policy.Deny, Pattern: pattern, Reason: reason})
		if err != nil {
			return
		}
		if !strings.HasPrefix(string(added), text) {
			t.Fatalf("adding changed the rest: %q", added)
		}
		removed, err := RemoveRule("c.toml", added, len(before.Rules))
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimRight(string(removed), "\n") != strings.TrimRight(text, "\n") {
			t.Errorf("got  %q\nwant %q", removed, text)
		}
	})
}
