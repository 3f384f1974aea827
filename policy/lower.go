package policy

import (
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// judge collects what one call would do.
type judge struct {
	policy *Policy
	scope  Scope

	items  []item
	opaque []Reason
	parse  string // what became of the call's own text
	steps  int
	over   bool            // the budget of steps is used up
	seen   map[string]bool // targets found while something is looked at more than once

	repeat   int // something is looked at more than once
	denyOnly int // only what is denied counts: the text may not run like this
	dry      int // nothing is recorded, only the state is wanted

	git          bool              // git is called
	attributes   map[string]bool   // variables that change what is assigned to them
	calls        int               // functions that are being followed
	locals       []string          // variables of the innermost of them
	functions    bool              // the text defines functions
	denyRules    bool              // the policy has rules that deny
	fileRules    bool              // and rules about reading
	repositories map[string]string // why the configuration around a folder runs programs

	// Memory that is shared out, because every command needs some.
	states   []state
	words    []word
	texts    []string
	text     []byte // of the word that is put together
	commands []command
	spec     specCall
}

// frame is one script text that is analysed: the call's own, or one found in a
// word of it.
type frame struct {
	j             *judge
	text          string
	lang          syntax.LangVariant
	outer         *[2]int // span of the enclosing command when the text is nested
	wrappers      []string
	shells        int // scripts around this one
	nesting       int // constructs around the current command
	inFunc        []*function
	argsOnly      bool // the words are not shell text
	onStdin       bool // the standard input of a command is what a shell has yet to read of its script
	substitutions int  // substitutions around the current command
	loops         int  // loops around the current command that are followed twice
	maybes        []maybe
	traps         []trap
}

// maybe is a text, or an array, that a variable in a word may hold.
type maybe struct {
	name, text string
	list       *[]string
}

// trap is code that runs at a later point.
type trap struct {
	code string
	c    *command
	vars *binding
}

type function struct {
	name   string
	body   *syntax.Stmt
	forks  []string // functions that it starts beside itself, in a pipe or the background
	calls  []string
	inline bool // being followed
}

type stdinKind uint8

const (
	stdinInherited stdinKind = iota // that of the call
	stdinText                       // known text
	stdinNames                      // names of files below the current directory, one a line
	stdinFile                       // a file
	stdinUnknown                    // something else: a pipe
)

type stdin struct {
	kind stdinKind
	text string // of stdinText; of stdinUnknown when the writer is known, for denials
	open bool   // stdinUnknown: it may be that of the call
}

// inherited reports whether it may be that of the call.
func (in stdin) inherited() bool { return in.kind == stdinInherited || in.open }

type outKind uint8

const (
	outUnknown outKind = iota
	outText            // known text
	outNames           // names of files below the current directory; text may be their pattern
	outNothing
	outTemp // the name of a new file below the temporary folder
)

type output struct {
	kind outKind
	text string
}

func (o output) pipe() stdin {
	switch o.kind {
	case outText:
		return stdin{kind: stdinUnknown, text: o.text}
	case outNames:
		return stdin{kind: stdinNames, text: o.text}
	}
	return stdin{kind: stdinUnknown}
}

// flow is what holds after a command: when it succeeded and when it failed.
type flow struct {
	ok, err state
	out     output
}

// newState copies a state into memory that many states share, because a state
// is made for every command.
func (j *judge) newState(st state) *state {
	if len(j.states) == cap(j.states) {
		j.states = make([]state, 0, 32)
	}
	j.states = append(j.states, st)
	return &j.states[len(j.states)-1]
}

func (j *judge) newWords(n int) []word {
	if cap(j.words)-len(j.words) < n {
		j.words = make([]word, 0, max(32, n))
	}
	k := len(j.words)
	j.words = j.words[:k+n]
	return j.words[k : k : k+n]
}

// newTexts are the texts of words.
func (j *judge) newTexts(words []word) []string {
	n := len(words)
	if cap(j.texts)-len(j.texts) < n {
		j.texts = make([]string, 0, max(32, n))
	}
	k := len(j.texts)
	for _, w := range words {
		j.texts = append(j.texts, w.text)
	}
	return j.texts[k : k+n : k+n]
}

func through(st state) flow { return flow{ok: st, err: st} }

func (f *frame) at(p syntax.Pos) int {
	return min(int(p.Offset()), len(f.text))
}

func (f *frame) source(pos, end int) string {
	if pos < 0 || end > len(f.text) || pos > end {
		return ""
	}
	return f.text[pos:end]
}

func (f *frame) node(n syntax.Node) string { return f.source(f.at(n.Pos()), f.at(n.End())) }

func (f *frame) span(pos, end int) [2]int {
	if f.outer != nil {
		return *f.outer
	}
	return [2]int{pos, max(pos, end)}
}

func (f *frame) spanOf(n syntax.Node) [2]int { return f.span(f.at(n.Pos()), f.at(n.End())) }

var parsers = [...]*sync.Pool{
	newParserPool(syntax.LangBash), newParserPool(syntax.LangPOSIX),
}

func newParserPool(lang syntax.LangVariant) *sync.Pool {
	return &sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(lang)) }}
}

