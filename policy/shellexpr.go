package policy

import (
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parameter returns what is known about a parameter expansion, after lowering
// what is nested in it.
func (f *frame) parameter(p *syntax.ParamExp, st *state) (value, bool) {
	unknown := value{state: boundUnknown}
	if p.Flags != nil || p.Width || p.IsSet || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Split != 0 || p.GlobSubst != 0 || p.RcExpand != 0 {
		f.j.note(ShellDifference, "an expansion that is not bash", f.spanOf(p))
		return unknown, false
	}
	plain := !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if p.Param == nil {
		return unknown, false
	}
	name := p.Param.Value
	if plain {
		return f.variableValue(name, st)
	}
	if p.Index != nil {
		f.arithIndex(p.Index, st)
	}
	if p.Slice != nil {
		f.arithm(p.Slice.Offset, st)
		f.arithm(p.Slice.Length, st)
	}
	if p.Repl != nil {
		f.inner(p.Repl.Orig, st)
		f.inner(p.Repl.With, st)
	}
	if p.Excl && p.Names == 0 {
		f.j.add(item{Target: Target{Action: Exec, Resource: f.node(p), Span: f.spanOf(p), Reason: DynamicExpansion, Detail: "reads a variable whose name is in another", Dynamic: true}, risk: riskUnproven})
	}
	if p.Length {
		return value{state: boundNumber}, true
	}
	if p.Exp == nil {
		if v := st.lookup(name); v.state == boundList && indexed(p) {
			if i, err := strconv.Atoi(subscript(p)); err == nil {
				return v.at(i), true
			}
		}
		return unknown, false
	}
	f.inner(p.Exp.Word, st)
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if v, ok := f.variableValue(name, st); ok && v.known() && v.text != "" && p.Index == nil && !p.Excl {
			return v, true
		}
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if v, ok := f.variableValue(name, st); ok && v.known() && p.Index == nil && !p.Excl && p.Exp.Word != nil {
			if text, ok := trimmed(v.text, p.Exp.Op, p.Exp.Word.Lit()); ok {
				return value{state: boundText, text: text}, true
			}
		}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if v, ok := f.variableValue(name, st); ok && v.known() && v.text != "" && p.Index == nil && !p.Excl {
			if t := f.instead(p, true, st); t != "" && !strings.ContainsAny(t, "~\\*?[{") {
				return value{state: boundText, text: t}, true
			}
		}
	case syntax.OtherParamOps:
		if op := p.Exp.Word.Lit(); op != "Q" && op != "U" && op != "u" && op != "L" && op != "a" && op != "A" && op != "E" && op != "K" && op != "k" {
			f.j.add(item{Target: Target{Action: Exec, Resource: f.node(p), Span: f.spanOf(p), Reason: DynamicExpansion, Detail: "expands its value as a prompt, which runs substitutions", Dynamic: true}, risk: riskDanger})
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if v, ok := f.variableValue(name, st); ok && v.known() && v.text != "" && p.Index == nil && !p.Excl {
			return v, true
		}
		f.assigned(name, word{kind: dynamicWord}, f.spanOf(p), true)
		st.bind(name, value{state: boundUnknown, maybe: [2]string{f.instead(p, false, st)}})
	}
	return unknown, false
}

// subscript is the index of a parameter when it is plain text, else "".
func subscript(p *syntax.ParamExp) string {
	switch x := p.Index.(type) {
	case *syntax.Word:
		return x.Lit()
	case *syntax.UnaryArithm:
		if w, ok := x.X.(*syntax.Word); ok && x.Op == syntax.Minus {
			return "-" + w.Lit()
		}
	}
	return ""
}

// instead is the text that ${name:-word} and its kin put in where the
// parameter is not set, or with + where it is; "" when it is not known.
func (f *frame) instead(p *syntax.ParamExp, quoted bool, st *state) string {
	if p.Exp == nil || p.Exp.Word == nil {
		return ""
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
	default:
		return ""
	}
	w := p.Exp.Word
	if quoted {
		return w.Lit() // a tilde stays
	}
	f.j.dry++
	list := f.fields(w.Parts, st, nil, f.at(w.Pos()), f.at(w.End()))
	f.j.dry--
	if len(list) == 1 && list[0].kind != dynamicWord {
		return list[0].text
	}
	return ""
}

// trimmed removes the shortest or longest beginning or end that matches a
// pattern: Bash manual 3.5.3. False for patterns of more than text, * and ?.
func trimmed(s string, op syntax.ParExpOperator, pattern string) (string, bool) {
	if pattern == "" || strings.ContainsAny(pattern, "[]\\(){}~$`'\"<>") || len(s) > 4096 {
		return "", false
	}
	for i := range len(s) {
		if s[i] >= 0x80 && strings.Contains(pattern, "?") {
			return "", false // a character may be several bytes
		}
	}
	for i := range len(s) + 1 {
		switch op {
		case syntax.RemSmallPrefix:
			if matchGlob(pattern, s[:i]) {
				return s[i:], true
			}
		case syntax.RemLargePrefix:
			if matchGlob(pattern, s[:len(s)-i]) {
				return s[len(s)-i:], true
			}
		case syntax.RemSmallSuffix:
			if matchGlob(pattern, s[len(s)-i:]) {
				return s[:len(s)-i], true
			}
		default:
			if matchGlob(pattern, s[i:]) {
				return s[:i], true
			}
		}
	}
	return s, true
}

func (f *frame) inner(w *syntax.Word, st *state) {
	if w != nil && len(w.Parts) > 0 {
		// The shell runs process substitutions here, the parser takes them
		// for text.
		if text := f.node(w); strings.Contains(text, "<(") || strings.Contains(text, ">(") {
			f.j.note(ShellDifference, "a process substitution inside an expansion", f.spanOf(w))
			if k := strings.IndexAny(text, "<>"); k >= 0 {
				f.rawScanDeny(text[k:], st)
			}
		}
		for _, p := range w.Parts {
			// In double quotes a single quote does not quote.
			if q, ok := p.(*syntax.SglQuoted); ok && strings.ContainsAny(q.Value, "$`}") {
				f.j.note(ShellDifference, "quotes inside an expansion", f.spanOf(q))
				f.rawScanDeny(q.Value, st)
			}
		}
		f.fields(w.Parts, st, nil, f.at(w.Pos()), f.at(w.End()))
	}
}

func (f *frame) variableValue(name string, st *state) (value, bool) {
	v := st.lookup(name)
	if v.state == boundList {
		return v.at(0), true
	}
	if v.state != unbound {
		return v, true
	}
	switch name {
	case "HOME":
		return value{state: boundText, text: f.j.scope.Home}, true
	case "PWD":
		if len(st.dirs) == 1 {
			return value{state: boundText, text: st.dirs[0]}, true
		}
	case "#", "?", "$", "!", "RANDOM", "SRANDOM", "SECONDS", "UID", "EUID", "PPID", "BASHPID", "LINENO", "EPOCHSECONDS", "SHLVL", "COLUMNS", "LINES":
		return value{state: boundNumber}, true
	case "USER", "LOGNAME":
		if f.j.scope.User != "" {
			return value{state: boundUnknown}, false
		}
	}
	return value{state: boundUnknown}, false
}

// arithm lowers what is nested in an arithmetic expression, and reports what
// the shell would evaluate that is not certain to be a number: a value may hold
// a[$(command)].
func (f *frame) arithm(x syntax.ArithmExpr, st *state) {
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		if isAssignOp(x.Op) {
			f.arithm(x.Y, st)
			if w, ok := x.X.(*syntax.Word); ok && syntax.ValidName(w.Lit()) {
				f.assigned(w.Lit(), word{kind: dynamicWord, number: true}, f.spanOf(w), true)
				if x.Op != syntax.Assgn {
					f.arithm(x.X, st)
				}
				st.bind(w.Lit(), value{state: boundNumber})
				return
			}
			f.arithm(x.X, st)
			st.unsettleElement(x.X)
			return
		}
		f.arithm(x.X, st)
		f.arithm(x.Y, st)
	case *syntax.UnaryArithm:
		f.arithm(x.X, st)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			if w, ok := x.X.(*syntax.Word); ok && syntax.ValidName(w.Lit()) {
				st.bind(w.Lit(), value{state: boundNumber})
			}
			st.unsettleElement(x.X)
		}
	case *syntax.ParenArithm:
		f.arithm(x.X, st)
	case *syntax.FlagsArithm:
		f.j.note(ShellDifference, "arithmetic that is not bash", f.spanOf(x))
		f.arithm(x.X, st)
	case *syntax.Word:
		if len(x.Parts) == 1 {
			switch p := x.Parts[0].(type) {
			case *syntax.Lit:
				f.arithLit(p.Value, st, f.spanOf(x))
				return
			case *syntax.ParamExp:
				if p.Index != nil && p.Short {
					f.arithm(p.Index, st)
				}
			}
		}
		for _, w := range f.fields(x.Parts, st, nil, f.at(x.Pos()), f.at(x.End())) {
			f.arithText(w, st, f.spanOf(x))
		}
	default:
		f.j.note(ShellDifference, "arithmetic of an unknown kind", f.spanOf(x))
	}
}

