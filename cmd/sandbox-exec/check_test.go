package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
)

// FuzzAnswerLines holds check --jsonl to its promise: whatever comes in, one
// JSON object a line goes out, which is either a decision or an error.
func FuzzAnswerLines(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"cmd":"ls"}`,
		`{"id":1,"cmd":"ls","argv":["ls"]}` + "\n\n" + `{"argv":[]}`,
		`{"cmd":""}`, `{"argv":[""]}`, `null`, `[]`, `"ls"`, `{"cmd":1}`, `{"mode":"no","cmd":"ls"}`,
		`{"cmd":"rm -rf /","cwd":"/","workspace":"/"}`,
		`{"cmd":"ls","cwd":"/w/..","home":"x"}`,
		`{"id":{"a":[1,null]},"cmd":"` + strings.Repeat("(", 3000) + `"}`,
		"{\"cmd\":\"\xff\"}\r\n", "\x00", "no newline at the end",
	} {
		f.Add([]byte(seed))
	}
	p, err := profiles.Load("workspace")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := answerLines(bytes.NewReader(in), &out, runner.Command{Profile: p, Wrapper: true}, everywhere(p)); err != nil {
			t.Fatal(err)
		}
		want := bytes.Count(in, []byte("\n"))
		if len(in) > 0 && in[len(in)-1] != '\n' {
			want++
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			lines = nil
		}
		if len(lines) != want {
			t.Fatalf("%d answers to %d lines", len(lines), want)
		}
		for _, line := range lines {
			var a struct{ Decision, Error string }
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			if (a.Decision == "") == (a.Error == "") {
				t.Fatalf("neither or both of decision and error: %q", line)
			}
		}
	})
}

func everywhere(p *profiles.Profile) func(runner.Where) (*profiles.Profile, error) {
	return func(runner.Where) (*profiles.Profile, error) { return p, nil }
}

func TestReadLine(t *testing.T) {
	in := strings.NewReader("a\n" + strings.Repeat("x", maxRequest+1) + "\nb\n" + strings.Repeat("y", maxRequest+1))
	var got []string
	var out bytes.Buffer
	if err := answerLines(in, &out, runner.Command{}, everywhere(nil)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		got = append(got, a.Error)
	}
	if len(got) != 4 || !strings.Contains(got[1], "longer") || strings.Contains(got[2], "longer") || !strings.Contains(got[3], "longer") {
		t.Errorf("%q", got)
	}
}
