package policy

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtin judges the builtins that matter to the state of the shell or that
// are programs of their own only inside it (Bash manual, chapter 4). False:
// judge it as a program.
func (f *frame) builtin(name string, c *command, st *state) (flow, bool) {
	args := c.args()
	if f.lang == syntax.LangPOSIX && listed(bashOnly, name) {
		f.j.note(ShellDifference, "a builtin that not every sh has", c.span)
	}
	switch name {
	case "cd", "pushd", "popd", "chdir":
		return f.cd(name, c, st), true
	case ":", "true", "false", "times", "dirs", "jobs", "logout", "bg", "fg", "disown", "return", "break", "continue", "exit", "wait":
		f.plain(name, c, st)
		return through(*st), true
	case "exec", "command", "builtin":
		if len(args) == 0 {
			if name == "exec" {
				f.execNothing(c)
			}
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
			return through(*st), true
		}
		if name == "exec" && args[0].text == "-" {
			return flow{}, false
		}
		if name == "command" && args[0].literal() && (args[0].text == "-v" || args[0].text == "-V" || args[0].text == "-pv") {
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
			return through(*st), true
		}
		return flow{}, false // a wrapper
	case "type", "hash":
		for _, a := range args {
			if a.mayBeOption() && (!a.literal() || strings.Trim(a.text, "-aftpPr") != "" || name == "hash" && strings.ContainsAny(a.text, "p")) {
				f.add(c, item{Target: Target{Reason: ShellState, Detail: "may change where programs are found"}, risk: riskDanger})
				return through(*st), true
			}
		}
		f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
		return through(*st), true
	case "eval":
		return f.eval(c, st), true
	case "source", ".":
		f.sourceFile(c, st)
		return through(*st), true
	case "trap":
		f.trap(c, st)
		return through(*st), true
	case "alias", "enable":
		if len(args) == 0 || len(args) == 1 && args[0].text == "-p" {
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
			return through(*st), true
		}
		f.add(c, item{Target: Target{Reason: ShadowedName, Detail: "replaces the meaning of a name"}, risk: riskDanger})
		for _, a := range args {
			if n := strings.IndexByte(a.text, '='); n > 0 && name == "alias" {
				f.rawScanDeny(a.text[n+1:], st)
			}
		}
		return through(*st), true
	case "unalias", "umask", "ulimit", "caller", "history", "getopts":
		f.stateBuiltin(name, c, st)
		return through(*st), true
	case "fc", "bind", "complete", "compgen", "compopt":
		r := riskUnproven
		for _, a := range args {
			if !a.literal() || strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, "CFexs") {
				r = riskDanger
			}
		}
		f.add(c, item{Target: Target{Reason: ShellState, Detail: "may run code later"}, risk: r})
		return through(*st), true
	case "set":
		f.set(c, st)
		return through(*st), true
	case "shopt":
		f.shopt(c)
		return through(*st), true
	case "shift":
		st.unsettlePositional()
		return through(*st), true
	case "unset":
		for _, a := range args {
			if !a.literal() {
				f.add(c, item{Target: Target{Reason: DynamicWord, Dynamic: true}, risk: riskUnproven})
			} else if strings.HasPrefix(a.text, "-") {
				continue
			} else if !syntax.ValidName(a.text) {
				f.add(c, item{Target: Target{Reason: ArithmeticCode, Detail: "a subscript is evaluated"}, risk: riskDanger})
				st.unsettleSubscript(a.text)
			} else {
				st.unsettleName(a.text)
				if st.lookup(a.text+"()").state == boundFunc {
					st.unknown(a.text + "()")
				}
				if r, reason, detail := envRisk(a.text, word{}); r > riskSafe {
					f.add(c, item{Target: Target{Action: EnvSet, Resource: a.text, Reason: reason, Detail: detail}, risk: riskUnproven})
				}
			}
		}
		return through(*st), true
	case "read", "mapfile", "readarray":
		f.read(name, c, st)
		return through(*st), true
	case "printf":
		out := f.printf(c, st)
		return flow{ok: *st, err: *st, out: out}, true
	case "echo":
		f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
		return flow{ok: *st, err: *st, out: echoed(args, f.lang)}, true
	case "let":
		for _, a := range args {
			f.arithText(a, st, c.span)
		}
		return through(*st), true
	case "test", "[":
		f.testCommand(name, c, st)
		return through(*st), true
	case "pwd":
		out := output{}
		if len(args) == 0 && len(st.dirs) == 1 {
			out = output{outText, st.dirs[0] + "\n"}
		}
		f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
		return flow{ok: *st, err: *st, out: out}, true
	case "export", "declare", "local", "readonly", "typeset", "nameref":
		// As a command and not as a declaration: reached through a wrapper or
		// in a spelling that the parser does not know.
		changed := f.misplaced(name)
		for _, a := range args {
			changed = changed || a.literal() && changesValues(a)
			if n := assignment(a.text); n > 0 && a.fixed >= n {
				f.local(name, a.text[:n-1])
				f.assigned(a.text[:n-1], a.from(n), c.span, false)
				st.bind(a.text[:n-1], a.from(n).value())
				if changed {
					f.j.setAttribute(a.text[:n-1])
				}
				if changed || a.computed { // not every shell splits the value
					st.unknown(a.text[:n-1])
				}
			} else if !a.literal() || !syntax.ValidName(a.text) {
				f.add(c, item{Target: Target{Reason: ShellState, Dynamic: !a.literal()}, risk: riskUnproven})
				st.unsettleSubscript(a.text[:a.fixed])
				if !a.literal() {
					st.forget()
				}
			}
		}
		return through(*st), true
	case "kill":
		f.kill(c)
		return through(*st), true
	}
	return flow{}, false
}

