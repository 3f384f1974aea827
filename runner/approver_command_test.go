package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

// program writes a shell script that a test can run.
func program(t *testing.T, dir, text string) string {
	t.Helper()
	file := write(t, "#!/bin/sh\n"+text, dir, "approver")
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// echo answers with the id of the request.
const echo = `id=$(sed 's/.*"id":"\([0-9a-f]*\)".*/\1/')
say() { printf '{"version":%s,"id":"%s","answer":"%s"%s}' "${2-1}" "${3-$id}" "$1" "$4"; }
`

func question() Request {
	return Request{
		Script: "touch x", Dir: "/w/d", Workspace: "/w", Profile: "workspace", Remember: []Choice{ForProject}, Rules: []policy.Rule{{Verdict: policy.Allow, Pattern: "touch x"}},
		Decision: policy.Decision{Verdict: policy.Ask, Targets: []policy.Target{{Action: policy.Exec, Argv: []string{"touch", "x"}, Verdict: policy.Ask}}},
		Sandbox:  Holds{Workspace: "read-write", Network: "off", Read: []string{}, Write: []string{}},
	}
}

func TestCommandApproverAnswers(t *testing.T) {
	for _, test := range []struct {
		say  string
		want Answer
	}{
		{"say once", Answer{Allow: true}},
		{"say project", Answer{Allow: true, Remember: ForProject}},
		{`say deny 1 "$id" ',"reason":"not today"'`, Answer{Reason: "not today"}},
		{"echo talk >&2; say once; echo", Answer{Allow: true}},
	} {
		a := &CommandApprover{Args: []string{program(t, tempDir(t), echo+test.say)}}
		if got, err := a.Approve(context.Background(), question()); err != nil || got != test.want {
			t.Errorf("%s: got %+v and %v, want %+v", test.say, got, err, test.want)
		}
	}
}

// What is no clear answer is none.
func TestCommandApproverDoesNotAnswer(t *testing.T) {
	for _, test := range []struct{ say, message string }{
		{"", "EOF"},
		{"say once; exit 1", "exit status 1"},
		{"say once; echo broken >&2; exit 3", "exit status 3: broken"},
		{"say once; kill -SEGV $$", "segmentation"},
		{"say session", "none of"},
		{"say yes", "none of"},
		{"say ONCE", "none of"},
		{"say ''", "none of"},
		{"say once 2", "version 2"},
		{"say once 1 00000000000000000000000000000000", "another request"},
		{`say once 1 "$id" ',"more":1'`, "unknown field"},
		{"say once; say once", "more than one answer"},
		{"say deny; say once", "more than one answer"},
		{"say once; echo x", "more than one answer"},
		{"echo yes", "invalid character"},
		{"echo null", "version 0"},
		{"echo '[]'", "cannot unmarshal"},
		{"head -c 70000 /dev/zero | tr '\\0' ' '; say once", "more than 65536"},
		{"exec cat /dev/zero", "more than 65536"},
	} {
		t.Run(test.say, func(t *testing.T) {
			a := &CommandApprover{Args: []string{program(t, tempDir(t), echo+test.say)}}
			got, err := a.Approve(context.Background(), question())
			if err == nil || got != (Answer{}) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %+v and %v, want an error with %q", got, err, test.message)
			}
		})
	}
}

