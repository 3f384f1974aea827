package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

type wordKind uint8

const (
	literalWord wordKind = iota // text is the word
	globWord                    // text is a pattern; it becomes the names that match, or stays
	dynamicWord                 // known only when it runs
)

// word is a word after quotes, backslashes, tildes, braces and known variables
// have been dealt with. What is not known is kept as it was written.
type word struct {
	text      string
	fixed     int      // length of the beginning of text that is certain
	kind      wordKind //
	split     bool     // may become no word or several
	computed  bool     // the text is known, but it came out of a variable or a substitution
	number    bool     // dynamic, but a decimal number
	process   bool     // a process substitution: a path below /dev/fd
	below     bool     // dynamic: what is unknown never leads out of the folder that is certain
	numberLen int
	pos, end  int
}

func literal(text string) word { return word{text: text, fixed: len(text)} }

func (w word) literal() bool { return w.kind == literalWord }

// mayBeOption reports whether the word can begin with a dash.
func (w word) mayBeOption() bool {
	if w.number {
		return false
	}
	if w.fixed > 0 {
		return w.text[0] == '-'
	}
	return w.kind != literalWord
}

// flagKnown reports whether the word begins with a dash for certain.
func (w word) flagKnown() bool { return w.fixed > 0 }

// from returns the word without its first n bytes.
func (w word) from(n int) word {
	w.text = w.text[n:]
	w.fixed = max(0, w.fixed-n)
	return w
}

// expand decodes a word into the words that it becomes, and lowers the
// substitutions inside.
func (f *frame) expand(w *syntax.Word, st *state, out []word) []word {
	if len(w.Parts) == 1 {
		switch p := w.Parts[0].(type) {
		case *syntax.Lit:
			if !strings.ContainsAny(p.Value, "\\*?[~{") {
				return append(out, word{text: p.Value, fixed: len(p.Value), pos: f.at(p.ValuePos), end: f.at(p.ValueEnd)})
			}
		case *syntax.SglQuoted:
			if !p.Dollar {
				return append(out, word{text: p.Value, fixed: len(p.Value), pos: f.at(w.Pos()), end: f.at(w.End())})
			}
		}
	}
	pos, end := f.at(w.Pos()), f.at(w.End())
	if list, ok := f.wholeArray(w, st, out); ok {
		return list
	}
	split := syntax.Word{Parts: w.Parts}
	if f.lang != syntax.LangPOSIX && syntax.SplitBraces(&split) {
		for i, p := range split.Parts[1:] {
			if _, ok := p.(*syntax.BraceExp); ok {
				if v, ok := split.Parts[i].(*syntax.ParamExp); ok && v.Short {
					// Braces are expanded first, and their text can become a
					// part of the name.
					f.j.note(ShellDifference, "braces behind a name", f.span(pos, end))
				}
			}
		}
		for _, p := range split.Parts {
			if v, ok := p.(*syntax.ParamExp); ok && strings.Count(f.node(v), "{") > 1 {
				f.j.note(ShellDifference, "braces beside a brace in an expansion", f.span(pos, end))
			}
		}
		if src := f.source(pos, end); strings.Contains(src, "~") && strings.Contains(src, "=") {
			// What comes out of braces does not have the form of an assignment.
			f.j.note(ShellDifference, "a tilde behind = and braces", f.span(pos, end))
		}
		list, ok := braces(split.Parts, nil, maxBraces)
		if !ok {
			// Too many to list: what is inside still runs once.
			for _, p := range split.Parts {
				f.lowerBraceParts(p, st)
			}
			return append(out, word{text: f.source(pos, end), kind: dynamicWord, split: true, pos: pos, end: end})
		}
		for _, parts := range list {
			n := len(out)
			parts = joinLits(parts)
			out = f.fields(parts, st, out, pos, end)
			if looseBraces(parts) {
				uncertainBraces(out[n:])
			}
		}
		return out
	}
	if f.lang != syntax.LangPOSIX && looseBraces(w.Parts) {
		n := len(out)
		out = f.fields(w.Parts, st, out, pos, end)
		uncertainBraces(out[n:])
		return out
	}
	return f.fields(w.Parts, st, out, pos, end)
}

