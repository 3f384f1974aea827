package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Explain says for people what the call with this script would do, target by
// target: the command underlined in its line, what starts it, who decided and
// why, and what would have to change. Its text is safe to print.
func (d Decision) Explain(script string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (mode %s, shell %s", d.Verdict, d.Mode, d.Shell)
	if d.ReadOnly {
		b.WriteString(", read-only")
	}
	b.WriteString(")\n")
	for _, t := range d.Targets {
		b.WriteString("\n")
		underline(&b, script, t.Span)
		fmt.Fprintf(&b, "  %s  %s", t.Action, t.display())
		if len(t.Wrappers) > 0 {
			fmt.Fprintf(&b, "  (through %s)", Escape(strings.Join(t.Wrappers, ", ")))
		}
		fmt.Fprintf(&b, "\n  %s, %s: %s", t.Verdict, t.Stage, t.Reason)
		if t.Detail != "" {
			fmt.Fprintf(&b, ": %s", Escape(t.Detail))
		}
		if t.Rule != "" {
			fmt.Fprintf(&b, " [%s]", Escape(t.Rule))
		}
		b.WriteString("\n")
		if advice := t.advice(); advice != "" {
			fmt.Fprintf(&b, "  %s\n", advice)
		}
	}
	return b.String()
}

// underline writes the line in which the span begins, and marks the span.
func underline(b *strings.Builder, script string, span [2]int) {
	if span[1] > len(script) || span[0] >= span[1] {
		return
	}
	start := strings.LastIndexByte(script[:span[0]], '\n') + 1
	end := len(script)
	if k := strings.IndexByte(script[span[0]:], '\n'); k >= 0 {
		end = span[0] + k
	}
	stop := min(span[1], end)
	before, marked := Escape(script[start:span[0]]), Escape(script[span[0]:stop])
	const width = 60
	if n := utf8.RuneCountInString(before); n > width {
		before = "..." + string([]rune(before)[n-width+3:])
	}
	after := Escape(script[stop:end])
	if n := utf8.RuneCountInString(after); n > width {
		after = string([]rune(after)[:width-3]) + "..."
	}
	fmt.Fprintf(b, "  %s%s%s\n  %s%s\n", before, marked, after,
		strings.Repeat(" ", utf8.RuneCountInString(before)), strings.Repeat("~", max(1, utf8.RuneCountInString(marked))))
}

// arities say how many words name what a program does: longest row first.
var arities = []struct {
	n     int
	names string // "|" separates the beginnings
}{
	{3, "npm run|pnpm run|yarn run|bun run|go mod|git remote|git stash|git config|git worktree|python -m|python3 -m|rails db|kubectl get|kubectl describe|gh pr|gh issue|gh run|gh repo|aws s3|gcloud compute"},
	{2, "git|go|cargo|make|npm|pnpm|yarn|bun|pip|pip3|poetry|uv|kubectl|gh|aws|gcloud|helm|terraform|brew|apt|apt-get|gem|bundle|rails|mvn|gradle|dotnet|swift|flutter|dart|just|task|systemctl|rustup|nx|turbo|conda"},
}

// runners fetch or start any program, on this machine, in a container or on
// another machine: only all of their words say what they do.
const runners = "npx|bunx|pnpx|uvx|pipx|npm exec|npm x|npm init|npm create|pnpm exec|pnpm dlx|pnpm create|yarn exec|yarn dlx|yarn create|bun x|bun create|deno|uv run|uv tool|uv x|" +
	"poetry run|pipenv run|pdm run|hatch run|bundle exec|gem exec|rails runner|conda run|mamba run|go run|go tool|cargo run|cargo xtask|dotnet run|dotnet tool|dart run|nix|" +
	"docker|podman|nerdctl|docker-compose|podman-compose|kubectl exec|kubectl run|kubectl debug|ssh|vagrant|flatpak run|gh extension"

// Suggest returns the allow rules that would let the call through, one for
// each program that only the mode's default asked about; none when other rules
// would not be enough, or when a rule so wide is refused by Check.
func (p *Policy) Suggest(script string, s Scope) []Rule {
	d := p.Decide(script, s)
	if d.Verdict != Ask {
		return nil
	}
	var rules []Rule
	for _, t := range d.Targets {
		if t.Verdict != Ask || t.Action == NetworkTo && t.Reason == NetworkAccess {
			continue // a rule for the command lets it connect
		}
		if t.Stage != StageDefault || !t.Grantable {
			return nil
		}
		r := Rule{Action: t.Action, Verdict: Allow, Pattern: t.Resource}
		if t.Action == Exec {
			r.Pattern = suggestion(t.Argv)
		}
		if r.check() != "" {
			return nil
		}
		if !hasRule(rules, r) {
			rules = append(rules, r)
		}
	}
	with := *p
	with.Rules = append(p.Rules[:len(p.Rules):len(p.Rules)], rules...)
	if with.Decide(script, s).Verdict != Allow {
		return nil
	}
	return rules
}

func hasRule(list []Rule, r Rule) bool {
	for _, e := range list {
		if e.Action == r.Action && e.Pattern == r.Pattern {
			return true
		}
	}
	return false
}

// suggestion is the pattern for a call: its naming words and any further ones
// for a program with a row, else exactly its words.
func suggestion(argv []string) string {
	n := arity(argv)
	words := argv
	if n > 0 && n < len(argv) {
		words = argv[:n]
	}
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(patternWord(w))
	}
	if len(words) < len(argv) {
		b.WriteString(" *")
	}
	return b.String()
}

// patternWord writes a word so that a pattern matches it and nothing else, or
// as little else as patterns can say.
func patternWord(w string) string {
	if w == "" || strings.ContainsAny(w, " \t\n") {
		return "'" + w + "'"
	}
	return w
}

func arity(argv []string) int {
	for _, beginning := range strings.Split(runners, "|") {
		if beginsWith(argv, beginning) {
			return 0
		}
	}
	for _, row := range arities {
		for _, beginning := range strings.Split(row.names, "|") {
			if len(argv) < row.n || !beginsWith(argv, beginning) {
				continue
			}
			match := true
			for _, w := range argv[1:row.n] {
				match = match && !strings.HasPrefix(w, "-")
			}
			if match {
				return row.n
			}
		}
	}
	return 0
}

func beginsWith(argv []string, beginning string) bool {
	for i, w := range strings.Fields(beginning) {
		if i >= len(argv) || argv[i] != w {
			return false
		}
	}
	return true
}