func TestCommandApproverIsEndedInTime(t *testing.T) {
	a := &CommandApprover{Args: []string{program(t, tempDir(t), "exec sleep 100")}, Timeout: 100 * time.Millisecond}
	if _, err := a.Approve(context.Background(), question()); err == nil || !strings.Contains(err.Error(), "no answer in 100ms") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.Timeout = 0
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := a.Approve(ctx, question()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

func TestCommandApproverIsAskedInFull(t *testing.T) {
	dir := tempDir(t)
	a := &CommandApprover{Args: []string{program(t, dir, `
printf '%s|%s' "$1" "$PWD" >`+dir+`/args
cat >`+dir+`/request
exit 1`), "a b"}}
	a.Approve(context.Background(), question())
	if args, _ := os.ReadFile(dir + "/args"); string(args) != "a b|/" {
		t.Errorf("arguments and directory: %q", args)
	}
	text, err := os.ReadFile(dir + "/request")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	id, _ := got["id"].(string)
	if len(id) != 32 {
		t.Errorf("id %q", id)
	}
	for key, want := range map[string]string{
		"version": "1", "kind": `"command"`, "command": `"touch x"`, "cwd": `"/w/d"`, "workspace": `"/w"`, "profile": `"workspace"`,
		"sandbox": `{"network":"off","read":[],"workspace":"read-write","write":[]}`, "choices": `["once","project","deny"]`, "rules": `["touch x"]`,
	} {
		if have, _ := json.Marshal(got[key]); string(have) != want {
			t.Errorf("%s: %s, want %s", key, have, want)
		}
	}
	if bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("not one line: %q", text)
	}
}

// Whoever could have been put there by a command is not asked.
func TestCommandApproverIsNotOfTheWorkspace(t *testing.T) {
	dir := tempDir(t)
	ws := mkdir(t, dir, "ws")
	inside := program(t, mkdir(t, ws, "bin"), echo+"say once")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	outside := program(t, mkdir(t, dir, "out"), echo+"say once")
	out := filepath.Join(ws, "out")
	if err := os.Symlink(outside, out); err != nil {
		t.Fatal(err)
	}
	q := question()
	q.Workspace = ws
	t.Chdir(mkdir(t, ws, "sub"))
	for _, name := range []string{inside, link, out, "../bin/approver"} {
		if got, err := (&CommandApprover{Args: []string{name}}).Approve(context.Background(), q); err == nil || !strings.Contains(err.Error(), "in the workspace") {
			t.Errorf("%s: got %+v and %v", name, got, err)
		}
	}
	t.Setenv("PATH", ws+"/bin:"+os.Getenv("PATH"))
	if got, err := (&CommandApprover{Args: []string{"approver"}}).Approve(context.Background(), q); err == nil {
		t.Errorf("by PATH: got %+v", got)
	}
	t.Chdir(filepath.Join(ws, "bin"))
	t.Setenv("PATH", ".:"+os.Getenv("PATH"))
	if got, err := (&CommandApprover{Args: []string{"approver"}}).Approve(context.Background(), q); err == nil {
		t.Errorf("by a relative PATH: got %+v", got)
	}
	t.Setenv("PATH", filepath.Dir(outside)+":"+os.Getenv("PATH"))
	if _, err := (&CommandApprover{Args: []string{"approver"}}).Approve(context.Background(), q); err != nil {
		t.Errorf("by PATH, outside: %v", err)
	}
	for _, args := range [][]string{nil, {""}, {"no-such-program"}} {
		if got, err := (&CommandApprover{Args: args}).Approve(context.Background(), q); err == nil {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}

// says answers the same every time.
type says struct {
	Answer
	err   error
	asked []Request
}

func (s *says) Approve(_ context.Context, r Request) (Answer, error) {
	s.asked = append(s.asked, r)
	return s.Answer, s.err
}

func TestFirstAnswer(t *testing.T) {
	silent, yes, no := &says{err: errors.New("silent")}, &says{Answer: Answer{Allow: true}}, &says{}
	for _, test := range []struct {
		list  []Approver
		allow bool
		err   bool
	}{
		{[]Approver{silent, yes}, true, false},
		{[]Approver{nil, no, yes}, false, false},
		{[]Approver{silent, silent}, false, true},
	} {
		a, err := FirstAnswer(test.list...).Approve(context.Background(), question())
		if a.Allow != test.allow || (err != nil) != test.err {
			t.Errorf("%v: got %+v and %v", test.list, a, err)
		}
	}
	if FirstAnswer(nil) != nil || FirstAnswer() != nil {
		t.Error("there is an approver where there is none")
	}
}

// The schema names what is written, no more and no less.
func TestApprovalSchema(t *testing.T) {
	text, err := os.ReadFile("../docs/approval.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]struct {
			Required             []string
			Properties           map[string]any
			AdditionalProperties bool
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	r := question()
	for name, value := range map[string]any{
		"request":  approvalRequest{Command: "x", Args: []string{"x"}, Choices: r.choices(), Decision: r.Decision},
		"answer":   approvalAnswer{},
		"sandbox":  Holds{},
		"decision": policy.Decision{},
		"target":   policy.Target{Argv: []string{""}, Resource: "x", Wrappers: []string{""}, Detail: "x", Rule: "x", Dynamic: true},
	} {
		written, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(written, &fields); err != nil {
			t.Fatal(err)
		}
		def := schema.Defs[name]
		for key := range fields {
			if def.Properties[key] == nil {
				t.Errorf("%s: %q is not in the schema", name, key)
			}
		}
		for key := range def.Properties {
			if _, ok := fields[key]; !ok {
				t.Errorf("%s: %q of the schema is not written", name, key)
			}
		}
		for _, key := range def.Required {
			if def.Properties[key] == nil {
				t.Errorf("%s: %q is required, but unknown", name, key)
			}
		}
	}
	if slices.Contains(schema.Defs["answer"].Required, "reason") || schema.Defs["answer"].AdditionalProperties {
		t.Error("an answer needs no reason, and has nothing else")
	}
}