// wholeArray puts in the words of a known array, for a word that is nothing
// but "${name[@]}" or one of its kin: Bash manual 6.7.
func (f *frame) wholeArray(w *syntax.Word, st *state, out []word) ([]word, bool) {
	if len(w.Parts) != 1 || f.lang == syntax.LangPOSIX {
		return nil, false
	}
	part, quoted := w.Parts[0], false
	if q, ok := part.(*syntax.DblQuoted); ok && !q.Dollar && len(q.Parts) == 1 {
		part, quoted = q.Parts[0], true
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok || !indexed(p) {
		return nil, false
	}
	index, ok := p.Index.(*syntax.Word)
	v := st.lookup(p.Param.Value)
	if !ok || v.state != boundList || index.Lit() != "@" && index.Lit() != "*" {
		return nil, false
	}
	list := *v.list
	separated := st.lookup("IFS").state == unbound
	switch {
	case quoted && index.Lit() == "*":
		if !separated {
			return nil, false
		}
		list = []string{strings.Join(list, " ")}
	case !quoted:
		for _, s := range list {
			if !separated || s == "" || strings.ContainsAny(s, " \t\n*?[\\") {
				return nil, false
			}
		}
	}
	for _, s := range list {
		w := word{text: s, fixed: len(s), computed: true, pos: f.at(w.Pos()), end: f.at(w.End())}
		out = append(out, w)
	}
	return out, true
}

// indexed reports an expansion with a subscript and nothing else.
func indexed(p *syntax.ParamExp) bool {
	return p.Index != nil && p.Param != nil && p.Exp == nil && p.Slice == nil && p.Repl == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Names == 0 && p.Flags == nil && p.NestedParam == nil
}

// joinLits joins what braces took apart: ~{,x} is ~ and ~x.
func joinLits(parts []syntax.WordPart) []syntax.WordPart {
	var out []syntax.WordPart
	for _, p := range parts {
		l, ok := p.(*syntax.Lit)
		if !ok || len(out) == 0 {
			out = append(out, p)
			continue
		}
		before, ok := out[len(out)-1].(*syntax.Lit)
		if !ok {
			out = append(out, p)
			continue
		}
		both := *before
		both.Value += l.Value
		out[len(out)-1] = &both
	}
	return out
}

const maxBraces = 64

// looseBraces reports unquoted braces that the parser does not take for an
// expansion, although they look like one.
func looseBraces(parts []syntax.WordPart) bool {
	open, middle := false, false
	for _, p := range parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		for i := 0; i < len(l.Value); i++ {
			switch c := l.Value[i]; {
			case c == '\\':
				i++
			case c == '{':
				open = true
			case open && (c == ',' || c == '.' && i+1 < len(l.Value) && l.Value[i+1] == '.'):
				middle = true
			case middle && c == '}':
				return true
			}
		}
	}
	return false
}

func uncertainBraces(words []word) {
	for i := range words {
		words[i].kind, words[i].split, words[i].fixed, words[i].below = dynamicWord, true, 0, false
	}
}

func (f *frame) lowerBraceParts(p syntax.WordPart, st *state) {
	if b, ok := p.(*syntax.BraceExp); ok {
		for _, e := range b.Elems {
			for _, q := range e.Parts {
				f.lowerBraceParts(q, st)
			}
		}
		return
	}
	f.fields([]syntax.WordPart{p}, st, nil, 0, 0)
}

