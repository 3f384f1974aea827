package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// RuleError is a rule that is not valid, or whose examples do not hold.
type RuleError struct {
	Rule    Rule
	Problem string
}

func (e *RuleError) Error() string {
	where := e.Rule.Source
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("%srule %q: %s", where, e.Rule.Pattern, e.Problem)
}

// Check reports the first rule that is not valid or whose examples do not
// hold, as a *RuleError.
func (p *Policy) Check() error {
	for _, r := range p.Rules {
		if problem := r.check(); problem != "" {
			return &RuleError{r, problem}
		}
	}
	return nil
}

// action is the action of the rule; the zero value means process.exec.
func (r *Rule) action() Action {
	if r.Action == "" {
		return Exec
	}
	return r.Action
}

func (r *Rule) check() string {
	if r.Verdict < Allow || r.Verdict > Deny {
		return "the verdict must be allow, ask or deny"
	}
	if strings.TrimSpace(r.Pattern) == "" {
		return "the pattern is empty"
	}
	switch r.action() {
	case Exec:
		if problem := r.checkExec(); problem != "" {
			return problem
		}
	case FileRead, FileWrite:
		if _, err := path.Match(strings.ReplaceAll(r.Pattern, "**", "*"), ""); err != nil {
			return "the path pattern is malformed"
		}
	case NetworkTo:
		if problem := r.checkHost(); problem != "" {
			return problem
		}
	case EnvSet, Tool:
		if strings.ContainsAny(r.Pattern, " \t\n") {
			return "the pattern holds a blank"
		}
		if r.Verdict == Allow && strings.Trim(r.Pattern, "*.") == "" {
			return "an allow rule for everything; name what is allowed"
		}
	default:
		return fmt.Sprintf("unknown action %q: want process.exec, file.read, file.write, network, env.set or tool.invoke", r.Action)
	}
	for _, e := range r.Match {
		if !r.holdsFor(e) {
			return fmt.Sprintf("its example %q does not match", e)
		}
	}
	for _, e := range r.NotMatch {
		if r.holdsFor(e) {
			return fmt.Sprintf("its counter-example %q matches", e)
		}
	}
	return ""
}

func (r *Rule) checkHost() string {
	p, err := ParseHostPattern(r.Pattern)
	if err != nil {
		return err.(*HostError).Problem
	}
	if r.Verdict == Allow && p.all {
		return "an allow rule for everything; name what is allowed"
	}
	for _, e := range slices.Concat(r.Match, r.NotMatch) {
		if _, _, err := ParseHostPort(e); err != nil {
			return fmt.Sprintf("its example %q is no host: %s", e, err.(*HostError).Problem)
		}
	}
	return ""
}

// openEnded are programs that run what their arguments say. Allowing them with
// any arguments allows everything.
const openEnded = "find git make npm npx pnpm yarn bun deno docker podman kubectl ssh awk gawk mawk sed perl ruby node nodejs php lua tclsh osascript R Rscript julia gdb vi vim nvim emacs ed less man tar rsync eval source . trap go cargo uv uvx pipx bunx gh just task"