// bashOnly are builtins of bash that are programs for a POSIX shell.
const bashOnly = "pushd popd dirs declare typeset let source shopt mapfile readarray enable builtin compgen complete caller history"

// plain is a builtin that changes nothing, with operands that are jobs or
// numbers.
func (f *frame) plain(name string, c *command, st *state) {
	if name == "jobs" {
		for i, a := range c.args() {
			if a.mayBeOption() && (!a.literal() || strings.Contains(a.text, "x")) { // jobs -x command
				rest := *c
				rest.argv = c.args()[i+1:]
				f.add(c, item{Target: Target{Reason: UnknownOption}, risk: riskUnproven})
				f.run(&rest, st)
				return
			}
		}
	}
	if name == "wait" {
		for i, a := range c.args() {
			if a.mayBeOption() && strings.Contains(a.text, "p") || a.mayBeOption() && !a.flagKnown() {
				f.add(c, item{Target: Target{Reason: ArithmeticCode, Detail: "a subscript is evaluated"}, risk: riskUnproven})
				if i+1 < len(c.args()) {
					f.variable(c.args()[i+1], c, st)
				}
				return
			}
		}
	}
	f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
}

func (f *frame) stateBuiltin(name string, c *command, st *state) {
	args := c.args()
	if len(args) == 0 || (name == "umask" || name == "ulimit") && len(args) == 1 && strings.Trim(args[0].text, "-SaHcdefilmnpqrstuv") == "" {
		f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
		return
	}
	if name == "history" {
		f.history(c, st)
	}
	if name == "getopts" {
		if len(args) > 1 {
			f.variable(args[1], c, st)
		}
		st.unknown("OPTARG")
		st.bind("OPTIND", value{state: boundNumber})
		f.add(c, item{Target: Target{Reason: ShellState}, risk: riskUnproven})
		return
	}
	f.add(c, item{Target: Target{Reason: ShellState}, risk: riskUnproven})
}

// execNothing is exec without a command, of which the redirections stay. A shell
// that reads its script from standard input goes on with another one.
func (f *frame) execNothing(c *command) {
	if c.stdin && f.outer != nil {
		f.j.note(ShellDifference, "another standard input for the rest of a script", c.span)
	}
}