// braces lists the alternatives of brace expansions; false when there are more
// than limit.
func braces(parts []syntax.WordPart, prefix []syntax.WordPart, limit int) ([][]syntax.WordPart, bool) {
	for i, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		prefix = append(prefix[:len(prefix):len(prefix)], parts[:i]...)
		elems, ok := braceElems(b, limit)
		if !ok {
			return nil, false
		}
		var all [][]syntax.WordPart
		for _, e := range elems {
			heads, ok := braces(e, prefix, limit)
			if !ok {
				return nil, false
			}
			for _, h := range heads {
				list, ok := braces(parts[i+1:], h, limit)
				if !ok || len(all)+len(list) > limit {
					return nil, false
				}
				all = append(all, list...)
			}
		}
		return all, true
	}
	return [][]syntax.WordPart{append(prefix[:len(prefix):len(prefix)], parts...)}, true
}

func braceElems(b *syntax.BraceExp, limit int) ([][]syntax.WordPart, bool) {
	if !b.Sequence {
		if len(b.Elems) > limit {
			return nil, false
		}
		list := make([][]syntax.WordPart, len(b.Elems))
		for i, e := range b.Elems {
			list[i] = e.Parts
		}
		return list, true
	}
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	step := 1
	if len(b.Elems) > 2 {
		n, err := strconv.Atoi(b.Elems[2].Lit())
		if err != nil {
			return nil, false
		}
		step = max(n, -n, 1)
	}
	lo, err1 := strconv.Atoi(from)
	hi, err2 := strconv.Atoi(to)
	letters := false
	if err1 != nil || err2 != nil {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		lo, hi, letters = int(from[0]), int(to[0]), true
	} else if padded(from) || padded(to) {
		return nil, false // {01..10} keeps the zeros
	}
	if n := hi - lo; n/step >= limit || -n/step >= limit {
		return nil, false
	}
	if lo > hi {
		step = -step
	}
	var list [][]syntax.WordPart
	for v := lo; (v-hi)*step <= 0; v += step {
		text := strconv.Itoa(v)
		if letters {
			text = "\\" + string(rune(v))
		}
		list = append(list, []syntax.WordPart{&syntax.Lit{Value: text}})
	}
	return list, true
}

func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}

// decoder puts one word together out of its parts.
type decoder struct {
	f     *frame
	st    *state
	out   []word
	buf   []byte
	fixed int // -1 while everything is certain
	w     word
	any   bool // the word exists even when it is empty
	hdoc  bool // in a here-document, where a double quote is not special
	rough bool // something unknown can hold anything
}

// fields decodes parts, in which braces have been expanded.
func (f *frame) fields(parts []syntax.WordPart, st *state, out []word, pos, end int) []word {
	d := decoder{f: f, st: st, out: out, fixed: -1, buf: f.j.text[:0]}
	f.j.text = nil // until this word is done; there are others in its substitutions
	d.w.pos, d.w.end = pos, end
	for i, p := range parts {
		d.part(p, false, i == 0, i == len(parts)-1)
	}
	d.flush()
	f.j.text = d.buf
	return d.out
}

func (d *decoder) flush() {
	if len(d.buf) == 0 && !d.any {
		return
	}
	w := d.w
	w.text = string(d.buf)
	w.fixed = d.fixed
	if d.fixed < 0 {
		w.fixed = len(w.text)
	}
	w.number = w.number && d.fixed == 0 && d.w.numberLen == len(d.buf)
	w.below = w.kind == dynamicWord && !d.rough
	d.out = append(d.out, w)
	d.buf, d.fixed, d.any, d.rough = d.buf[:0], -1, false, false
	d.w = word{pos: w.pos, end: w.end}
}

// uncertain marks what follows as not known.
func (d *decoder) uncertain(kind wordKind) {
	if d.fixed < 0 {
		d.fixed = len(d.buf)
	}
	d.w.kind = max(d.w.kind, kind)
	d.any = true
}

// digits puts in an unknown number.
func (d *decoder) digits(source string) {
	number := len(d.buf) == 0
	d.uncertain(dynamicWord)
	d.buf = append(d.buf, source...)
	d.w.number, d.w.numberLen = number, len(d.buf)
}

func (d *decoder) dynamic(source string, quoted bool) {
	d.uncertain(dynamicWord)
	d.rough = true
	d.buf = append(d.buf, source...)
	if !quoted {
		d.w.split = true
	}
}

