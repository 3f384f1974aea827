package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is one simple command.
type command struct {
	argv     []word
	in       stdin
	span     [2]int
	wrappers []string
	layers   [][]string // the words of each wrapper around it, for rules
	appended bool       // unknown words follow
	found    string     // find -exec: where the names come from
	each     bool       // it runs for every name of a list
	env      bool       // it runs with an environment that is not cosmetic
	noFunc   bool       // functions are not looked up
	unsure   Reason     // the name is not certain
	stdin    bool       // a redirection of its own may be one of standard input
}

func (c *command) args() []word { return c.argv[1:] }

func (f *frame) call(ce *syntax.CallExpr, redirs []*syntax.Redirect, st *state, in stdin, span [2]int) flow {
	if len(ce.Args) == 0 {
		for _, a := range ce.Assigns {
			f.assign(a, st, true)
		}
		return through(*st)
	}
	c := f.j.newCommand()
	c.in, c.span, c.stdin = in, span, slices.ContainsFunc(redirs, toStdin)
	reads := ce.Args[0].Lit() == "read"
	for _, a := range ce.Assigns {
		if a.Append || a.Index != nil || a.Array != nil || a.Name == nil || !syntax.ValidName(a.Name.Value) {
			f.j.note(ShellDifference, "an assignment before a command that is not NAME=VALUE", f.spanOf(a))
			continue
		}
		if reads && a.Name.Value == "IFS" {
			if a.Value != nil {
				f.expand(a.Value, st, nil)
			}
			continue
		}
		c.env = f.assign(a, st, false) || c.env
		if len(ce.Assigns) > 1 {
			st.unknown(a.Name.Value) // to those behind it
		}
	}
	argv := f.j.newWords(len(ce.Args))
	for _, w := range ce.Args {
		if !f.step() {
			return through(*st)
		}
		argv = f.expand(w, st, argv)
	}
	c.argv = argv
	for _, w := range argv {
		if w.kind == globWord {
			f.readGlob(c, w, st)
		}
	}
	f.tryMaybes(ce, c, st)
	if len(ce.Assigns) == 0 {
		return f.run(c, st)
	}
	return f.runWith(ce.Assigns, c, st)
}

// specialBuiltins keep the assignments that stand before them in a POSIX shell:
// POSIX 2.14.
const specialBuiltins = ": . break continue eval exec exit export readonly return set shift times trap unset"

// runWith judges a command with assignments before it. What runs in this shell
// sees them; they are gone behind it.
func (f *frame) runWith(assigns []*syntax.Assign, c *command, st *state) flow {
	before := st.vars
	hide := func(s *state) {
		for _, a := range assigns {
			if a.Name != nil {
				s.unknown(a.Name.Value)
			}
		}
	}
	hide(st)
	during := st.vars
	fl := f.run(c, st)
	keeps := f.lang == syntax.LangPOSIX && (len(c.argv) == 0 || listed(specialBuiltins, c.argv[0].text))
	for _, s := range [...]*state{&fl.ok, &fl.err} {
		if s.vars == during && !keeps {
			s.vars = before
		} else {
			hide(s)
		}
	}
	return fl
}

func (j *judge) newCommand() *command {
	if len(j.commands) == cap(j.commands) {
		j.commands = make([]command, 0, 8)
	}
	j.commands = j.commands[:len(j.commands)+1]
	return &j.commands[len(j.commands)-1]
}

// tryMaybes judges the command with each text that a variable in it may hold.
func (f *frame) tryMaybes(ce *syntax.CallExpr, c *command, st *state) {
	list := f.maybes
	f.maybes = nil
	if len(list) == 0 {
		return
	}
	f.j.repeat++
	for _, m := range list {
		with := *st
		v := value{state: boundText, text: m.text}
		if m.list != nil {
			v = value{state: boundList, list: m.list}
		}
		with.bind(m.name, v)
		alt := *c
		alt.argv = nil
		for _, w := range ce.Args {
			if !f.step() {
				break
			}
			alt.argv = f.expand(w, &with, alt.argv)
		}
		f.run(&alt, &with)
	}
	f.j.repeat--
	f.maybes = nil
}