func (r *Rule) checkExec() string {
	tokens := 0
	first, rest := "", false
	problem := ""
	eachToken(r.Pattern, func(t string, last bool) bool {
		tokens++
		if tokens == 1 {
			first = t
		}
		rest = last && t == "*" && tokens > 1
		if strings.Count(t, "{") != strings.Count(t, "}") {
			problem = "unbalanced braces in " + t
		}
		if t != "*" {
			if _, err := path.Match(noBraces(t), ""); err != nil {
				problem = "malformed pattern " + t
			}
		}
		return true
	})
	if problem != "" || r.Verdict != Allow {
		return problem
	}
	n := tokens
	if rest {
		n--
	}
	fixed := strings.Trim(first, "*?")
	switch {
	case fixed == "" || strings.ContainsAny(first, "*?["):
		return "an allow rule must name its program"
	}
	for _, name := range alternatives(first) {
		base := path.Base(name)
		_, interpreter := interpreterCode(base)
		_, shell := shells[base]
		switch {
		case wrapperFor(base) != nil:
			return fmt.Sprintf("%s starts other programs; allow those by their own names", base)
		case shell && (rest || n < 2):
			return fmt.Sprintf("%s runs any code; name the script", base)
		case rest && n == 1 && (interpreter || listed(openEnded, base)):
			return fmt.Sprintf("%s with any arguments runs any code; name its first arguments", base)
		case rest && n == 2 && interpreter && strings.HasPrefix(second(r.Pattern), "-"):
			return fmt.Sprintf("%s %s with any arguments runs any code", base, second(r.Pattern))
		}
	}
	return ""
}

func second(pattern string) (t2 string) {
	n := 0
	eachToken(pattern, func(t string, _ bool) bool {
		if n++; n == 2 {
			t2 = t
		}
		return n < 2
	})
	return t2
}

func noBraces(t string) string { return strings.NewReplacer("{", "", "}", "", ",", "").Replace(t) }

// holdsFor evaluates an example: a command line for process.exec, else a path,
// a host (at port 443 where it names none) or a name.
func (r *Rule) holdsFor(example string) bool {
	p := Policy{Rules: []Rule{*r}}
	if r.action() == NetworkTo {
		h, port, _ := ParseHostPort(example)
		if port == 0 {
			port = 443
		}
		example = h.WithPort(port)
	}
	if r.action() != Exec && r.action() != FileRead && r.action() != FileWrite {
		j := newJudge(&p, exampleScope)
		return j.match(&item{Target: Target{Action: r.action(), Resource: example}}) != nil
	}
	if r.action() != Exec {
		j := newJudge(&p, exampleScope)
		raw := example
		if strings.HasPrefix(raw, "~/") {
			raw = exampleScope.Home + raw[1:]
		} else if !path.IsAbs(raw) {
			raw = exampleScope.Workspace + "/" + raw
		}
		raw = path.Clean(raw)
		return j.match(&item{Target: Target{Action: r.action(), Resource: raw}, filePath: filePath{names: []string{raw}}}) != nil
	}
	j := newJudge(&p, exampleScope)
	f := frame{j: j, text: example, lang: langOf(exampleScope.Shell)}
	st := state{dirs: []string{exampleScope.Cwd}, likely: 1}
	f.script(&st, stdin{})
	for i := range j.items {
		if j.match(&j.items[i]) != nil {
			return true
		}
	}
	return false
}

// exampleScope is where examples are evaluated.
var exampleScope = Scope{Cwd: "/workspace", Workspace: "/workspace", Home: "/home/user", User: "user"}

// match returns the strictest rule that holds for a target.
func (j *judge) match(it *item) *Rule {
	var found *Rule
	for i := range j.policy.Rules {
		r := &j.policy.Rules[i]
		if !r.concerns(it) || found != nil && found.strictness() >= r.strictness() {
			continue
		}
		if j.holds(r, it) {
			found = r
		}
	}
	return found
}

// concerns reports whether the rule is tried on a target. One that allows a
// command allows the connections that it makes, as far as no rule for hosts
// asks or denies.
func (r *Rule) concerns(it *item) bool {
	return r.action() == it.Action || r.action() == Exec && r.Verdict == Allow && it.by != nil
}

// mayDeny returns a deny rule that could hold for a file or a host once it is
// known.
func (j *judge) mayDeny(it *item) *Rule {
	host := it.Action == NetworkTo && it.Dynamic
	if it.pattern == "" && !host || !j.denyRules {
		return nil
	}
	for i := range j.policy.Rules {
		r := &j.policy.Rules[i]
		if r.strictness() == Deny && r.action() == it.Action && (host || j.mayMatchPath(r.Pattern, it.pattern)) {
			return r
		}
	}
	return nil
}