func (d *decoder) part(p syntax.WordPart, quoted, first, last bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			d.quotedLit(p.Value)
		} else {
			d.lit(p.Value, first, last)
		}
	case *syntax.SglQuoted:
		d.any = true
		if !p.Dollar {
			d.buf = append(d.buf, p.Value...)
			return
		}
		text, ok := ansiC(p.Value)
		if !ok {
			d.dynamic(d.f.node(p), true)
			return
		}
		d.buf = append(d.buf, text...)
	case *syntax.DblQuoted:
		d.any = true
		for _, q := range p.Parts {
			d.part(q, true, false, false)
		}
	case *syntax.ParamExp:
		d.param(p, quoted)
	case *syntax.CmdSubst:
		d.substitution(p, quoted)
	case *syntax.ArithmExp:
		d.f.arithm(p.X, d.st)
		d.digits(d.f.node(p))
	case *syntax.ProcSubst:
		if len(p.Stmts) == 0 {
			d.f.j.note(ShellDifference, "an empty process substitution", d.f.spanOf(p))
		}
		sub := d.st.fork()
		d.f.substitutions++
		traps := len(d.f.traps)
		d.f.stmts(p.Stmts, &sub, stdin{kind: stdinUnknown, open: p.Op == syntax.CmdIn})
		d.f.runTraps(traps, &sub)
		d.f.substitutions--
		if len(d.buf) == 0 && !d.any {
			d.w.process = true
			d.buf = append(d.buf, "/dev/fd/63"...)
			d.any = true
			return
		}
		d.dynamic(d.f.node(p), true)
	case *syntax.ExtGlob:
		if strings.ContainsAny(p.Pattern.Value, "$`<>") {
			d.f.j.note(ShellDifference, "an extended pattern that may hold a substitution", d.f.spanOf(p))
		}
		d.uncertain(globWord)
		d.w.split = true
		d.buf = append(d.buf, d.f.node(p)...)
	case *syntax.BraceExp:
		d.dynamic(d.f.node(p), false)
	default:
		d.f.j.note(ShellDifference, "a word of an unknown kind", d.f.span(d.w.pos, d.w.end))
		d.dynamic("", false)
	}
}

// lit decodes unquoted text.
func (d *decoder) lit(s string, first, last bool) {
	if first && s != "" && s[0] == '~' && len(d.buf) == 0 && !d.any {
		s = d.tilde(s, last)
	}
	if n := assignment(strings.Replace(s, "+=", "=", 1)) + strings.Count(s[:strings.IndexByte(s, '=')+1], "+="); first && n > 0 && n < len(s) && s[n] == '~' && s[n-1] == '=' && len(d.buf) == 0 && !d.any && d.f.lang != syntax.LangPOSIX {
		// bash expands a tilde behind NAME= in any word of a command.
		d.buf = append(d.buf, s[:n]...)
		s = d.tilde(s[n:], last)
	}
	if first && assignment(s) > 0 && strings.Contains(s, ":~") {
		d.uncertain(dynamicWord) // and behind a colon
		d.rough = true
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i == len(s) {
				d.buf = append(d.buf, '\\') // at the end of the text it stands for itself
			} else if s[i] != '\n' {
				d.buf = append(d.buf, s[i])
			}
		case '*', '?':
			d.uncertain(globWord)
			d.w.split = true
			d.buf = append(d.buf, c)
		case '[':
			if strings.IndexByte(s[i:], ']') > 0 || !last {
				d.uncertain(globWord)
				d.w.split = true
			}
			d.buf = append(d.buf, c)
		default:
			d.buf = append(d.buf, c)
		}
	}
}