// script gates, parses and lowers the text of the frame.
func (f *frame) script(st *state, in stdin) output {
	found, unparsable := gate(f.text)
	for _, g := range found {
		f.j.note(g.reason, g.detail, f.span(g.pos, g.pos+1))
	}
	if unparsable {
		if f.outer == nil {
			f.j.parse = "skipped"
		}
		f.rawScan(f.text, st)
		return output{}
	}
	text, odd := oddComments(f.text, f.lang)
	if odd {
		f.j.note(ShellDifference, "a comment that the shells read differently", f.span(0, len(f.text)))
		f.rawScan(f.text, st)
		f.text = text
	}
	if strings.HasSuffix(strings.TrimRight(f.text, "\n"), "\\") {
		f.j.note(ShellDifference, "a backslash at the end of the text", f.span(len(f.text)-1, len(f.text)))
	}
	if strings.Contains(f.text, "$\\\n") {
		f.j.note(ShellDifference, "a line that is continued between a dollar and its name", f.span(0, len(f.text)))
	}
	pool := parsers[0]
	if f.lang == syntax.LangPOSIX {
		pool = parsers[1]
	}
	parser := pool.Get().(*syntax.Parser)
	// A here-document is read after the other statements of its line, so that
	// all are parsed before one is looked at.
	list := make([]*syntax.Stmt, 0, 4)
	var failed error
	for s, err := range parser.StmtsSeq(strings.NewReader(f.text)) {
		if err != nil {
			failed = err // the parser panics when its last error is not taken
			continue
		}
		list = append(list, s)
	}
	pool.Put(parser)
	f.differences(list)
	out, last := output{}, 0
	for _, s := range list {
		fl := f.stmt(s, *st, in)
		*st = join(fl.ok, fl.err)
		out, last = fl.out, f.at(s.End())
	}
	if failed != nil {
		// Shells run the complete lines that come before a syntax error, so
		// what was lowered counts.
		if f.outer == nil {
			f.j.parse = "error"
		}
		f.j.note(SyntaxError, failed.Error(), f.span(last, len(f.text)))
		f.rawScan(f.text[last:], st)
	}
	if f.j.over {
		f.rawScan(f.text, st)
	}
	if len(list) != 1 {
		out = output{}
	}
	return out
}