// takesScript is a command that reads its standard input. Where a shell reads
// its script from there, it goes on behind what was taken, even inside a line.
func (f *frame) takesScript(c *command) {
	if f.onStdin && c.in.inherited() {
		f.j.note(ShellDifference, "reads a part of the script, so that another one is run", c.span)
	}
}

// toStdin says whether a redirection may be one of standard input. Of more than
// one digit it is not known: to dash they are a word.
func toStdin(r *syntax.Redirect) bool {
	if r.N != nil {
		return len(r.N.Value) != 1 || r.N.Value == "0"
	}
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	}
	return false
}

// cd tracks the directory. It is assumed to work where && follows it, and may
// have failed otherwise.
func (f *frame) cd(name string, c *command, st *state) flow {
	var to word
	operands := 0
	for _, a := range c.args() {
		if a.literal() && len(a.text) > 1 && a.text[0] == '-' && strings.Trim(a.text, "-LPe@n") == "" {
			continue
		}
		to = a
		operands++
	}
	f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
	ok := *st
	switch {
	case operands == 0 && (name == "cd" || name == "chdir"):
		if v := st.lookup("HOME"); v.state == unbound {
			ok.cwd([]string{f.j.scope.Home})
		} else {
			ok.cwd(nil)
		}
	case operands != 1 || name == "popd" || st.lookup("CDPATH").state != unbound:
		ok.cwd(nil)
	default:
		ok.cwd(f.chdir(to, st))
		ok.likely = min(st.likely, len(ok.dirs))
	}
	failed := *st
	failed.likely = 0 // it is not expected to fail
	return flow{ok: ok, err: failed}
}

func (f *frame) chdir(w word, st *state) []string {
	if !w.literal() || w.text == "-" || w.text == "" || strings.HasPrefix(w.text, "+") {
		return nil
	}
	if path.IsAbs(w.text) {
		return []string{path.Clean(w.text)}
	}
	var dirs []string
	for _, d := range st.dirs {
		if p := path.Join(d, w.text); !contains(dirs, p) {
			dirs = append(dirs, p)
		}
	}
	return dirs
}

func (f *frame) eval(c *command, st *state) flow {
	args := c.args()
	if len(args) > 0 && args[0].literal() && args[0].text == "--" {
		args = args[1:]
	}
	text, ok := joinWords(args)
	if !ok || c.appended {
		f.add(c, item{Target: Target{Reason: DynamicCode, Detail: "evaluates text that is known only when it runs", Dynamic: true}, risk: riskDanger})
		f.rawScanDeny(text, st)
		st.forget()
		return through(*st)
	}
	if defines(text) {
		f.add(c, item{Target: Target{Reason: ShellState, Detail: "defines names"}, risk: riskUnproven})
	}
	out := f.nested(text, f.lang, c, st, c.in)
	return flow{ok: *st, err: *st, out: out}
}

func defines(text string) bool {
	return strings.Contains(text, "()") || strings.Contains(text, "function")
}

// sourceFile runs a file in this shell: everything that is known is lost.
func (f *frame) sourceFile(c *command, st *state) {
	t := Target{Reason: Script, Detail: "runs a file in this shell"}
	r := riskUnproven
	switch args := c.args(); {
	case len(args) == 0:
	case args[0].process, args[0].literal() && strings.HasPrefix(args[0].text, "/dev/") && c.in.kind != stdinInherited && c.in.kind != stdinFile && c.in.kind != stdinText:
		t.Reason, t.Detail, r = PipedCode, "runs what comes out of a pipe", riskDanger
	case args[0].literal() && args[0].text == "/dev/stdin" && c.in.kind == stdinText:
		f.nested(c.in.text, f.lang, c, st, stdin{})
	case !args[0].literal():
		t.Dynamic = true
	}
	f.add(c, item{Target: t, risk: r})
	st.forget()
}