// tilde expands a tilde at the start of a word and returns what follows it.
// A tilde prefix with a quoted character is not expanded: Bash manual 3.5.2.
func (d *decoder) tilde(s string, last bool) string {
	name, rest, slash := strings.Cut(s[1:], "/")
	if !slash && !last || strings.ContainsAny(name, "\\") {
		return s
	}
	if slash {
		rest = "/" + rest
	} else {
		rest = ""
	}
	switch {
	case name == "" && d.st.lookup("HOME").state != unbound:
		v := d.st.lookup("HOME")
		if !v.known() {
			d.dynamic("~", true)
			return rest
		}
		d.buf = append(d.buf, v.text...)
	case name == "":
		d.buf = append(d.buf, d.f.j.scope.Home...)
	case name == d.f.j.scope.User && name != "":
		d.buf = append(d.buf, d.f.j.scope.Home...)
	case name == "root":
		d.buf = append(d.buf, "/root"...)
	case name == "+" && len(d.st.dirs) == 1 && d.f.lang != syntax.LangPOSIX:
		d.buf = append(d.buf, d.st.dirs[0]...)
	default:
		d.dynamic("~"+name, true) // the home of somebody else
	}
	d.any = true
	return rest
}

// quotedLit decodes text in double quotes: Bash manual 3.1.2.3.
func (d *decoder) quotedLit(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch c := s[i+1]; {
			case c == '"' && d.hdoc:
			case c == '$' || c == '`' || c == '"' || c == '\\':
				i++
			case c == '\n':
				i++
				continue
			}
		}
		d.buf = append(d.buf, s[i])
	}
}

func (d *decoder) param(p *syntax.ParamExp, quoted bool) {
	if p.Short && p.Param != nil && p.Param.Value == "$" {
		// bash reads $$ as one parameter, and $${ as the start of another when
		// it expands the word.
		rest := strings.TrimLeft(d.f.text[d.f.at(p.End()):], "\\\n")
		if strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "(") {
			d.f.j.note(ShellDifference, "a bracket behind $$", d.f.spanOf(p))
		}
	}
	if v, ok := d.f.parameter(p, d.st); ok && v.known() {
		d.known(v, quoted)
		return
	} else if v.state == boundNumber {
		d.digits(d.f.node(p))
		return
	} else if v.state == boundGlob {
		d.glob(v, quoted)
		return
	}
	if p.Param != nil && len(d.f.maybes) < 8 {
		v := d.st.lookup(p.Param.Value)
		if v.list != nil {
			d.f.maybes = append(d.f.maybes, maybe{name: p.Param.Value, list: v.list})
		}
		for _, t := range v.maybe {
			if t != "" {
				d.f.maybes = append(d.f.maybes, maybe{name: p.Param.Value, text: t})
			}
		}
		if t := d.f.instead(p, quoted, d.st); t != "" {
			d.f.maybes = append(d.f.maybes, maybe{name: p.Param.Value, text: t})
		}
		if p.Param.Value == "@" || p.Param.Value == "*" {
			for _, name := range positional {
				v := d.st.lookup(name)
				for _, t := range [...]string{v.text, v.maybe[0], v.maybe[1]} {
					if t != "" && (v.known() || v.state == boundUnknown) {
						d.f.maybes = append(d.f.maybes, maybe{name: p.Param.Value, text: t})
					}
				}
			}
		}
	}
	many := p.Param != nil && (p.Param.Value == "@" || p.Param.Value == "*" && !quoted) || p.Index != nil || p.Excl
	d.dynamic(d.f.node(p), quoted && !many)
}

// glob puts in a variable that holds a name matched by a pattern.
func (d *decoder) glob(v value, quoted bool) {
	if len(d.buf) == 0 {
		fixed := v.fixed
		d.buf = append(d.buf, v.text[:fixed]...)
		d.uncertain(dynamicWord)
		d.buf = append(d.buf, v.text[fixed:]...)
		d.rough = d.rough || v.rough
	} else {
		d.dynamic(v.text, true)
	}
	if !quoted {
		d.w.split = true
	}
}