// rawScan looks for what must be denied in text that could not be analysed.
// It reads the text as simple commands between any operators; that can find
// too much, but the text is opaque anyway.
func (f *frame) rawScan(text string, st *state) {
	over := f.j.over
	f.j.denyOnly++
	budget := 2000
	for len(text) > 0 && budget > 0 {
		end := strings.IndexAny(text, ";|&()\n{}`")
		if end < 0 {
			end = len(text)
		}
		seg := text[:end]
		text = text[min(end+1, len(text)):]
		if len(seg) > 4096 || !f.j.denyRules && !strings.ContainsAny(seg, "/~$*.") {
			continue
		}
		budget--
		var argv []word
		for _, w := range strings.Fields(seg) {
			w = strings.Map(func(r rune) rune {
				if r == '"' || r == '\'' || r == '\\' {
					return -1
				}
				return r
			}, w)
			if w == "$HOME" || w == "~" || strings.HasPrefix(w, "$HOME/") || strings.HasPrefix(w, "~/") {
				w = f.j.scope.Home + strings.TrimPrefix(strings.TrimPrefix(w, "~"), "$HOME")
			}
			if len(argv) == 0 && (syntax.IsKeyword(w) || assignment(w) > 0) {
				continue
			}
			if k := strings.IndexAny(w, "*?"); k >= 0 {
				argv = append(argv, word{text: w, fixed: k, kind: globWord, split: true})
				continue
			}
			argv = append(argv, literal(w))
		}
		if len(argv) > 1 {
			f.j.over = false
			f.run(&command{argv: argv, span: f.span(0, len(f.text))}, st)
		}
	}
	f.j.denyOnly--
	f.j.over = over
}

// step counts one piece of work; false when the budget is used up.
func (f *frame) step() bool {
	if f.j.over {
		return false
	}
	if f.j.steps++; f.j.steps > maxSteps {
		f.j.note(TooManySteps, "", f.span(0, len(f.text)))
		f.j.over = true
		return false
	}
	return true
}

// stmts lowers a list; st becomes the state after it.
func (f *frame) stmts(list []*syntax.Stmt, st *state, in stdin) output {
	fl := f.list(list, *st, in)
	*st = join(fl.ok, fl.err)
	return fl.out
}

func (f *frame) list(list []*syntax.Stmt, st state, in stdin) flow {
	fl := through(st)
	for _, s := range list {
		fl = f.stmt(s, join(fl.ok, fl.err), in)
	}
	if len(list) != 1 {
		fl.out = output{}
	}
	return fl
}

func (f *frame) stmt(s *syntax.Stmt, st state, in stdin) flow {
	if !f.step() {
		return through(st)
	}
	if f.nesting++; f.nesting > maxNesting {
		f.nesting--
		f.j.note(TooDeep, "", f.spanOf(s))
		f.rawScan(f.node(s), f.j.newState(st))
		return through(st)
	}
	defer func() { f.nesting-- }()

	toFile := false
	if len(s.Redirs) > 0 {
		p := f.j.newState(st)
		in, toFile = f.redirects(s.Redirs, p, in)
		st = *p
	}
	if s.Background || s.Coprocess || s.Disown {
		if s.Disown {
			f.j.note(ShellDifference, "&! and &| are zsh", f.spanOf(s))
		}
		sub := st.fork()
		f.forks(s.Cmd)
		f.subshell(func() flow { return f.command(s, sub, in) })
		return through(st)
	}
	var fl flow
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		fl = f.call(call, s.Redirs, f.j.newState(st), in, f.spanOf(s))
	} else {
		fl = f.command(s, st, in)
	}
	switch {
	case toFile:
		fl.out = output{kind: outNothing}
	case len(s.Redirs) > 0 && fl.out.kind == outText:
		fl.out = output{} // nothing when a redirection fails
	}
	if s.Negated {
		fl.ok, fl.err = fl.err, fl.ok
	}
	return fl
}

