package darwin

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The evaluator gives the verdicts that people published. cplt#455 (an allow
// with require-all of a subpath and a vnode-type beat a later plain subpath deny,
// not a literal one) does not follow from its model; no rule here has that form.
func TestVerdicts(t *testing.T) {
	numbers := map[string]bool{}
	for _, b := range blocksOf(t, "testdata/verdicts.txt") {
		for _, n := range regexp.MustCompile(`^[0-9]+(, [0-9]+)*`).FindAllString(b.title, 1) {
			for n := range strings.SplitSeq(n, ", ") {
				numbers[n] = true
			}
		}
		t.Run(b.title, func(t *testing.T) {
			p, err := readSBPL("(version 1)\n"+b.rules, nil)
			judge(t, b, p, err)
		})
	}
	for n := range 55 {
		if !numbers[strconv.Itoa(n+1)] {
			t.Errorf("verdict %d is not there", n+1)
		}
	}
}

func blocksOf(t *testing.T, file string) []block {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := readBlocks(string(data))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return blocks
}

// judge asks a profile what a case asks.
func judge(t *testing.T, b block, p *sbpl, err error) {
	t.Helper()
	if len(b.asks) == 0 {
		t.Errorf("line %d: asks nothing", b.line)
	}
	w := newWorld(p)
	for _, f := range b.facts {
		if err := w.fact(f); err != nil {
			t.Errorf("line %d: %v", b.line, err)
		}
	}
	for _, a := range b.asks {
		if a.words[0] == "load" {
			if (err != nil) != (a.want == "error") {
				t.Errorf("line %d: load: %v", a.line, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("line %d: %v", a.line, err)
			continue
		}
		ok, why, err := w.allows(a.words)
		if err != nil {
			t.Errorf("line %d: %v", a.line, err)
		} else if ok != (a.want == "allow") {
			t.Errorf("line %d: %q is allowed: %v, want %s: %s", a.line, a.words, ok, a.want, why)
		}
	}
}