func (f *frame) arithLit(s string, st *state, span [2]int) {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		if strings.ContainsAny(s, "[$`") {
			f.uncertainArith(s, span, riskDanger)
		}
		return
	}
	if !syntax.ValidName(s) {
		f.uncertainArith(s, span, riskDanger)
		return
	}
	if v, _ := f.variableValue(s, st); !numeric(v) {
		f.uncertainArith(s, span, riskUnproven)
	}
}

// arithText is a word that is evaluated as an arithmetic expression.
func (f *frame) arithText(w word, st *state, span [2]int) {
	switch {
	case w.number:
	case !w.literal():
		f.uncertainArith(w.text, span, riskUnproven)
	case isNumber(strings.TrimSpace(w.text)), w.text == "":
	case strings.ContainsAny(w.text, "[$`"):
		f.uncertainArith(w.text, span, riskDanger)
	case syntax.ValidName(w.text):
		f.arithLit(w.text, st, span)
	default:
		for _, r := range w.text {
			if !(r >= '0' && r <= '9') && !strings.ContainsRune(" +-*/%()<>=!&|^~?:,", r) {
				f.uncertainArith(w.text, span, riskUnproven)
				for n := assignment(w.text); n > 0; n = 0 {
					st.unknown(w.text[:n-1])
				}
				return
			}
		}
	}
}