// run judges a simple command and returns the state after it.
func (f *frame) run(c *command, st *state) flow {
	if len(c.argv) == 0 {
		return through(*st)
	}
	if f.nesting++; f.nesting > maxNesting {
		f.nesting--
		f.j.note(TooDeep, "", c.span)
		return through(*st)
	}
	defer func() { f.nesting-- }()

	name := c.argv[0]
	switch {
	case name.kind != literalWord:
		f.add(c, item{Target: Target{Reason: DynamicName, Detail: "the name of the program is known only when it runs", Dynamic: true}, risk: riskDanger})
		if name.split && len(c.argv) > 1 {
			// It may vanish, and the next word is the command.
			f.j.denyOnly++
			rest := *c
			rest.argv = c.argv[1:]
			f.run(&rest, st)
			f.j.denyOnly--
		}
		st.forget()
		return through(*st)
	case name.computed:
		c.unsure = DynamicName
	case name.text == "":
		f.add(c, item{Target: Target{Reason: UnknownProgram, Detail: "an empty name"}, risk: riskUnproven})
		return through(*st)
	}
	base := name.text
	bare := !strings.Contains(base, "/")
	if !bare {
		base = path.Base(base)
	}
	if bare && !c.noFunc && f.j.functions {
		if v := st.lookup(base + "()"); v.state == boundFunc {
			if n := len(f.inFunc); n > 0 {
				f.inFunc[n-1].calls = append(f.inFunc[n-1].calls, base)
			}
			return f.callFunc(v.fn, c, st)
		} else if v.fn != nil {
			f.j.denyOnly++
			maybe := *st
			fl := f.callFunc(v.fn, c, &maybe)
			f.j.denyOnly--
			*st = join(*st, join(fl.ok, fl.err))
		}
		if n := len(f.inFunc); n > 0 {
			f.inFunc[n-1].calls = append(f.inFunc[n-1].calls, base)
		}
	}
	if bare {
		if fl, ok := f.builtin(base, c, st); ok {
			return fl
		}
	}
	if w := wrapperFor(base); w != nil {
		f.localProgram(c, bare)
		if w.reason == NetworkAccess {
			f.connects(base, c, st, len(f.j.items))
		}
		return f.unwrap(w, c, st)
	}
	if lang, ok := shells[base]; ok {
		if f.isVersionCall(base, c.args(), st) && !c.appended {
			return flow{ok: *st, err: *st, out: f.program(base, bare, c, st)}
		}
		f.localProgram(c, bare)
		return f.shell(c, lang, st)
	}
	first := len(f.j.items)
	out := f.program(base, bare, c, st)
	f.connects(base, c, st, first)
	return flow{ok: *st, err: *st, out: out}
}

// localProgram reports a wrapper or shell that is not the system's own.
func (f *frame) localProgram(c *command, bare bool) {
	if !bare && !f.j.systemProgram(c.argv[0].text) {
		f.add(c, item{Target: Target{Reason: LocalProgram}, risk: riskUnproven})
	}
}

// callFunc follows a call of a function of the text with its arguments.
func (f *frame) callFunc(fn *function, c *command, st *state) flow {
	if fn.inline || !f.step() {
		st.forget()
		return through(*st)
	}
	fn.inline = true
	defer func() { fn.inline = false }()
	saved := *st
	unknown := false
	for i, name := range positional {
		switch {
		case unknown || i+1 < len(c.argv) && c.argv[i+1].split:
			unknown = true
			st.unknown(name)
		case i+1 < len(c.argv):
			st.bind(name, c.argv[i+1].value())
		default:
			st.bind(name, value{state: boundText})
		}
	}
	outer := f.j.locals
	f.j.locals = nil
	f.j.calls++
	f.j.repeat++
	fl := f.stmt(fn.body, *st, c.in)
	f.j.repeat--
	f.j.calls--
	own := f.j.locals
	f.j.locals = outer
	for _, s := range [...]*state{&fl.ok, &fl.err} {
		for _, name := range own {
			s.unknown(name) // what it was when it became local
		}
		for _, name := range positional {
			if v := saved.lookup(name); s.lookup(name) != v {
				if v.state == unbound {
					v.state = boundUnknown
				}
				s.bind(name, v)
			}
		}
	}
	return fl
}

