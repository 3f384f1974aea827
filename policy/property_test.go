package policy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// seeds are the texts that the fuzz targets start from: every labelled command.
func seeds(f *testing.F) {
	for _, name := range []string{"corpus.jsonl", "allow-mode.jsonl", "more.jsonl"} {
		for _, r := range readRows(f, name) {
			if r.Cmd != "" {
				f.Add(r.Cmd)
			}
		}
	}
}

var modes = []Mode{ModeAsk, ModePlan, ModeAllow, ModeAuto}

// FuzzDecide checks what must hold for any text: no panic, one answer, a valid
// decision, never allow for what does not parse or holds odd characters.
func FuzzDecide(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range modes {
			p := &Policy{Mode: m, Disposable: disposable}
			d := p.Decide(text, corpusScope())
			if again := p.Decide(text, corpusScope()); !reflect.DeepEqual(d, again) {
				t.Fatalf("%q: two answers: %v and %v", text, d, again)
			}
			if d.Verdict == Allow && (d.Parse != "ok" || len(d.Opaque) > 0) {
				t.Fatalf("%q: allowed although parse is %s, opaque %v", text, d.Parse, d.Opaque)
			}
			for _, target := range d.Targets {
				if target.Reason == InternalError {
					t.Fatalf("%q: %s", text, target.Detail)
				}
				if target.Verdict > d.Verdict {
					t.Fatalf("%q: %v is weaker than its target %v", text, d.Verdict, target)
				}
				if s := target.Span; s[0] < 0 || s[1] < s[0] || s[1] > len(text) {
					t.Fatalf("%q: span %v", text, s)
				}
			}
			if (d.Err() == nil) != (d.Verdict == Allow) {
				t.Fatalf("%q: %v, error %v", text, d.Verdict, d.Err())
			}
			if _, err := json.Marshal(d); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzStricter checks that more text never makes an answer weaker: a command
// put behind or before, a wrapper around, another nesting.
func FuzzStricter(f *testing.F) {
	seeds(f)
	frames := []string{
		"%; ls", "ls; %", "%\nls", "ls\n%", "ls && %", "false || %", "( %\n)", "{ %\n}", "if %\nthen ls; fi", "while %\ndo ls; done",
		"! { %\n}", "ls $( %\n)", "cat <( %\n)", "%\n touch p", "% # x", "echo `ls`; %", "wrapped() { %\n}; wrapped", "for wrapped in a b; do %\ndone", "time { %\n}",
	}
	f.Fuzz(func(t *testing.T, text string) {
		// A trailing backslash, an open here-document or comment would swallow
		// what is put behind, and a longer text can exceed a budget.
		if strings.ContainsAny(text, "\\#") || strings.Contains(text, "<<") || strings.Contains(text, "wrapped") || len(text) > 4096 {
			t.Skip()
		}
		for _, m := range []Mode{ModeAsk, ModeAllow} {
			p := &Policy{Mode: m, Disposable: disposable}
			d := p.Decide(text, corpusScope())
			if d.Parse != "ok" {
				continue
			}
			for _, frame := range frames {
				longer := strings.ReplaceAll(frame, "%", text)
				if got := p.Decide(longer, corpusScope()); got.Verdict < d.Verdict {
					t.Errorf("mode %v: %q: %v, but %q: %v", m, text, d.Verdict, longer, got.Verdict)
				}
			}
		}
	})
}

// FuzzQuoting checks that a spelling with the same decoded words gets the same
// answer, and that running exactly these words is never judged weaker than the
// script that runs them.
func FuzzQuoting(f *testing.F) {
	for _, r := range readRows(f, "corpus.jsonl") {
		if !strings.ContainsAny(r.Cmd, "|&;<>()$`\\\"'*?[]{}~=#!\n\t") {
			f.Add(r.Cmd)
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.ContainsAny(line, "|&;<>()$`\\\"'*?[]{}~=#!") {
			t.Skip()
		}
		for _, r := range line {
			if r < ' ' || r > '~' {
				t.Skip()
			}
		}
		plain := strings.Join(words, " ")
		p := &Policy{}
		want := p.Decide(plain, corpusScope())
		if want.Parse != "ok" || len(want.Targets) == 0 || want.Targets[0].Argv == nil {
			t.Skip()
		}
		single, double, back, mixed, ansi := []string{}, []string{}, []string{}, []string{}, []string{}
		for _, w := range words {
			single = append(single, "'"+w+"'")
			double = append(double, `"`+w+`"`)
			back = append(back, `\`+w)
			mixed = append(mixed, w[:len(w)/2]+`""`+w[len(w)/2:])
			ansi = append(ansi, "$'"+w+"'")
		}
		for _, form := range [][]string{single, double, back, mixed, ansi} {
			text := strings.Join(form, " ")
			got := p.Decide(text, corpusScope())
			if got.Verdict != want.Verdict && !keyword(words) {
				t.Errorf("%q: %v, but %q: %v", plain, want.Verdict, text, got.Verdict)
			}
		}
	})
}

// keyword reports a line whose meaning changes with quotes.
func keyword(words []string) bool {
	for _, w := range words {
		switch w {
		case "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select", "time", "coproc",
			"export", "declare", "local", "typeset", "readonly", "nameref", "let", "eval", "alias", "-p", "--":
			return true
		}
	}
	return false
}