func (f *frame) trap(c *command, st *state) {
	args := c.args()
	if len(args) > 0 && args[0].literal() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].literal() && (args[0].text == "-l" || args[0].text == "-p" || args[0].text == "-" || args[0].text == "") || len(args) == 1 {
		f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
		return
	}
	if !args[0].literal() {
		f.add(c, item{Target: Target{Reason: DynamicCode, Detail: "code that is known only when it runs", Dynamic: true}, risk: riskDanger})
		return
	}
	f.add(c, item{Target: Target{Reason: ShellState, Detail: "runs code later"}, risk: riskUnproven})
	now := *st
	now.cwd(nil)
	f.nested(args[0].text, f.lang, c, &now, stdin{})
	f.traps = append(f.traps, trap{args[0].text, c, st.vars})
}

// runTraps analyses the traps of a shell that ends, those from the first on,
// again with what became of the variables since.
func (f *frame) runTraps(first int, st *state) {
	first = min(first, len(f.traps))
	traps := f.traps[first:]
	f.traps = f.traps[:first:first]
	for _, t := range traps {
		later := *st
		later.cwd(nil)
		changed := false
		for b := st.vars; b != nil && b != t.vars; b = b.next {
			old := state{vars: t.vars}
			if old.lookup(b.name) != b.value {
				later.unknown(b.name)
				changed = true
			}
		}
		if changed {
			f.j.repeat++
			f.nested(t.code, f.lang, t.c, &later, stdin{})
			f.j.repeat--
		}
	}
}

// history reads or writes a file with some options: Bash manual 9.2.
func (f *frame) history(c *command, st *state) {
	var file word
	writes, reads := false, false
	for _, a := range c.args() {
		if a.mayBeOption() {
			writes = writes || !a.literal() || strings.ContainsAny(a.text, "wa")
			reads = reads || strings.ContainsAny(a.text, "rn")
			continue
		}
		if file.text == "" { // the first; others are not looked at
			file = a
		}
	}
	if file.text == "" {
		file = word{text: "$HISTFILE", kind: dynamicWord}
	}
	if reads {
		f.readPath(c, file, st, false)
	}
	if writes {
		f.writePath(c, file, st)
	}
}

func (f *frame) set(c *command, st *state) {
	for i := 0; i < len(c.args()); i++ {
		a := c.args()[i]
		switch {
		case !a.literal() && a.mayBeOption():
			f.add(c, item{Target: Target{Reason: DynamicWord, Dynamic: true}, risk: riskUnproven})
			st.unsettlePositional()
			return
		case a.literal() && (a.text == "-o" || a.text == "+o"):
			if i++; i < len(c.args()) && !listed("errexit nounset pipefail xtrace noglob noclobber verbose errtrace functrace monitor notify nolog ignoreeof hashall braceexpand emacs vi", c.args()[i].text) {
				if c.args()[i].text == "posix" || !c.args()[i].literal() {
					f.j.note(ShellDifference, "the shell reads what follows in another way", c.span)
				}
				f.add(c, item{Target: Target{Reason: ShellState}, risk: riskUnproven})
			}
		case a.literal() && len(a.text) > 1 && (a.text[0] == '-' || a.text[0] == '+') && a.text != "--":
			if strings.Trim(a.text[1:], "euxvfCbmhBEHTon") != "" {
				f.add(c, item{Target: Target{Reason: ShellState}, risk: riskUnproven})
			} else if strings.HasSuffix(a.text, "o") {
				i++
				if i < len(c.args()) && !listed("errexit nounset pipefail xtrace noglob noclobber verbose errtrace functrace", c.args()[i].text) {
					f.add(c, item{Target: Target{Reason: ShellState}, risk: riskUnproven})
				}
			}
		default:
			rest := c.args()[i:]
			if a.literal() && a.text == "--" {
				rest = rest[1:]
			}
			for k, name := range positional {
				if k < len(rest) && rest[k].literal() {
					st.bind(name, rest[k].value())
				} else {
					st.unknown(name)
				}
			}
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
			return
		}
	}
	f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
}