// nested analyses a script found inside the command.
func (f *frame) nested(text string, lang syntax.LangVariant, c *command, st *state, in stdin) output {
	if f.shells >= maxShells {
		f.j.note(TooDeep, "scripts inside scripts", c.span)
		return output{}
	}
	sub := frame{j: f.j, text: text, lang: lang, shells: f.shells + 1, nesting: f.nesting, inFunc: f.inFunc}
	sub.outer = &c.span
	sub.onStdin = f.onStdin && in.inherited()
	if in.kind == stdinText && in.text == text {
		in.kind, sub.onStdin = stdinInherited, true
	}
	sub.wrappers = append(f.wrappers[:len(f.wrappers):len(f.wrappers)], c.wrappers...)
	if len(c.argv) > 0 {
		sub.wrappers = append(sub.wrappers, path.Base(c.argv[0].text))
	}
	out := sub.script(st, in)
	sub.runTraps(0, st)
	return out
}

// shells are the programs that run shell scripts, with the dialect to read
// them in. What is not bash or POSIX is read for what must be denied, and is
// opaque.
var shells = map[string]syntax.LangVariant{
	"bash": syntax.LangBash, "rbash": syntax.LangBash,
	"sh": syntax.LangPOSIX, "dash": syntax.LangPOSIX, "ash": syntax.LangPOSIX,
	"zsh": syntax.LangZsh, "ksh": syntax.LangMirBSDKorn, "mksh": syntax.LangMirBSDKorn, "ksh93": syntax.LangMirBSDKorn,
	"yash": syntax.LangZsh, "oksh": syntax.LangMirBSDKorn, "loksh": syntax.LangMirBSDKorn, "fish": syntax.LangZsh, "csh": syntax.LangZsh,
	"tcsh": syntax.LangZsh, "pwsh": syntax.LangZsh, "nu": syntax.LangZsh, "elvish": syntax.LangZsh, "xonsh": syntax.LangZsh, "osh": syntax.LangZsh,
}

// shellLongValue are the long options of bash that take the next word.
const shellLong = "norc noprofile login posix restricted verbose noediting debugger dump-strings dump-po-strings rcfile= init-file= help version"