func (f *frame) uncertainArith(text string, span [2]int, r risk) {
	f.j.add(item{Target: Target{Action: Exec, Resource: text, Span: span, Reason: ArithmeticCode, Detail: "evaluated as arithmetic, which can run code", Dynamic: true}, risk: r})
}

func isAssignOp(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

// test lowers [[ … ]]. Its numeric comparisons evaluate arithmetic, and -v
// evaluates a subscript: Bash manual 6.4.
func (f *frame) test(x syntax.TestExpr, st *state) {
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
				w, ok := side.(*syntax.Word)
				if !ok {
					f.test(side, st)
					continue
				}
				for _, e := range f.expand(w, st, nil) {
					f.arithText(e, st, f.spanOf(w))
				}
			}
			return
		}
		f.test(x.X, st)
		f.test(x.Y, st)
	case *syntax.UnaryTest:
		w, ok := x.X.(*syntax.Word)
		if ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			for _, e := range f.expand(w, st, nil) {
				switch {
				case e.literal() && syntax.ValidName(e.text):
				case e.literal() && !strings.ContainsAny(e.text, "["):
				default:
					f.uncertainArith(e.text, f.spanOf(w), riskUnproven)
				}
			}
			return
		}
		f.test(x.X, st)
	case *syntax.ParenTest:
		f.test(x.X, st)
	case *syntax.Word:
		f.expand(x, st, nil)
	default:
		f.j.note(ShellDifference, "a test of an unknown kind", f.spanOf(x))
	}
}

