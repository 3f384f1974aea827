package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestErr(t *testing.T) {
	s := corpusScope()
	if err := (&Policy{}).Decide("ls", s).Err(); err != nil {
		t.Error(err)
	}
	var needs *NeedsApprovalError
	if err := (&Policy{}).Decide("make && sudo ls", s).Err(); !errors.As(err, &needs) || len(needs.Targets) != 2 {
		t.Errorf("%v", err)
	}
	var denied *DeniedError
	if err := (&Policy{}).Decide("ls; rm -rf /; make", s).Err(); !errors.As(err, &denied) || len(denied.Targets) != 1 {
		t.Errorf("%v", err)
	} else if want := "denied: rm -rf /: removes /; no mode, rule or answer allows this"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if err := (Decision{}).Err(); !errors.As(err, &denied) {
		t.Errorf("the zero Decision is not denied: %v", err)
	}
}

// TestEscape checks that no text of a command can move a cursor, hide itself
// or pretend to be a part of a prompt.
func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"ls -la":               "ls -la",
		"échо 漢字 😀":            "échо 漢字 😀",
		"a\nb\tc\r":            `a\nb\tc\r`,
		"\x1b[2Kfake":          `\x1b[2Kfake`,
		"a\u202eb\u2066c":      `a\u202eb\u2066c`,
		"a\u200bb\ufeff\u00a0": `a\u200bb\ufeff\u00a0`,
		"a\xffb":               `a\xffb`,
		"\x00\x7f":             `\x00\x7f`,
		"\u2028\u0085":         `\u2028\u0085`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
	hostile := "echo \x1b[1A\r\u202e\n allow? [y] \u2066 " + strings.Repeat("x", 500)
	for _, d := range []Decision{
		(&Policy{}).Decide("make '"+hostile+"'", corpusScope()),
		(&Policy{}).DecideArgs([]string{"make", hostile}, corpusScope()),
	} {
		for _, text := range []string{d.Err().Error(), d.Explain("make '" + hostile + "'")} {
			for _, r := range text {
				if r < ' ' && r != '\n' || r == 0x7f || r == 0x202e || r == 0x2066 {
					t.Errorf("%q holds %U", text, r)
				}
			}
		}
		if msg := d.Err().Error(); strings.Contains(msg, "\n") || len(msg) > 400 {
			t.Errorf("%d bytes: %q", len(msg), msg)
		}
	}
}