func (f *frame) command(s *syntax.Stmt, st state, in stdin) flow {
	switch c := s.Cmd.(type) {
	case nil:
		return through(st)
	case *syntax.CallExpr:
		return f.call(c, s.Redirs, f.j.newState(st), in, f.spanOf(s))
	case *syntax.BinaryCmd:
		return f.binary(c, st, in)
	case *syntax.Subshell:
		out := f.subshell(func() flow { return f.list(c.Stmts, st.fork(), in) }).out
		return flow{ok: st, err: st, out: out}
	case *syntax.Block:
		return f.list(c.Stmts, st, in)
	case *syntax.IfClause:
		return f.ifClause(c, st, in)
	}
	return f.construct(s, st, in)
}

// construct lowers the rarer commands, which need their state on the heap.
func (f *frame) construct(s *syntax.Stmt, st state, in stdin) flow {
	switch c := s.Cmd.(type) {
	case *syntax.WhileClause:
		return through(f.loop(st, c.Cond, c.Do, nil, func(st *state) {
			cond := f.list(c.Cond, *st, in)
			enter, leave := cond.ok, cond.err
			if c.Until {
				enter, leave = leave, enter
			}
			f.stmts(c.Do, &enter, in)
			*st = join(enter, leave)
		}))
	case *syntax.ForClause:
		return f.forClause(c, st, in)
	case *syntax.CaseClause:
		f.expand(c.Word, &st, nil)
		after := st
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				f.expand(p, &st, nil)
			}
			branch := st
			f.stmts(item.Stmts, &branch, in)
			after = join(after, branch)
			if item.Op != syntax.Break {
				st = join(st, branch) // ;& and ;;& go on with the next
			}
		}
		return through(after)
	case *syntax.FuncDecl:
		head, rest := splitFunction(s)
		fl := f.funcDecl(head.Cmd.(*syntax.FuncDecl), st)
		return f.follow(st, fl, rest, in)
	case *syntax.ArithmCmd:
		f.arithm(c.X, &st)
		return through(st)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			f.arithm(x, &st)
		}
		return through(st)
	case *syntax.TestClause:
		f.test(c.X, &st)
		return through(st)
	case *syntax.DeclClause:
		return f.declare(c, st)
	case *syntax.TimeClause:
		if c.Stmt == nil || c.Stmt.Cmd == nil {
			// Behind a pipe bash takes it for a program.
			f.j.note(ShellDifference, "the keyword time alone", f.spanOf(c))
		}
		if c.Stmt == nil {
			return through(st)
		}
		if _, rest := splitFunction(c.Stmt); rest != nil {
			f.j.note(ShellDifference, "a function and operators behind time", f.spanOf(c))
		}
		if f.lang == syntax.LangPOSIX {
			// It may be the program, in which nothing of this shell changes.
			f.wrappers = append(f.wrappers[:len(f.wrappers):len(f.wrappers)], "time")
			f.stmt(f.withoutDashes(c.Stmt), st, in)
			f.wrappers = f.wrappers[:len(f.wrappers)-1]
			f.unsettle(c.Stmt, &st)
			return through(st)
		}
		return f.stmt(f.withoutDashes(c.Stmt), st, in)
	case *syntax.CoprocClause:
		if call, ok := c.Stmt.Cmd.(*syntax.CallExpr); c.Name != nil && !compound(c.Stmt.Cmd) || !compound(c.Stmt.Cmd) && (!ok || len(c.Stmt.Redirs) > 0) || ok && (len(call.Assigns) > 0 || len(call.Args) > 0 && strings.Contains(f.node(call.Args[0]), "=")) {
			// The parser takes the first word of a pipeline for a name, and
			// an assignment for a program.
			f.j.note(ShellDifference, "a coprocess that is not a plain command", f.spanOf(c))
		}
		if f.substitutions > 0 {
			// bash prints and reads a substitution again, and takes the name
			// that it gave the coprocess for a program.
			f.j.note(ShellDifference, "a coprocess in a substitution", f.spanOf(c))
		}
		name := "COPROC"
		if c.Name != nil && !compound(c.Stmt.Cmd) {
			// A name comes only before a compound command; this is a program.
			first := &syntax.CallExpr{Args: []*syntax.Word{c.Name}}
			left := c.Stmt.Cmd
			for b, ok := left.(*syntax.BinaryCmd); ok; b, ok = left.(*syntax.BinaryCmd) {
				left = b.X.Cmd
			}
			if call, ok := left.(*syntax.CallExpr); ok {
				first.Args = append(first.Args, call.Args...)
			}
			f.call(first, nil, f.j.newState(st), stdin{kind: stdinUnknown}, f.spanOf(c))
		}
		if c.Name != nil {
			if name = c.Name.Lit(); !syntax.ValidName(name) {
				f.j.note(ShellDifference, "a coprocess without a plain name", f.spanOf(c))
			}
		}
		f.assigned(name, word{kind: dynamicWord}, f.spanOf(c), true)
		sub := st.fork()
		f.forks(c.Stmt.Cmd)
		f.stmt(c.Stmt, sub, stdin{kind: stdinUnknown})
		st.unknown(name)
		return through(st)
	}
	f.j.note(ShellDifference, "a construct that is not bash", f.spanOf(s))
	st.forget()
	return through(st)
}