// assign lowers one assignment and binds the name. It reports whether a
// program that runs with it can behave differently.
func (f *frame) assign(a *syntax.Assign, st *state, bare bool) bool {
	if a.Name == nil || !syntax.ValidName(a.Name.Value) {
		f.j.note(ShellDifference, "an assignment to what is not a name", f.spanOf(a))
		return true
	}
	name := a.Name.Value
	if a.Index != nil {
		f.arithIndex(a.Index, st)
	}
	list := value{state: boundUnknown}
	if a.Array != nil {
		list = f.array(a, st)
	}
	w := word{}
	if a.Value != nil {
		w = f.assignedWord(a.Value, st)
	}
	if a.Array != nil || a.Index != nil || a.Append {
		w = word{text: w.text, kind: dynamicWord}
	}
	changes := f.assigned(name, w, f.spanOf(a), bare)
	if bare {
		v := w.value()
		if a.Array != nil {
			v = list
		}
		if f.j.attributes[name] {
			v = value{state: boundUnknown}
		}
		if v.state == boundUnknown {
			v.maybe = st.lookup(soleParameter(a.Value)).maybe
		}
		st.bind(name, v)
	}
	return changes
}

// array lowers what an array is assigned to, and says what it then holds.
func (f *frame) array(a *syntax.Assign, st *state) value {
	var words []word
	plain := a.Index == nil
	old := st.lookup(a.Name.Value)
	if a.Append && old.list != nil {
		for _, s := range *old.list {
			words = append(words, literal(s))
		}
	} else if a.Append {
		plain = false
	}
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			f.arithIndex(e.Index, st)
			plain = false
		}
		if e.Value == nil {
			plain = false
			continue
		}
		words = f.expand(e.Value, st, words)
		if text := f.node(e.Value); strings.Contains(text, "=") && strings.Contains(text, "~") {
			plain = false // the form of an assignment, in which a tilde is expanded
		}
	}
	if !plain {
		return value{state: boundUnknown}
	}
	v := listOf(words)
	if a.Append && v.state == boundList {
		v.state = old.state // as sure as what was there
	}
	return v
}

// soleParameter is the name of the parameter of which a word consists.
func soleParameter(w *syntax.Word) string {
	if w == nil || len(w.Parts) != 1 {
		return ""
	}
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	if p, ok := part.(*syntax.ParamExp); ok && p.Param != nil && p.Exp == nil && p.Index == nil && !p.Length && !p.Excl {
		return p.Param.Value
	}
	return ""
}

// assignedWord decodes the right side of an assignment, which the shell
// neither splits nor globs.
func (f *frame) assignedWord(v *syntax.Word, st *state) word {
	list := f.fields(v.Parts, st, nil, f.at(v.Pos()), f.at(v.End()))
	for _, p := range v.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.Contains(l.Value, ":~") {
			list = nil // a tilde behind a colon is expanded
		}
	}
	if len(list) == 1 && list[0].kind != dynamicWord {
		w := list[0]
		w.kind, w.fixed, w.split = literalWord, len(w.text), false
		return w
	}
	if len(list) == 1 {
		w := list[0]
		w.split = false
		return w
	}
	text := f.node(v)
	return word{text: text, kind: dynamicWord, pos: f.at(v.Pos()), end: f.at(v.End())}
}