func (f *frame) shopt(c *command) {
	r, reason := riskSafe, ReadOnly
	for _, a := range c.args() {
		switch {
		case !a.literal():
			r, reason = max(r, riskUnproven), DynamicWord
		case a.text == "expand_aliases":
			r, reason = riskDanger, ShadowedName
		case strings.HasPrefix(a.text, "-") && strings.Trim(a.text, "-supqo") == "":
		case listed("nullglob globstar extglob dotglob nocaseglob nocasematch failglob inherit_errexit checkwinsize cmdhist histappend globasciiranges", a.text):
		default:
			r, reason = max(r, riskUnproven), ShellState
		}
	}
	f.add(c, item{Target: Target{Reason: reason}, risk: r})
}

// variable is a name that a builtin assigns to.
func (f *frame) variable(w word, c *command, st *state) risk {
	switch {
	case !w.literal():
		f.add(c, item{Target: Target{Reason: DynamicWord, Detail: "the name of a variable is known only when it runs", Dynamic: true}, risk: riskUnproven})
		st.forget()
		return riskUnproven
	case !syntax.ValidName(w.text):
		st.unsettleSubscript(w.text)
		if strings.ContainsAny(w.text, "[$`") {
			f.add(c, item{Target: Target{Reason: ArithmeticCode, Detail: "a subscript is evaluated"}, risk: riskDanger})
			return riskDanger
		}
		f.add(c, item{Target: Target{Reason: UnknownOption}, risk: riskUnproven})
		return riskUnproven
	}
	st.unknown(w.text)
	if c.in.kind == stdinNames && c.argv[0].text == "read" {
		st.bind(w.text, value{state: boundGlob, text: "…"})
	}
	r, reason, detail := envRisk(w.text, word{kind: dynamicWord})
	if r > riskSafe {
		f.add(c, item{Target: Target{Action: EnvSet, Resource: w.text, Reason: reason, Detail: detail}, risk: r})
	}
	return r
}

func (f *frame) read(name string, c *command, st *state) {
	opts := options{short: "ers", value: "dinNptu"}
	if name != "read" {
		opts = options{short: "t", value: "dnOsu"}
	}
	s := optionScan{options: opts, argv: c.args()}
	named := false
	var names []string
	for {
		switch s.step() {
		case scanEnd:
			if !named {
				st.unknown("REPLY")
				st.unknown("MAPFILE")
				names = []string{"REPLY"}
			}
			f.takesScript(c)
			if name == "read" && c.in.kind != stdinNames {
				f.readTops(names, c.in.text, st)
			}
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
			return
		case scanUnknown:
			r, reason := riskUnproven, UnknownOption
			if strings.ContainsAny(s.bad.text, "C") && name != "read" {
				r, reason = riskDanger, DynamicCode
			}
			f.add(c, item{Target: Target{Reason: reason}, risk: r})
			for _, a := range c.args() {
				if a.literal() && syntax.ValidName(a.text) {
					st.unknown(a.text)
				}
			}
			return
		case scanOperand:
			named = true
			f.variable(c.args()[s.next-1], c, st)
			names = append(names, c.args()[s.next-1].text)
		}
	}
}

// readTops notes which variables of read may hold the root or home: of each
// line of a known text one word each, and the rest for the last one.
func (f *frame) readTops(names []string, text string, st *state) {
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		for i, name := range names {
			if i >= len(fields) || st.lookup(name).state != boundUnknown {
				continue
			}
			t := fields[i]
			if i == len(names)-1 {
				t = strings.Join(fields[i:], " ")
			}
			if f.isTop(literal(t), st) {
				st.bind(name, value{state: boundUnknown, maybe: [2]string{t}})
			}
		}
	}
}

func (f *frame) printf(c *command, st *state) output {
	args := c.args()
	if len(args) > 0 && args[0].mayBeOption() {
		switch {
		case args[0].literal() && strings.HasPrefix(args[0].text, "-v"):
			name := args[0].from(2)
			if name.text == "" && len(args) > 1 {
				name = args[1]
			}
			f.variable(name, c, st)
			f.add(c, item{Target: Target{Reason: ShellState, Detail: "sets a variable"}, risk: riskUnproven})
			return output{kind: outNothing}
		case !args[0].literal():
			f.add(c, item{Target: Target{Reason: DynamicWord, Dynamic: true}, risk: riskUnproven})
			return output{}
		}
	}
	f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
	if len(args) > 0 && args[0].literal() && args[0].text == "--" {
		args = args[1:]
	} else if len(args) > 0 && args[0].mayBeOption() {
		return output{} // an unknown option writes nothing
	}
	if len(args) > 0 && args[0].literal() && !c.appended {
		return formatted(args)
	}
	return output{}
}