// execs reports a command among the items from the first on.
func (j *judge) execs(first int) bool {
	for _, it := range j.items[min(first, len(j.items)):] {
		if it.Action == Exec {
			return true
		}
	}
	return false
}

// withoutDashes drops the "--" that ends the options of the time keyword, which
// the parser takes for the name of a program.
func (f *frame) withoutDashes(s *syntax.Stmt) *syntax.Stmt {
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok {
		pipe := *b
		pipe.X = f.withoutDashes(b.X)
		rest := *s
		rest.Cmd = &pipe
		return &rest
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 || call.Args[0].Lit() != "--" {
		return s
	}
	rest := *s
	rest.Cmd = nil
	args := call.Args[1:]
	f.j.note(ShellDifference, "what follows is read as after the keyword", f.spanOf(s))
	for len(args) > 0 && strings.Contains(f.node(args[0]), "=") {
		args = args[1:]
	}
	if len(args) > 0 {
		rest.Cmd = &syntax.CallExpr{Args: args}
	}
	return &rest
}

func (f *frame) binary(c *syntax.BinaryCmd, st state, in stdin) flow {
	if head, rest := splitFunction(c.Y); rest != nil {
		first := *c
		first.Y = head
		fl := f.binary(&first, st, in)
		return f.follow(st, fl, rest, in)
	}
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		f.forks(c.X.Cmd)
		f.forks(c.Y.Cmd)
		left := f.subshell(func() flow { return f.stmt(c.X, st.fork(), in) })
		return f.operator(c.Op, st.fork(), left, c.Y, in)
	}
	return f.operator(c.Op, st, f.stmt(c.X, st, in), c.Y, in)
}

// subshell lowers what runs in a shell of its own, with the traps that it sets.
func (f *frame) subshell(body func() flow) flow {
	traps := len(f.traps)
	fl := body()
	if len(f.traps) > traps {
		f.runTraps(traps, f.j.newState(join(fl.ok, fl.err)))
	}
	return fl
}

// operator lowers what stands on the right of an operator. st is the state
// before the left side, x what holds after it.
func (f *frame) operator(op syntax.BinCmdOperator, st state, x flow, right *syntax.Stmt, in stdin) flow {
	switch op {
	case syntax.AndStmt:
		y := f.stmt(right, x.ok, in)
		return flow{ok: y.ok, err: join(x.err, y.err)}
	case syntax.OrStmt:
		y := f.stmt(right, x.err, in)
		return flow{ok: join(x.ok, y.ok), err: y.err}
	default: // | and |&; with lastpipe the right side runs in the current shell
		if _, ok := right.Cmd.(*syntax.TimeClause); ok {
			f.wrappers = append(f.wrappers[:len(f.wrappers):len(f.wrappers)], "time") // here it is the program
			before := len(f.j.items)
			defer func() {
				f.wrappers = f.wrappers[:len(f.wrappers)-1]
				if !f.j.execs(before) {
					f.j.note(ShellDifference, "a program where the keyword time is read", f.spanOf(right))
				}
			}()
		}
		y := f.subshell(func() flow { return f.stmt(right, st.fork(), x.out.pipe()) })
		return flow{ok: st, err: st, out: y.out}
	}
}