// arithIndex is a subscript; of an associative array it is plain text.
func (f *frame) arithIndex(x syntax.ArithmExpr, st *state) {
	if w, ok := x.(*syntax.Word); ok && len(w.Parts) == 1 {
		if q, ok := w.Parts[0].(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			if l, ok := q.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(l.Value, "[$`\\") {
				return
			}
		}
		if l := w.Lit(); l == "@" || l == "*" {
			return
		}
	}
	f.arithm(x, st)
}

// assigned reports what an assignment means for the programs that run later.
func (f *frame) assigned(name string, w word, span [2]int, bare bool) bool {
	r, reason, detail := envRisk(name, w)
	if r == riskSafe {
		return !bare && reason != Cosmetic && f.unknownEnv(name, w, span)
	}
	f.j.add(item{Target: Target{Action: EnvSet, Resource: name, Span: span, Reason: reason, Detail: detail, Dynamic: !w.literal()}, risk: r})
	return true
}

// unknownEnv is a variable that is put into the environment of a program and
// of which nothing is known.
func (f *frame) unknownEnv(name string, w word, span [2]int) bool {
	f.j.add(item{Target: Target{Action: EnvSet, Resource: name, Span: span, Reason: Environment, Detail: "changes the environment of a program", Dynamic: !w.literal()}, risk: riskUnproven})
	return true
}

func (f *frame) declare(c *syntax.DeclClause, st state) flow {
	variant := c.Variant.Value
	if !f.step() {
		return through(st)
	}
	before := st // every word is expanded before the first is assigned
	changed, readonly := f.misplaced(variant), variant == "readonly"
	for _, a := range c.Args {
		if a.Name == nil && a.Value != nil {
			for _, w := range f.expand(a.Value, &st, nil) {
				f.declareWord(variant, w, f.spanOf(a), &st)
				changed = changed || changesValues(w)
				readonly = readonly || strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "r")
			}
			continue
		}
		if a.Name != nil {
			f.local(variant, a.Name.Value)
		}
		if a.Name != nil && changed {
			// An attribute changes what is assigned, now and later.
			f.j.setAttribute(a.Name.Value)
			st.unsettleName(a.Name.Value)
		}
		if a.Naked && a.Index == nil {
			// Exports what was assigned before, or only declares.
			name := a.Name.Value
			if variant == "export" {
				v := st.lookup(name)
				w := word{text: v.text, fixed: len(v.text)}
				if v.state != boundText {
					w = word{kind: dynamicWord}
				}
				if v.state != unbound {
					f.assigned(name, w, f.spanOf(a), false)
				}
			}
			continue
		}
		old := before
		f.assign(a, &old, variant != "export")
		if a.Name == nil {
			continue
		}
		v := old.lookup(a.Name.Value)
		if variant == "export" {
			v = value{state: boundUnknown}
			if a.Value != nil && a.Array == nil && a.Index == nil && !a.Append && !f.j.attributes[a.Name.Value] {
				f.j.repeat++
				v = f.assignedWord(a.Value, &old).value()
				f.j.repeat--
			}
		}
		st.bind(a.Name.Value, v)
		if readonly {
			f.j.setAttribute(a.Name.Value) // what is assigned later is refused
		}
	}
	return through(st)
}

// misplaced reports local outside of a function, which is refused.
func (f *frame) misplaced(variant string) bool {
	return variant == "local" && f.j.calls == 0 && len(f.inFunc) == 0
}

// local records a variable that is gone behind the function.
func (f *frame) local(variant, name string) {
	if f.j.calls > 0 && listed("local declare typeset", variant) {
		f.j.locals = append(f.j.locals, name)
	}
}

// changesValues reports an option of declare with which a value is not assigned
// as it is written: an attribute, or an option that is refused.
func changesValues(w word) bool {
	return !w.literal() || w.text != "--" && (strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "+")) && strings.Trim(w.text[1:], "xgtr") != ""
}