// formatted is what printf writes for the plain formats that scripts use to
// hand text on.
func formatted(args []word) output {
	format := args[0].text
	rest, ok := joinWords(args[1:])
	switch {
	case !ok:
		return output{}
	case (format == "%s" || format == "%s\\n" || format == "%b" || format == "%b\\n") && len(args) == 2:
		return output{outText, rest + "\n"}
	case len(args) == 1 && !strings.ContainsAny(format, "%"):
		text, ok := ansiC(format)
		if !ok {
			return output{}
		}
		return output{outText, text}
	}
	return output{}
}

// echoed is what echo writes, where every shell agrees.
func echoed(args []word, lang syntax.LangVariant) output {
	if lang == syntax.LangPOSIX && len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		return output{} // an option to one shell, text to another
	}
	for len(args) > 0 && args[0].literal() && (args[0].text == "-n" || args[0].text == "-e" || args[0].text == "-E") {
		args = args[1:]
	}
	text, ok := joinWords(args)
	if !ok || strings.Contains(text, "\\") {
		return output{}
	}
	return output{outText, text + "\n"}
}

// testCommand judges test and [: with -v a subscript is evaluated; a word that
// is not known could be that operator.
func (f *frame) testCommand(name string, c *command, st *state) {
	args := c.args()
	if name == "[" && len(args) > 0 && args[len(args)-1].text == "]" {
		args = args[:len(args)-1]
	}
	r, reason := riskSafe, ReadOnly
	for i, a := range args {
		switch {
		case a.split && a.kind == dynamicWord:
			r, reason = max(r, riskUnproven), DynamicWord
		case a.literal() && (a.text == "-v" || a.text == "-R"):
			if i+1 < len(args) && args[i+1].literal() && syntax.ValidName(args[i+1].text) {
				continue
			}
			r, reason = max(r, riskUnproven), ArithmeticCode
			if i+1 < len(args) && strings.ContainsAny(args[i+1].text, "[") {
				r = riskDanger
			}
		case a.kind == dynamicWord && a.mayBeOption() && (len(args) == 2 && i == 0 || len(args) > 4):
			r, reason = max(r, riskUnproven), DynamicWord
		}
	}
	f.add(c, item{Target: Target{Reason: reason}, risk: r})
}

// kill judges signals: kill(1), "negative PID values".
func (f *frame) kill(c *command) {
	args := c.args()
	t := Target{Reason: ProcessSignal, Detail: "sends a signal"}
	r := riskUnproven
	signal := false
	for i, a := range args {
		switch {
		case i == 0 && a.literal() && (a.text == "-l" || a.text == "-L"):
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
			return
		case a.literal() && a.text == "-1" && (signal || i == len(args)-1 && i > 0 || len(args) == 1):
			r, t.Reason, t.Detail = riskDanger, MassSignal, "signals every process"
		case a.literal() && a.text == "--":
			signal = true
		case a.literal() && strings.HasPrefix(a.text, "-"):
			signal = true
		}
	}
	f.add(c, item{Target: t, risk: r})
}

// relied are the names whose meaning the analysis depends on.
const relied = "cd pushd popd chdir eval source . exec command builtin set shopt trap alias unalias enable unset read export declare local readonly typeset shift hash printf test [ env exit return"

// shadows says what it means when a function takes a name.
func shadows(name string) (Reason, string) {
	switch {
	case name == "command_not_found_handle":
		return ShadowedName, "runs for every program that is not found"
	case listed(relied, name):
		return ShadowedName, "replaces a builtin"
	case strings.Contains(name, "/"):
		return ShadowedName, "replaces a path"
	case wrapperFor(name) != nil || shells[name] != 0:
		return ShadowedName, "replaces a program that runs others"
	}
	return "", ""
}