// splitFunction undoes what the parser does to a function that operators
// follow: it takes them into the body, where the shells end the function after
// its compound command. It returns the function alone, and the operators with
// their right sides, the last one first.
func splitFunction(s *syntax.Stmt) (head *syntax.Stmt, rest []*syntax.BinaryCmd) {
	fn, ok := s.Cmd.(*syntax.FuncDecl)
	if !ok {
		return s, nil
	}
	body := fn.Body
	for b, ok := body.Cmd.(*syntax.BinaryCmd); ok; b, ok = body.Cmd.(*syntax.BinaryCmd) {
		rest = append(rest, b)
		body = b.X
	}
	if rest == nil {
		return s, nil
	}
	alone, stmt := *fn, *s
	alone.Body = body
	stmt.Cmd = &alone
	return &stmt, rest
}

// follow lowers the operators behind a function.
func (f *frame) follow(st state, fl flow, rest []*syntax.BinaryCmd, in stdin) flow {
	for i := len(rest) - 1; i >= 0; i-- {
		head, more := splitFunction(rest[i].Y)
		fl = f.operator(rest[i].Op, st, fl, head, in)
		fl = f.follow(st, fl, more, in)
	}
	return fl
}

func (f *frame) ifClause(c *syntax.IfClause, st state, in stdin) flow {
	if len(c.Cond) == 0 { // else
		return f.list(c.Then, st, in)
	}
	cond := f.list(c.Cond, st, in)
	then := f.list(c.Then, cond.ok, in)
	after := join(then.ok, then.err)
	if c.Else == nil {
		return through(join(after, cond.err))
	}
	if !f.step() {
		return through(st)
	}
	other := f.ifClause(c.Else, cond.err, in)
	return through(join(after, join(other.ok, other.err)))
}

const maxUnroll = 16

func (f *frame) forClause(c *syntax.ForClause, st state, in stdin) flow {
	if c.Select {
		f.takesScript(&command{in: in, span: f.spanOf(c)})
	}
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		loop := c.Loop.(*syntax.CStyleLoop)
		f.arithm(loop.Init, &st)
		start := st
		return through(f.loop(st, nil, c.Do, loop, func(st *state) {
			numbers(&start, st)
			f.arithm(loop.Cond, st)
			f.stmts(c.Do, st, in)
			f.arithm(loop.Post, st)
		}))
	}
	name := iter.Name.Value
	f.assigned(name, word{kind: dynamicWord}, f.spanOf(iter), true)
	var items []word
	for _, w := range iter.Items {
		items = f.expand(w, &st, items)
	}
	for _, w := range items {
		if w.kind == globWord {
			f.readGlob(&command{span: f.spanOf(iter)}, w, &st)
		}
	}
	return through(f.loop(st, nil, c.Do, nil, func(st *state) {
		f.j.repeat++
		defer func() { f.j.repeat-- }()
		rest := false
		done := 0
		for _, w := range items {
			v := w.value()
			if v.state == boundUnknown || done >= maxUnroll && !f.isTop(w, st) {
				rest = true
				continue
			}
			done++
			body := *st
			body.bind(name, v)
			f.stmts(c.Do, &body, in)
			*st = join(*st, body)
		}
		if rest || len(items) == 0 || c.Select {
			body := *st
			body.bind(name, anyOf(items))
			f.stmts(c.Do, &body, in)
			*st = join(*st, body)
		}
	}))
}

const maxLoops = 3