// shell judges a call of a shell: Bash manual 6.1, dash(1).
func (f *frame) shell(c *command, lang syntax.LangVariant, st *state) flow {
	args := c.args()
	code, fromStdin := false, false
	i := 0
scan:
	for ; i < len(args); i++ {
		w := args[i]
		if w.mayBeOption() && !w.flagKnown() || w.mayBeOption() && !w.literal() {
			f.add(c, item{Target: Target{Reason: DynamicCode, Detail: "an option of the shell that is known only when it runs", Dynamic: true}, risk: riskDanger})
			f.suspects(c, args[i+1:], st)
			return through(*st)
		}
		t := w.text
		switch {
		case !w.literal():
			break scan
		case t == "--" || t == "-":
			i++
			break scan
		case strings.HasPrefix(t, "--"):
			name, _, glued := strings.Cut(t[2:], "=")
			kind, ok := longKind(shellLong, name)
			if !ok || glued {
				f.add(c, item{Target: Target{Reason: UnknownWrapper, Detail: "an option of the shell that is not known: " + t}, risk: riskDanger})
				f.suspects(c, args[i+1:], st)
				return through(*st)
			}
			if kind == "=" { // a start-up file of the caller's choice
				f.add(c, item{Target: Target{Reason: Script, Detail: "runs a start-up file"}, risk: riskUnproven})
				i++
			}
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			for k := 1; k < len(t); k++ {
				switch t[k] {
				case 'c':
					code = true
				case 's':
					fromStdin = true
				case 'o', 'O':
					i++
				case 'l', 'i':
					f.add(c, item{Target: Target{Reason: Script, Detail: "runs start-up files"}, risk: riskUnproven})
				}
			}
		default:
			break scan
		}
	}
	args = args[min(i, len(args)):]
	sub := state{dirs: st.dirs, likely: st.likely}
	if v := st.lookup("HOME"); v.state != unbound {
		sub.bind("HOME", v)
	}
	if v := st.lookup("IFS"); v.state != unbound {
		sub.bind("IFS", v)
	}
	if c.env {
		f.add(c, item{Target: Target{Reason: Environment}, risk: riskUnproven})
	}
	switch {
	case code && len(args) == 0:
		if c.appended {
			f.add(c, item{Target: Target{Reason: DynamicCode, Detail: "words from elsewhere are run as code", Dynamic: true}, risk: riskDanger})
		} else {
			f.add(c, item{Target: Target{Reason: UnknownOption}, risk: riskUnproven})
		}
	case code:
		text := args[0]
		if !text.literal() {
			f.add(c, item{Target: Target{Reason: DynamicCode, Detail: "a part of the script is known only when it runs", Dynamic: true}, risk: riskDanger})
			// What is certain is still looked at.
			f.j.denyOnly++
			f.rawScan(text.text, &sub)
			f.j.denyOnly--
			break
		}
		for k, name := range [...]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
			if k+1 < len(args) {
				sub.bind(name, args[k+1].value())
			}
		}
		n := len(f.j.items)
		out := f.shellText(text.text, lang, c, &sub)
		if !f.j.execs(n) {
			f.add(c, item{Target: Target{Reason: ReadOnly, Detail: "runs nothing"}, risk: riskSafe})
		}
		return flow{ok: *st, err: *st, out: out}
	case len(args) == 0 || fromStdin:
		switch c.in.kind {
		case stdinText:
			f.shellText(c.in.text, lang, c, &sub)
			return through(*st)
		case stdinInherited, stdinFile:
			f.takesScript(c)
			f.add(c, item{Target: Target{Reason: Script, Detail: "runs its standard input"}, risk: riskUnproven})
		default:
			f.add(c, item{Target: Target{Reason: PipedCode, Detail: "runs what comes out of a pipe"}, risk: riskDanger})
			if c.in.text != "" {
				f.j.denyOnly++
				f.shellText(c.in.text, lang, c, &sub)
				f.j.denyOnly--
			}
		}
	case args[0].process:
		f.add(c, item{Target: Target{Reason: PipedCode, Detail: "runs what comes out of a process substitution"}, risk: riskDanger})
	case c.found != "" && args[0].text == c.found:
		f.add(c, item{Target: Target{Reason: Script, Detail: "runs files that a search finds"}, risk: riskUnproven})
	default:
		if c.appended && !args[0].literal() {
			f.add(c, item{Target: Target{Reason: DynamicCode, Detail: "runs files named elsewhere", Dynamic: true}, risk: riskDanger})
		} else {
			f.scriptFile(c, args[0], st)
		}
	}
	return through(*st)
}

// scriptFile is the run of a script file.
func (f *frame) scriptFile(c *command, file word, st *state) {
	t := Target{Reason: Script, Detail: "runs a script", Dynamic: !file.literal()}
	if file.literal() && strings.HasPrefix(file.text, "/dev/") {
		if c.in.kind == stdinUnknown || c.in.kind == stdinNames {
			f.add(c, item{Target: Target{Reason: PipedCode, Detail: "runs what comes out of a pipe"}, risk: riskDanger})
			return
		}
	}
	f.add(c, item{Target: t, risk: riskUnproven})
}

// shellText analyses the script of a nested shell in every dialect that the
// shell may have: /bin/sh is dash on one system and bash on the next.
func (f *frame) shellText(text string, lang syntax.LangVariant, c *command, st *state) output {
	switch lang {
	case syntax.LangBash:
		return f.nested(text, lang, c, st, c.in)
	case syntax.LangPOSIX:
		posix := *st
		f.nested(text, syntax.LangPOSIX, c, &posix, c.in)
		f.j.repeat++
		defer func() { f.j.repeat-- }()
		return f.nested(text, syntax.LangBash, c, st, c.in)
	}
	f.add(c, item{Target: Target{Reason: ForeignShell, Detail: "a script for a shell that is not analysed"}, risk: riskDanger})
	return f.nested(text, syntax.LangBash, c, st, c.in)
}

