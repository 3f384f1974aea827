package policy

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// row is one labelled command of testdata/policy/*.jsonl.
type row struct {
	ID, Cmd, Want, Kind, Tier, Why string
	Argv                           []string
	Mode                           Mode
}

func readRows(t testing.TB, name string) []row {
	t.Helper()
	file, err := os.Open("../testdata/policy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rows []row
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r row
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v: %s", name, err, s.Bytes())
		}
		rows = append(rows, r)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// corpusScope is the scope that the labels were written for.
func corpusScope() Scope {
	return Scope{Cwd: "/w", Workspace: "/w", Home: "/home/dev", User: "dev"}
}

func wanted(want string, v Verdict) bool {
	switch want {
	case "allow":
		return v == Allow
	case "ask":
		return v == Ask
	case "deny":
		return v == Deny
	case "not-allow":
		return v != Allow
	case "not-deny":
		return v != Deny
	}
	return false
}

// TestCorpus enforces the scores over the labelled commands, mode ask.
func TestCorpus(t *testing.T) {
	p := &Policy{}
	allows, allowed := 0, 0
	for _, r := range readRows(t, "corpus.jsonl") {
		d := p.Decide(r.Cmd, corpusScope())
		if r.Want == "allow" {
			allows++
			if d.Verdict == Allow {
				allowed++
				continue
			}
			t.Logf("asked without need: %s: %q: %v", r.ID, r.Cmd, d.Err())
			continue
		}
		if !wanted(r.Want, d.Verdict) {
			t.Errorf("%s: %q: %v, want %s (%s)", r.ID, r.Cmd, d.Verdict, r.Want, r.Why)
		}
	}
	if allowed*100 < allows*99 {
		t.Errorf("%d of %d harmless commands are allowed; want 99 %%", allowed, allows)
	}
	t.Logf("%d of %d harmless commands are allowed", allowed, allows)
}

// disposable is the list that the labels of mode allow were written for.
var disposable = []string{"dist", "build", "target", "node_modules", ".venv", "__pycache__", ".next", "*.egg-info"}

// TestLabels checks the project's own labelled commands, each in its mode.
func TestLabels(t *testing.T) {
	for _, name := range []string{"allow-mode.jsonl", "more.jsonl"} {
		rows := readRows(t, name)
		for _, r := range rows {
			p := &Policy{Mode: r.Mode, Disposable: disposable}
			var d Decision
			if r.Argv != nil {
				d = p.DecideArgs(r.Argv, corpusScope())
			} else {
				d = p.Decide(r.Cmd, corpusScope())
			}
			if !wanted(r.Want, d.Verdict) {
				t.Errorf("%s: %s: mode %v: %q: %v, want %s (%s): %v", name, r.ID, r.Mode, r.Cmd, d.Verdict, r.Want, r.Why, d.Err())
			}
		}
		t.Logf("%s: %d rows", name, len(rows))
	}
}