// loop follows a loop: once from the state before it, and once from a state in
// which everything that the loop changes is unknown, which stands for all
// later rounds.
func (f *frame) loop(st state, cond, do []*syntax.Stmt, head *syntax.CStyleLoop, round func(*state)) state {
	later := st
	for _, list := range [...][]*syntax.Stmt{cond, do} {
		for _, s := range list {
			f.unsettle(s, &later)
		}
	}
	if head != nil {
		f.unsettle(head, &later)
	}
	if later.vars != st.vars || later.likely != st.likely || !sameStrings(later.dirs, st.dirs) {
		if f.loops < maxLoops {
			f.loops++
			first := st
			round(&first)
			f.loops--
			later = join(later, first)
		}
	}
	f.counters(&st, &later, round)
	f.j.repeat++
	after := later
	round(&after)
	f.j.repeat--
	return join(st, after)
}

// counters keeps what is a number before a loop a number, when a round of the
// loop leaves it one.
func (f *frame) counters(before, later *state, round func(*state)) {
	var names []string
	n := 0
	for b := before.vars; b != nil && b.name != "" && len(names) < 8 && n < 64; b = b.next {
		n++
		if numeric(b.value) && before.lookup(b.name) == b.value && !numeric(later.lookup(b.name)) && !contains(names, b.name) {
			names = append(names, b.name)
		}
	}
	if len(names) == 0 || f.loops >= maxLoops {
		return
	}
	trial := *later
	for _, n := range names {
		trial.bind(n, value{state: boundNumber})
	}
	start := trial
	f.loops++
	f.j.dry++
	round(&trial)
	f.j.dry--
	f.loops--
	for _, n := range names {
		if !numeric(trial.lookup(n)) {
			return
		}
	}
	*later = start
}

// anyOf is what is known about a variable that holds any of the words.
func anyOf(items []word) value {
	if len(items) == 0 {
		return value{state: boundUnknown}
	}
	for _, w := range items {
		if !w.number && !(w.literal() && isNumber(w.text)) {
			return value{state: boundUnknown}
		}
	}
	return value{state: boundNumber}
}

// numbers keeps what the start of a C-style loop set to a number.
func numbers(start, st *state) {
	for b := start.vars; b != nil && b.name != ""; b = b.next {
		if numeric(b.value) && st.lookup(b.name).state == boundUnknown && start.lookup(b.name) == b.value {
			st.bind(b.name, value{state: boundNumber})
		}
	}
}

// value is what a variable holds after it was assigned the word.
func (w word) value() value {
	switch {
	case w.kind == literalWord:
		return value{state: boundText, text: w.text}
	case w.number:
		return value{state: boundNumber}
	case w.kind == globWord, w.below, w.fixed > 0 && !w.split:
		return value{state: boundGlob, text: w.text, fixed: w.fixed, rough: w.kind == dynamicWord && !w.below}
	}
	return value{state: boundUnknown}
}

// unsettle makes unknown what a loop body changes, so that one pass over the
// body stands for all.
func (f *frame) unsettle(part syntax.Node, st *state) {
	nodes := 0
	syntax.Walk(part, func(n syntax.Node) bool {
		if nodes++; nodes%16 == 0 && !f.step() {
			return false
		}
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				st.unsettleName(n.Name.Value)
			}
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				st.unsettleArithm(n.X)
			}
		case *syntax.BinaryArithm:
			if isAssignOp(n.Op) {
				st.unsettleArithm(n.X)
			}
		case *syntax.WordIter:
			st.unsettleName(n.Name.Value)
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
				st.unsettleName(n.Param.Value)
			}
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			switch n.Args[0].Lit() {
			case "cd", "pushd", "popd":
				st.cwd(nil)
			case "read", "mapfile", "readarray", "getopts", "printf", "unset", "shift", "set", "wait":
				for _, a := range n.Args[1:] {
					if l := a.Lit(); syntax.ValidName(l) {
						st.unsettleName(l)
					}
				}
				if v := n.Args[0].Lit(); v == "shift" || v == "set" {
					st.unsettlePositional()
				}
			case "eval", "source", ".", "declare", "local", "export", "readonly", "typeset", "command", "builtin":
				st.forget()
			default:
				if n.Args[0].Lit() == "" || st.lookup(n.Args[0].Lit()+"()").state == boundFunc {
					keep := st.functions()
					st.forget()
					for _, b := range keep {
						st.bind(b.name, b.value)
					}
				}
			}
		}
		return true
	})
}