// unwrap peels a wrapper and judges the command inside.
func (f *frame) unwrap(w *wrapper, c *command, st *state) flow {
	inner := &command{in: c.in, span: c.span, appended: c.appended, found: c.found, each: c.each, env: c.env, unsure: c.unsure, noFunc: true, stdin: c.stdin}
	inner.wrappers = append(c.wrappers[:len(c.wrappers):len(c.wrappers)], path.Base(c.argv[0].text))
	inner.layers = append(c.layers[:len(c.layers):len(c.layers)], f.j.newTexts(c.argv))
	before := len(f.j.items)
	defer func() {
		if !f.j.execs(before) {
			f.add(c, item{Target: Target{Reason: ReadOnly, Detail: "runs nothing"}, risk: riskSafe})
		}
	}()
	if w.risk > riskSafe {
		f.add(c, item{Target: Target{Reason: w.reason, Detail: w.detail}, risk: w.risk})
	}
	start := *st
	sub := *st
	args := c.args()
	if w.before && len(args) > 0 && !args[0].mayBeOption() {
		if args[0].split {
			f.add(c, item{Target: Target{Reason: UnknownWrapper, Detail: "an operand that may be several words", Dynamic: true}, risk: riskDanger})
			f.suspects(c, args, st)
			return through(*st)
		}
		args = args[1:]
	}
	scan := optionScan{options: w.options, argv: args, first: true}
	rest := []word(nil)
	ran, shell, null, replace := false, w.joined, false, ""
	cur := &sub
	if w.same {
		cur = st
	}
loop:
	for {
		switch scan.step() {
		case scanEnd:
			break loop
		case scanUnknown:
			if scan.bad.kind == dynamicWord && !scan.bad.split && scan.bad.fixed == 0 && w.operands > 0 {
				// One word where an operand is expected; not proven.
				f.add(c, item{Target: Target{Reason: DynamicWord, Dynamic: true}, risk: riskUnproven})
				rest = args[scan.next-1:]
				break loop
			}
			f.add(c, item{Target: Target{Reason: UnknownWrapper, Detail: "an option that is not on the list of " + path.Base(c.argv[0].text)}, risk: riskDanger})
			f.suspects(c, args[scan.next-1:], cur)
			return through(*st)
		case scanOption:
			o := scan.buf
			switch {
			case listed(w.code, o.name):
				ran = true
				f.code(o.value, inner, cur, w)
			case listed(w.splits, o.name):
				// -S of env: the value is split into words that go in front.
				words, ok := splitString(o.value)
				if !ok {
					f.add(c, item{Target: Target{Reason: DynamicCode, Dynamic: true}, risk: riskDanger})
					f.rawScanDeny(o.value.text, cur)
					return through(*st)
				}
				args = append(words, args[scan.next:]...)
				scan = optionScan{options: w.options, argv: args, first: true}
			case listed(w.clears, o.name):
				inner.env = true
			case listed(w.chdir, o.name):
				cur.cwd(f.chdir(o.value, cur))
			case listed(w.toShell, o.name):
				shell = true
			case listed(w.toExec, o.name):
				shell = false
			case w.appends && (o.name == "-a" || o.name == "--arg-file"):
				c.in = stdin{kind: stdinUnknown}
			case w.appends && (o.name == "-0" || o.name == "--null"):
				null = true
			case listed(w.replace, o.name):
				replace = "{}"
				if o.has && o.value.text != "" {
					replace = o.value.text
				}
			case listed(w.writes, o.name):
				f.writePath(c, o.value, cur)
			case listed(w.harm, o.name):
				f.add(c, item{Target: Target{Reason: w.reason, Detail: w.detail}, risk: riskDanger})
			}
		case scanOperand:
			o := args[scan.next-1]
			// Any word with an equals sign, whatever stands before it.
			if n := strings.IndexByte(o.text[:o.fixed], '=') + 1; w.assigns && n > 0 {
				inner.env = f.assigned(o.text[:n-1], o.from(n), c.span, false) || inner.env
				continue
			}
			if o.literal() && o.text == "-" && w.dash {
				continue
			}
			rest = args[scan.next-1:]
			break loop
		}
	}
	for k := 0; k < w.operands && len(rest) > 0; k++ {
		if rest[0].split {
			f.add(c, item{Target: Target{Reason: UnknownWrapper, Detail: "an operand that may be several words", Dynamic: true}, risk: riskDanger})
			f.suspects(c, rest, cur)
			return through(*st)
		}
		if k == 0 && w.writesOperand {
			f.writePath(c, rest[0], cur)
		}
		rest = rest[1:]
	}
	if w.afterCode && ran {
		return through(*st)
	}
	if w.optionsAfter && len(rest) > 0 && rest[0].literal() && listed(w.code, rest[0].text) && len(rest) > 1 {
		f.code(rest[1], inner, cur, w)
		return through(*st)
	}
	if len(rest) == 0 {
		if w.names == "exec" {
			f.execNothing(c)
		}
		switch {
		case ran:
		case w.alone == riskNone:
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
		case w.appends:
			// xargs without a command echoes.
			f.add(c, item{Target: Target{Reason: ReadOnly}, risk: riskSafe})
		case shell || w.alone > riskSafe:
			f.add(c, item{Target: Target{Reason: Script, Detail: w.detail}, risk: max(w.alone, riskUnproven)})
		default:
			f.add(c, item{Target: Target{Reason: UnknownProgram}, risk: riskUnproven})
		}
		return through(*st)
	}
	if w.appends {
		f.takesScript(c)
	}
	if w.appends && c.in.kind != stdinNames {
		f.followInput(rest, replace, null, inner, c.in.text, cur)
	}
	switch {
	case w.appends && replace != "":
		rest = f.replaceWord(rest, replace, c)
		inner.appended, inner.each = false, true
		inner.in = stdin{}
	case w.appends:
		inner.appended = true
		pattern := "…"
		if c.in.kind == stdinNames && c.in.text != "" && null { // without -0 a blank in a name ends it
			pattern = c.in.text
		}
		extra := word{text: pattern, kind: dynamicWord, split: true, below: c.in.kind == stdinNames}
		rest = append(rest[:len(rest):len(rest)], extra)
		inner.in = stdin{}
	}
	inner.argv = rest
	if shell {
		f.joined(rest, inner, cur)
		return through(*st)
	}
	if w.functions {
		inner.noFunc = false
	}
	fl := f.run(inner, cur)
	if w.same && path.Base(c.argv[0].text) != "exec" {
		return fl
	}
	st.dirs, st.likely = start.dirs, start.likely
	if fl.out.kind == outText {
		fl.out = output{} // what a builtin writes is known; this is the program of that name
	}
	return flow{ok: *st, err: *st, out: fl.out}
}