func (j *judge) setAttribute(name string) {
	if j.attributes == nil {
		j.attributes = map[string]bool{}
	}
	j.attributes[name] = true
}

func (f *frame) declareWord(variant string, w word, span [2]int, st *state) {
	report := func(r risk, reason Reason, detail string) {
		f.j.add(item{Target: Target{Action: Exec, Argv: []string{variant, w.text}, Span: span, Reason: reason, Detail: detail, Dynamic: !w.literal()}, risk: r})
	}
	switch {
	case !w.literal():
		report(riskUnproven, DynamicWord, "")
		st.forget()
	case strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "+"):
		switch {
		case strings.Trim(w.text[1:], "rgpxtlu") == "" && variant != "export":
			if strings.Contains(w.text, "x") {
				report(riskUnproven, Environment, "exports variables")
			}
		case variant == "export" && strings.Trim(w.text[1:], "p") == "":
		case strings.Contains(w.text, "i"):
			report(riskUnproven, ArithmeticCode, "values are evaluated as arithmetic, which can run code")
		case strings.Contains(w.text, "n"):
			report(riskUnproven, DynamicExpansion, "a variable stands for another")
			st.forget()
		default:
			report(riskUnproven, ShellState, "")
		}
	default:
		n := assignment(w.text)
		if n == 0 {
			report(riskUnproven, ShellState, "")
			if !syntax.ValidName(w.text) {
				st.unsettleSubscript(w.text)
			}
			return
		}
		f.assigned(w.text[:n-1], w.from(n), span, false)
		st.bind(w.text[:n-1], w.from(n).value())
	}
}

// redirects lowers redirections. It returns the standard input that they leave
// and whether standard output goes to a file.
func (f *frame) redirects(list []*syntax.Redirect, st *state, in stdin) (stdin, bool) {
	toFile := false
	for _, r := range list {
		span := f.spanOf(r)
		fd := ""
		if r.N != nil {
			fd = r.N.Value
		}
		if len(fd) > 1 && f.lang == syntax.LangPOSIX {
			// To dash, "10>" is the word 10 and a redirection.
			f.j.note(ShellDifference, "a descriptor of more than one digit", span)
		}
		if strings.HasPrefix(fd, "{") {
			name := strings.Trim(fd, "{}")
			f.assigned(name, word{kind: dynamicWord, number: true}, span, true)
			st.bind(name, value{state: boundNumber})
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			w := f.heredoc(r, st)
			if fd == "" || fd == "0" {
				in = stdin{kind: stdinUnknown}
				if w.literal() {
					in = stdin{kind: stdinText, text: w.text}
				}
			}
			continue
		case syntax.WordHdoc:
			words := f.expand(r.Word, st, nil)
			if fd == "" || fd == "0" {
				in = stdin{kind: stdinUnknown}
				if len(words) == 1 && words[0].literal() && !words[0].computed {
					in = stdin{kind: stdinText, text: words[0].text + "\n"}
				}
			}
			continue
		}
		if r.Word == nil {
			continue
		}
		words := f.expand(r.Word, st, nil)
		if len(words) != 1 {
			words = []word{{text: f.node(r.Word), kind: dynamicWord, pos: f.at(r.Word.Pos()), end: f.at(r.Word.End())}}
		}
		w := words[0]
		c := &command{span: span}
		switch r.Op {
		case syntax.DplIn, syntax.DplOut:
			dup := w.literal() && (w.text == "-" || isNumber(strings.TrimSuffix(w.text, "-")) && !strings.HasPrefix(w.text, "-"))
			if word := f.node(r.Word); len(word) > 1 && word[0] == '-' {
				f.j.note(ShellDifference, "a descriptor that is closed, and a word", span)
			}
			if w.literal() && strings.ContainsAny(w.text, "$`'\"\\~*?[{") {
				// bash expands the word a second time, and takes quotes from it.
				f.j.note(ShellDifference, "a descriptor that is expanded twice", span)
				f.rawScanDeny(w.text, st)
			}
			switch {
			case dup || w.number:
				toFile = toFile || r.Op == syntax.DplOut && (fd == "" || fd == "1")
			case r.Op == syntax.DplOut && w.literal() && !strings.HasPrefix(w.text, "-") && (fd == "" || fd == "1"):
				f.writePath(c, w, st) // >& file
				toFile = true
			case !w.literal() && !(w.fixed > 0 && w.text[0] == '-'):
				f.addPath(c, FileWrite, w, w.text, DynamicPath, "a descriptor or a file that is known only when it runs", riskUnproven, filePath{pattern: anyPath})
			default:
				f.j.note(ShellDifference, "a descriptor that is neither a number nor -", span)
				f.writePath(c, w, st)
			}
		case syntax.RdrIn:
			f.readPath(c, w, st, true)
			if fd == "" || fd == "0" {
				in = stdin{kind: stdinFile}
				if w.process {
					in = stdin{kind: stdinUnknown}
				}
			}
		case syntax.RdrInOut:
			f.readPath(c, w, st, true)
			f.writePath(c, w, st)
			if fd == "" || fd == "0" {
				in = stdin{kind: stdinFile}
			}
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
			if !w.process {
				f.writePath(c, w, st)
			}
			if fd == "" || fd == "1" {
				toFile = true
			}
		default:
			f.j.note(ShellDifference, "a redirection that is not bash", span)
		}
	}
	return in, toFile
}