// strictness treats what is no verdict as deny.
func (r *Rule) strictness() Verdict {
	if r.Verdict != Allow && r.Verdict != Ask {
		return Deny
	}
	return r.Verdict
}

func (j *judge) holds(r *Rule, it *item) bool {
	allow := r.Verdict == Allow
	switch r.action() {
	case Exec:
		argv := it.Argv
		if it.by != nil {
			argv = it.by
		}
		if len(argv) == 0 {
			return false
		}
		if allow {
			return matchArgv(r.Pattern, argv, it.words, true)
		}
		if matchArgv(r.Pattern, it.Argv, it.words, false) {
			return true
		}
		for _, l := range it.layers {
			if matchArgv(r.Pattern, l, nil, false) {
				return true
			}
		}
		return false
	case FileRead, FileWrite:
		paths := it.names
		if paths == nil {
			paths = []string{it.Resource}
		}
		if allow && (it.Dynamic || it.pattern != "") {
			return false
		}
		for _, p := range paths {
			if ok := j.matchPath(r.Pattern, p); ok != allow {
				return ok
			}
		}
		return allow
	case NetworkTo:
		p, err := ParseHostPattern(r.Pattern)
		if err != nil {
			return !allow // a rule that nobody can read
		}
		h, port, _ := ParseHostPort(it.Resource)
		if allow {
			return p.Allows(h, port)
		}
		return p.Matches(h, port)
	default:
		return matchGlob(r.Pattern, it.Resource)
	}
}

// matchArgv matches a token pattern against decoded words. Exact means an allow
// rule: the words that the pattern names must be certain, and without a final
// "*" there are no others. Other rules hold for any further words, and skip the
// global options of programs that have sub-commands.
func matchArgv(pattern string, argv []string, words []word, exact bool) bool {
	i, ok, rest := 0, true, false
	eachToken(pattern, func(t string, last bool) bool {
		if last && t == "*" && i > 0 {
			rest = true
			return false
		}
		if !exact && i == 1 && !strings.HasPrefix(t, "-") {
			i = skipGlobals(argv)
		}
		if i >= len(argv) || exact && words != nil && (i >= len(words) || !words[i].literal()) || !matchToken(t, argv[i]) {
			ok = false
			return false
		}
		i++
		return true
	})
	return ok && (!exact || rest || i == len(argv))
}

// skipGlobals returns the index of the first word that is not a global option
// of a program with sub-commands.
func skipGlobals(argv []string) int {
	values, known := globalValues[argv[0]]
	i := 1
	for known && i < len(argv) && strings.HasPrefix(argv[i], "-") {
		if listed(values, argv[i]) {
			i++
		}
		i++
	}
	return i
}

// eachToken calls fn for the blank-separated tokens of a pattern; single
// quotes hold a token with blanks together.
func eachToken(pattern string, fn func(token string, last bool) bool) {
	for {
		pattern = strings.TrimLeft(pattern, " \t")
		if pattern == "" {
			return
		}
		var t string
		if pattern[0] == '\'' {
			end := strings.IndexByte(pattern[1:], '\'')
			if end < 0 {
				end = len(pattern) - 1
			}
			t, pattern = pattern[1:end+1], pattern[min(end+2, len(pattern)):]
		} else {
			end := strings.IndexAny(pattern, " \t")
			if end < 0 {
				end = len(pattern)
			}
			t, pattern = pattern[:end], pattern[end:]
		}
		if !fn(t, strings.TrimLeft(pattern, " \t") == "") {
			return
		}
	}
}

// matchToken matches one word: {a,b} are alternatives, * and ? stay in the word.
func matchToken(t, w string) bool {
	if !strings.ContainsAny(t, "{*?[") {
		return t == w
	}
	for _, a := range alternatives(t) {
		if matchGlob(a, w) {
			return true
		}
	}
	return false
}