func (s *state) functions() (list []*binding) {
	for b := s.vars; b != nil && b.name != ""; b = b.next {
		if b.value.state == boundFunc {
			list = append(list, b)
		}
	}
	return list
}

func (s *state) unsettleName(name string) {
	if s.lookup(name).state != boundUnknown {
		s.unknown(name)
	}
}

func (s *state) unsettleArithm(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		if name := w.Lit(); syntax.ValidName(name) {
			s.unsettleName(name)
		}
	}
}

func (s *state) unsettlePositional() {
	for _, name := range positional {
		s.unsettleName(name)
	}
}

var positional = [...]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}

func (f *frame) funcDecl(c *syntax.FuncDecl, st state) flow {
	if c.Name == nil || len(c.Names) > 0 {
		f.j.note(ShellDifference, "a function without one name", f.spanOf(c))
		return through(st)
	}
	name := c.Name.Value
	if !compound(c.Body.Cmd) {
		f.j.note(ShellDifference, "a function that is not made of a compound command", f.spanOf(c))
	}
	fn := &function{name: name, body: c.Body}
	if reason, detail := shadows(name); reason != "" {
		f.j.add(item{Target: Target{Action: Exec, Resource: name + "()", Span: f.spanOf(c), Reason: ShadowedName, Detail: detail}, risk: reason.risk()})
	}
	f.j.functions = true
	st.bind(name+"()", value{state: boundFunc, fn: fn})
	// The body runs later. Each call is followed from where the shell is then.
	later := st
	keep := later.functions()
	later.forget()
	later.dirs, later.likely = st.dirs, st.likely
	for _, b := range keep {
		later.bind(b.name, b.value)
	}
	f.inFunc = append(f.inFunc, fn)
	f.stmt(c.Body, later, stdin{kind: stdinUnknown})
	f.inFunc = f.inFunc[:len(f.inFunc)-1]
	if bomb(fn, &st) {
		f.j.add(item{Target: Target{Action: Exec, Resource: name + "()", Span: f.spanOf(c), Reason: ForkBomb, Detail: "a function that starts itself beside itself"}, risk: riskDanger})
	}
	return through(st)
}

// compound reports a compound command, which is what a function is made of.
func compound(c syntax.Command) bool {
	switch c.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.ArithmCmd, *syntax.TestClause:
		return true
	}
	return false
}

// forks records that the enclosing function starts the command beside itself.
func (f *frame) forks(c syntax.Command) {
	if len(f.inFunc) == 0 || c == nil {
		return
	}
	syntax.Walk(c, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			if name := call.Args[0].Lit(); name != "" {
				fn := f.inFunc[len(f.inFunc)-1]
				fn.forks = append(fn.forks, name)
			}
		}
		return true
	})
}

// bomb reports whether fn can start itself again through functions of which
// one forks.
func bomb(fn *function, st *state) bool {
	seen := map[*function]bool{}
	self, forks := false, false
	var visit func(g *function)
	visit = func(g *function) {
		seen[g] = true
		forks = forks || len(g.forks) > 0
		for _, list := range [...][]string{g.calls, g.forks} {
			for _, name := range list {
				v := st.lookup(name + "()")
				if v.state != boundFunc {
					continue
				}
				self = self || v.fn == fn
				if !seen[v.fn] {
					visit(v.fn)
				}
			}
		}
	}
	visit(fn)
	return self && forks
}