// heredoc decodes the body of a here-document.
func (f *frame) heredoc(r *syntax.Redirect, st *state) word {
	if r.Hdoc == nil {
		if _, body, ok := strings.Cut(f.text[f.at(r.Word.End()):], "\n"); ok && strings.HasPrefix(strings.TrimLeft(body, "\t"), "\\\n") {
			f.j.note(ShellDifference, "a continued line in a here-document", f.spanOf(r.Word))
		}
		return word{}
	}
	quoted := false
	for _, p := range r.Word.Parts {
		if l, ok := p.(*syntax.Lit); !ok || strings.Contains(l.Value, "\\") {
			quoted = true
		}
	}
	if quoted {
		// As it is written: with an empty quote in the word the parser still
		// expands, and the shell does not.
		if len(r.Hdoc.Parts) == 0 {
			return literal("")
		}
		body := f.node(r.Hdoc)
		// It reaches to the end of the line that ends it.
		end := strings.NewReplacer("'", "", "\"", "", "\\", "").Replace(f.node(r.Word))
		if k := strings.LastIndexByte(body, '\n') + 1; strings.TrimLeft(body[k:], "\t") == end {
			body = body[:k]
		}
		return literal(withoutTabs(r, body))
	}
	if strings.Contains(f.node(r.Hdoc), "\\\n") {
		f.j.note(ShellDifference, "a continued line in a here-document", f.spanOf(r))
	}
	d := decoder{f: f, st: st, fixed: -1, hdoc: true}
	for _, p := range r.Hdoc.Parts {
		d.part(p, true, false, false)
	}
	d.any = true
	d.flush()
	w := d.out[0]
	if w.literal() {
		w.text = withoutTabs(r, w.text)
		w.fixed = len(w.text)
	}
	if strings.Contains(w.text, "\\") {
		w.kind = dynamicWord
	}
	return w
}

// withoutTabs takes the tabs from the start of each line of a <<- document.
func withoutTabs(r *syntax.Redirect, text string) string {
	if r.Op != syntax.DashHdoc || !strings.Contains(text, "\t") {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "")
}

// isTop reports whether the word names the root, home or something above it.
func (f *frame) isTop(w word, st *state) bool {
	for _, p := range candidates(w, st, make([]string, 0, maxDirs)) {
		if f.j.top(path.Clean(p)) != "" {
			return true
		}
	}
	return false
}