// followInput looks for what must be denied when the words of a known text are
// appended to a command, or each of its lines is put in place of a marker.
func (f *frame) followInput(words []word, marker string, null bool, c *command, text string, st *state) {
	if text == "" || len(words) == 0 {
		return
	}
	f.j.denyOnly++
	defer func() { f.j.denyOnly-- }()
	follow := func(argv []word) {
		if f.step() {
			alt, sub := *c, *st
			alt.argv, alt.appended, alt.in = argv, false, stdin{}
			f.run(&alt, &sub)
		}
	}
	plain := strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(text) // xargs(1) unquotes
	switch {
	case marker != "":
		for _, line := range strings.Split(strings.TrimRight(plain, "\n"), "\n") {
			argv := make([]word, len(words))
			for i, w := range words {
				argv[i] = w
				if w.literal() && strings.Contains(w.text, marker) {
					argv[i] = literal(strings.ReplaceAll(w.text, marker, strings.TrimLeft(line, " \t")))
				}
			}
			follow(argv)
		}
	default:
		list := strings.Fields(plain)
		if null {
			list = strings.Split(strings.TrimRight(text, "\x00\n"), "\x00")
		}
		argv := words[:len(words):len(words)]
		for _, t := range list {
			argv = append(argv, literal(t))
		}
		follow(argv)
	}
}