// known puts in the text of a known variable, which the shell splits and
// globs when it is not quoted.
func (d *decoder) known(v value, quoted bool) {
	d.w.computed = true
	if quoted {
		d.any = true
		d.buf = append(d.buf, v.text...)
		return
	}
	if d.st.lookup("IFS").state != unbound {
		d.dynamic(v.text, false)
		return
	}
	for i := 0; i < len(v.text); i++ {
		switch c := v.text[i]; c {
		case ' ', '\t', '\n':
			d.flush()
			d.w.computed = true
		case '*', '?', '[', '\\':
			d.uncertain(globWord)
			d.w.split = true
			d.buf = append(d.buf, c)
		default:
			d.buf = append(d.buf, c)
		}
	}
}

func (d *decoder) substitution(p *syntax.CmdSubst, quoted bool) {
	// Bash ends it at the next one, even in quotes.
	if p.Backquotes && strings.Count(d.f.node(p), "`") > 2 {
		d.f.j.note(ShellDifference, "backquotes in backquotes", d.f.spanOf(p))
	}
	if p.Backquotes && strings.Contains(d.f.node(p), "\\\\\n") {
		d.f.j.note(ShellDifference, "a line that is continued in backquotes", d.f.spanOf(p))
	}
	if p.Backquotes && strings.Contains(d.f.node(p), "<<") {
		d.f.j.note(ShellDifference, "a here-document in backquotes", d.f.spanOf(p))
	}
	if p.Backquotes && quoted && strings.ContainsAny(d.f.node(p), "\"'") {
		d.f.j.note(ShellDifference, "quotes in backquotes in quotes", d.f.spanOf(p))
	}
	if p.TempFile || p.ReplyVar {
		d.f.j.note(ShellDifference, "a substitution that runs in the current shell", d.f.spanOf(p))
	}
	sub := d.st.fork()
	d.f.substitutions++
	traps := len(d.f.traps)
	out := d.f.stmts(p.Stmts, &sub, stdin{})
	d.f.runTraps(traps, &sub)
	d.f.substitutions--
	if out.kind == outText {
		d.known(value{state: boundText, text: strings.TrimRight(out.text, "\n")}, quoted)
		d.any = d.any || quoted
		return
	}
	if out.kind == outNames && len(d.buf) == 0 && !quoted {
		d.glob(value{state: boundGlob, text: d.f.node(p) + "…"}, false)
		return
	}
	if out.kind == outTemp && len(d.buf) == 0 {
		// mktemp(1): a name of its own below /tmp, without odd characters.
		d.glob(value{state: boundGlob, text: "/tmp/tmp.XXXXXXXXXX", fixed: len("/tmp/tmp.")}, true)
		return
	}
	d.dynamic(d.f.node(p), quoted)
}

// ansiC decodes $'…': Bash manual 3.1.2.4. False when the text is not certain.
func ansiC(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i >= len(s) {
			return "", false
		}
		switch c := s[i]; c {
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'e', 'E':
			b.WriteByte(0x1b)
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := prefixLen(s[i:], 3, "01234567")
			v, _ := strconv.ParseUint(s[i:i+n], 8, 16)
			if v&0xff == 0 {
				return "", false // a NUL ends the word early
			}
			b.WriteByte(byte(v))
			i += n - 1
		case 'x':
			n := prefixLen(s[i+1:], 2, hexDigits)
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 16)
			if err != nil || v == 0 {
				return "", false
			}
			b.WriteByte(byte(v))
			i += n
		case 'u', 'U':
			width := 4
			if c == 'U' {
				width = 8
			}
			n := prefixLen(s[i+1:], width, hexDigits)
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil || v == 0 || !utf8.ValidRune(rune(v)) {
				return "", false
			}
			b.WriteRune(rune(v))
			i += n
		default:
			return "", false // \c and what the manual does not list
		}
	}
	return b.String(), true
}

const hexDigits = "0123456789abcdefABCDEF"

func prefixLen(s string, limit int, set string) int {
	n := 0
	for n < limit && n < len(s) && strings.IndexByte(set, s[n]) >= 0 {
		n++
	}
	return n
}
