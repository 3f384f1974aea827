package policy

import (
	"strings"
	"testing"
)

func benchmark(b *testing.B, text string) {
	p := &Policy{}
	s := corpusScope()
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		p.Decide(text, s)
	}
}

func BenchmarkShort(b *testing.B) { benchmark(b, "ls -la src") }
func BenchmarkTypical(b *testing.B) {
	benchmark(b, `cd src && git diff --stat HEAD~1 | head -20; rg -n "deprecated" . | sort | uniq -c`)
}

func BenchmarkBuild(b *testing.B) {
	benchmark(b, `go build ./... && go test -run TestX ./pkg/... 2>&1 | tail -50`)
}

func BenchmarkAgent(b *testing.B) { benchmark(b, `cd src && go test ./... 2>&1 | tail -20`) }

// BenchmarkScript fills the size gate with an ordinary script.
func BenchmarkScript(b *testing.B) {
	unit := "for f in *.go; do\n  if [ -f \"$f\" ]; then echo \"checking $f\"; gofmt -l \"$f\" | head -5; fi\ndone\nname=$(basename \"$PWD\") && printf '%s\\n' \"$name\" >> log.txt\n"
	benchmark(b, strings.Repeat(unit, maxText/len(unit)))
}

// BenchmarkWorst are texts of the size gate that are hard to read.
func BenchmarkWorst(b *testing.B) {
	n := maxText
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	for name, text := range map[string]string{
		"parens":     strings.Repeat("(", maxOpeners) + "ls" + strings.Repeat(")", maxOpeners),
		"subst":      strings.Repeat("$(", maxOpeners) + "ls" + strings.Repeat(")", maxOpeners),
		"arithmetic": strings.Repeat("$[", maxOpeners) + "1" + strings.Repeat("]", maxOpeners),
		"ifs":        strings.Repeat("if a;then ", 4000) + strings.Repeat("fi;", 4000),
		"loops":      strings.Repeat("for i in a b c; do x=$i; ", 1300) + "ls;" + strings.Repeat(" done;", 1300),
		"while":      strings.Repeat("while x=$x; do ", 2000) + "ls;" + strings.Repeat(" done;", 2000),
		"functions":  rep("f() { f; }; f;"),
		"calls":      rep("f() { ls; }; f;"),
		"braces":     rep("{a,b}{c,d}{e,f}{g,h} "),
		"and":        rep("a&&") + "b",
		"pipes":      rep("a|") + "b",
		"words":      rep("a "),
		"evals":      rep("eval ls;"),
		"vars":       rep("a=$a;b=$b;"),
		"joins":      rep("a=1||b=2;"),
		"opaque":     rep("rm -rf ~/x;") + "(",
		"comments":   rep("a #\\\n"),
		"unclosed":   rep("if "),
		"nested":     rep("sh -c 'ls';"),
		"heredocs":   rep("cat <<E\nx\nE\n"),
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, text[:min(len(text), maxText)]) })
	}
}

func BenchmarkRules(b *testing.B) {
	p := &Policy{}
	for range 50 {
		p.Rules = append(p.Rules, Rule{Verdict: Deny, Pattern: "git push *"}, Rule{Verdict: Allow, Pattern: "npm {test,run} *"})
	}
	s := corpusScope()
	b.ReportAllocs()
	for b.Loop() {
		p.Decide("npm test && git status", s)
	}
}