func TestJSON(t *testing.T) {
	p := &Policy{Rules: []Rule{{Verdict: Deny, Pattern: "git push", Reason: "a person pushes", Source: "p.toml:3"}}}
	d := p.Decide("git status && sudo rm -rf dist > /etc/x; git push", corpusScope())
	got, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "version": 1,
 "decision": "deny",
 "mode": "ask",
 "shell": "bash",
 "cwd": "/w",
 "parse": "ok",
 "read_only": false,
 "opaque": [],
 "targets": [
  {
   "action": "process.exec",
   "argv": [
    "git",
    "status"
   ],
   "span": [
    0,
    10
   ],
   "decision": "allow",
   "layer": "readonly",
   "reason": "read-only",
   "grantable": false
  },
  {
   "action": "file.write",
   "resource": "/etc/x",
   "span": [
    31,
    39
   ],
   "decision": "ask",
   "layer": "danger",
   "reason": "outside-write",
   "detail": "outside the writable roots",
   "grantable": false
  },
  {
   "action": "process.exec",
   "argv": [
    "sudo",
    "rm",
    "-rf",
    "dist"
   ],
   "span": [
    14,
    39
   ],
   "decision": "ask",
   "layer": "danger",
   "reason": "privilege",
   "detail": "runs with other privileges",
   "grantable": false
  },
  {
   "action": "file.write",
   "resource": "/w/dist",
   "wrappers": [
    "sudo"
   ],
   "span": [
    14,
    39
   ],
   "decision": "ask",
   "layer": "default",
   "reason": "file-change",
   "detail": "changes a file",
   "grantable": true
  },
  {
   "action": "process.exec",
   "argv": [
    "rm",
    "-rf",
    "dist"
   ],
   "wrappers": [
    "sudo"
   ],
   "span": [
    14,
    39
   ],
   "decision": "ask",
   "layer": "danger",
   "reason": "destructive",
   "detail": "recursive removal of /w/dist",
   "grantable": false
  },
  {
   "action": "process.exec",
   "argv": [
    "git",
    "push"
   ],
   "span": [
    41,
    49
   ],
   "decision": "deny",
   "layer": "rule",
   "reason": "rule",
   "detail": "a person pushes",
   "rule": "p.toml:3",
   "grantable": false
  },
  {
   "action": "network",
   "resource": "*",
   "span": [
    41,
    49
   ],
   "decision": "ask",
   "layer": "default",
   "reason": "network-access",
   "detail": "connects to the hosts that it is set up for",
   "grantable": false
  }
 ],
 "sandbox": {
  "read": [],
  "write": [
   "/etc/x"
  ],
  "network": "host"
 }
}`
	if string(got) != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestNames(t *testing.T) {
	for _, m := range modes {
		text, _ := m.MarshalText()
		if back, err := ParseMode(string(text)); back != m || err != nil {
			t.Errorf("%v: %v, %v", m, back, err)
		}
	}
	for _, v := range []Verdict{Allow, Ask, Deny} {
		text, _ := v.MarshalText()
		var back Verdict
		if err := back.UnmarshalText(text); back != v || err != nil {
			t.Errorf("%v: %v, %v", v, back, err)
		}
	}
	for _, s := range []Shell{Bash, POSIX} {
		text, _ := s.MarshalText()
		var back Shell
		if err := back.UnmarshalText(text); back != s || err != nil {
			t.Errorf("%v: %v, %v", s, back, err)
		}
	}
	if _, err := ParseMode("yolo"); err == nil || !strings.Contains(err.Error(), `"plan"`) {
		t.Errorf("%v", err)
	}
	if Verdict(0).String() != "deny" || Verdict(9).String() != "deny" || Mode(9).String() != "plan" {
		t.Error("an invalid value is not the strictest")
	}
	var v Verdict
	if err := v.UnmarshalText([]byte("maybe")); err == nil || v == Allow {
		t.Errorf("%v, %v", v, err)
	}
}

// What a person is told to do must help in the mode that asked.
func TestAdviceHolds(t *testing.T) {
	s := corpusScope()
	s.Hidden = []string{"/w/.env"}
	p := &Policy{Mode: ModeAllow}
	for name, d := range map[string]Decision{
		"file": p.Decide("cat .env", s),
		"tool": p.CheckTool("search", s),
		"host": p.CheckHost("example.org", 443, s),
	} {
		if text := d.Explain("cat .env"); d.Verdict != Ask || strings.Contains(text, "run with mode allow") {
			t.Errorf("%s: %v: %s", name, d.Verdict, text)
		}
	}
	d := p.Decide("cat .env", s)
	if i := len(d.with(Ask)); i != 1 {
		t.Errorf("%d questions about one fact: %+v", i, d.Targets)
	}
	if text := d.Err().Error(); !strings.Contains(text, "hidden from commands") || strings.Contains(text, "outside the readable roots") {
		t.Error(text)
	}
	if text := (&Policy{}).Decide("npx left-pad", s).Err().Error(); strings.Contains(text, "allow rule: npx") {
		t.Errorf("a rule that is refused is advised: %s", text)
	}
	deny := &Policy{Rules: []Rule{{Verdict: Deny, Pattern: "git push"}}}
	d = deny.Decide("git push", s)
	if text := d.Err().Error(); d.Targets[0].Reason != ByRule || strings.HasSuffix(text, ": ") || !strings.Contains(text, "a rule denies it") {
		t.Errorf("%s: %s", d.Targets[0].Reason, text)
	}
}