// alternatives expands the first {a,b} of a token, and those inside the rest.
func alternatives(t string) []string {
	open := strings.IndexByte(t, '{')
	if open < 0 {
		return []string{t}
	}
	end := strings.IndexByte(t[open:], '}')
	if end < 0 || !strings.Contains(t[open:open+end], ",") {
		return []string{t}
	}
	var out []string
	for _, a := range strings.Split(t[open+1:open+end], ",") {
		for _, tail := range alternatives(t[open+end+1:]) {
			if len(out) < 256 {
				out = append(out, t[:open]+a+tail)
			}
		}
	}
	return out
}

// matchGlob matches with * for any text and ? for one byte.
func matchGlob(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchPath matches a path pattern in the manner of gitignore(5): "/" at the
// start is the root, "~/" home; a slash inside anchors it at the workspace;
// without one it is a name at any depth. * stays in a name, ** does not. A
// pattern covers what is below it.
func (j *judge) matchPath(pattern, p string) bool {
	pattern = j.anchored(pattern)
	if strings.HasPrefix(pattern, "/") {
		return pattern == "/" || matchNames(strings.Split(pattern, "/"), strings.Split(p, "/"))
	}
	for _, name := range strings.Split(p, "/") {
		if ok, _ := path.Match(pattern, name); ok && name != "" {
			return true
		}
	}
	return false
}

// anchored is the pattern of a rule from the root, or a name alone.
func (j *judge) anchored(pattern string) string {
	pattern = strings.TrimSuffix(pattern, "/")
	switch {
	case pattern == "":
		return "/"
	case pattern == "~", strings.HasPrefix(pattern, "~/"):
		return j.scope.Home + pattern[1:]
	case !strings.HasPrefix(pattern, "/") && strings.Contains(pattern, "/"):
		return path.Join(j.scope.Workspace, pattern)
	}
	return pattern
}

// mayMatchPath reports whether a path that matches both patterns can exist: the
// one of a rule and the one of a word that is not certain.
func (j *judge) mayMatchPath(pattern, unsure string) bool {
	pattern = j.anchored(pattern)
	names := strings.Split(unsure, "/")
	if !strings.HasPrefix(pattern, "/") {
		for _, name := range names {
			if name != "" && overlap(pattern, name) {
				return true
			}
		}
		return false
	}
	rule := strings.Split(pattern, "/")
	for i, name := range names {
		if i >= len(rule) || rule[i] == "**" || name == "**" {
			return true
		}
		if !overlap(rule[i], name) {
			return false
		}
	}
	return len(names) >= len(rule)
}

// overlap reports whether some name matches both patterns. Brackets and
// braces count as anything.
func overlap(a, b string) bool {
	if a == b || strings.ContainsAny(a+b, "[\\{(") {
		return true
	}
	prev, cur := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := 0; i <= len(a); i++ { // cur[k]: a[:i] and b[:k] have a name in common
		for k := 0; k <= len(b); k++ {
			switch {
			case i == 0 && k == 0:
				cur[k] = true
			case i > 0 && a[i-1] == '*':
				cur[k] = prev[k] || k > 0 && cur[k-1]
			case k > 0 && b[k-1] == '*':
				cur[k] = cur[k-1] || i > 0 && prev[k]
			default:
				cur[k] = i > 0 && k > 0 && prev[k-1] && (a[i-1] == b[k-1] || a[i-1] == '?' || b[k-1] == '?')
			}
		}
		prev, cur = cur, prev
	}
	return prev[len(b)]
}

// matchNames matches the names of a path one by one; a pattern that ends
// before the path covers the rest.
func matchNames(pattern, names []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for k := 0; k <= len(names); k++ {
				if matchNames(pattern[1:], names[k:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], names[0]); !ok || err != nil {
			return false
		}
		pattern, names = pattern[1:], names[1:]
	}
	return true
}