// code analyses a word that a wrapper gives to a shell.
func (f *frame) code(w word, c *command, st *state, by *wrapper) {
	if !w.literal() {
		f.add(c, item{Target: Target{Action: Exec, Argv: nil, Resource: w.text, Reason: DynamicCode, Detail: "code that is known only when it runs", Dynamic: true}, risk: riskDanger})
		f.rawScanDeny(w.text, st)
		return
	}
	f.shellText(w.text, syntax.LangPOSIX, c, st)
}

// joined analyses words that are joined with blanks and given to a shell.
func (f *frame) joined(words []word, c *command, st *state) {
	text, ok := joinWords(words)
	if !ok {
		f.add(c, item{Target: Target{Action: Exec, Reason: DynamicCode, Detail: "code that is known only when it runs", Dynamic: true}, risk: riskDanger})
		f.rawScanDeny(text, st)
		f.j.denyOnly++
		f.run(c, st)
		f.j.denyOnly--
		return
	}
	c.argv = nil
	f.shellText(text, syntax.LangPOSIX, c, st)
}

func joinWords(words []word) (string, bool) {
	var b strings.Builder
	ok := true
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
		ok = ok && w.literal()
	}
	return b.String(), ok
}

func (f *frame) rawScanDeny(text string, st *state) {
	f.j.denyOnly++
	f.rawScan(text, st)
	f.j.denyOnly--
}

// suspects looks for what must be denied behind options that are not
// understood.
func (f *frame) suspects(c *command, words []word, st *state) {
	f.j.denyOnly++
	defer func() { f.j.denyOnly-- }()
	for i, w := range words {
		if !w.literal() {
			continue
		}
		base := path.Base(w.text)
		_, isShell := shells[base]
		if isShell || breakers[base] || wrapperFor(base) != nil {
			if !f.step() {
				return
			}
			sub := *st
			f.run(&command{argv: words[i:], span: c.span, in: c.in, layers: c.layers, wrappers: c.wrappers}, &sub)
			return
		}
	}
}

// replaceWord puts the unknown word of xargs -I in place of its marker.
func (f *frame) replaceWord(words []word, marker string, c *command) []word {
	out := make([]word, len(words))
	for i, w := range words {
		out[i] = w
		if k := strings.Index(w.text, marker); k >= 0 {
			out[i].fixed = min(w.fixed, k)
			out[i].kind = dynamicWord
			out[i].below = c.in.kind == stdinNames && w.text == marker
		}
	}
	return out
}

// splitString splits the value of env -S: env(1), "-S/--split-string usage".
// False for anything but blanks and plain quotes.
func splitString(w word) ([]word, bool) {
	if !w.literal() || strings.ContainsAny(w.text, "\\$#") {
		return nil, false
	}
	var out []word
	var cur []byte
	in, any := byte(0), false
	for i := 0; i < len(w.text); i++ {
		switch c := w.text[i]; {
		case in != 0 && c == in:
			in = 0
		case in != 0:
			cur = append(cur, c)
		case c == '"' || c == '\'':
			in, any = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if len(cur) > 0 || any {
				out = append(out, literal(string(cur)))
			}
			cur, any = cur[:0], false
		default:
			cur = append(cur, c)
		}
	}
	if len(cur) > 0 || any {
		out = append(out, literal(string(cur)))
	}
	return out, in == 0
}

// assignment returns the length of NAME= at the start of s, or 0.
func assignment(s string) int {
	k := strings.IndexByte(s, '=')
	if k <= 0 || !syntax.ValidName(s[:k]) {
		return 0
	}
	return k + 1
}
