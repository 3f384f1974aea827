package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// texts makes shell texts out of a grammar with weights, for bash or for a
// POSIX shell. The same seed makes the same texts.
type texts struct {
	*rand.Rand
	posix   bool
	left    int      // how much more the text may grow
	here    []string // bodies of here-documents that begin after the next newline
	corpus  []string
	earlier []string // texts to take pieces from

	commands, pieces []rule
}

func newTexts(seed uint64, posix bool, corpus []string) *texts {
	return &texts{Rand: rand.New(rand.NewPCG(seed, 0)), posix: posix, corpus: corpus, commands: compounds(), pieces: parts()}
}

// rule is one way to go on; the weight is relative to the others of its list.
type rule struct {
	weight int
	bash   bool // not in POSIX shells
	make   func(g *texts) string
}

func (g *texts) pick(rules []rule) string {
	posix := g.posix && !g.chance(3)
	total := 0
	for _, r := range rules {
		if !r.bash || !posix {
			total += r.weight
		}
	}
	n := g.IntN(total)
	for _, r := range rules {
		if r.bash && posix {
			continue
		}
		if n -= r.weight; n < 0 {
			return r.make(g)
		}
	}
	panic("not reached")
}

func (g *texts) one(list []string) string { return list[g.IntN(len(list))] }

func (g *texts) chance(percent int) bool { return g.IntN(100) < percent }

// grow reports whether the text may grow by one more construct.
func (g *texts) grow() bool { g.left--; return g.left > 0 }

func words(s string) []string { return strings.Fields(s) }

// Programs that the texts start. Each has a stub, but for the shells and
// wrappers that are there themselves.
var (
	programs    = words("a b c d e f1 rm ls cat git grep find sed touch mkdir cp mv make go npm cargo curl tee sort head wc tr uniq stat")
	odd         = words("} { 0=x 1a= a.b=x a-b=c +x -x x+ % @ , . ^ in do done then fi else esac a=b] [[ ]] ]] (( time coproc select function ~ =ls a: é")
	stubbed     = words("choom uclampset sudo watch doas parallel entr strace ssh docker busybox nsenter chroot script")
	real        = words("env timeout nice nohup xargs setsid flock ionice stdbuf chrt taskset setarch linux64")
	functions   = words("f g h k")
	names       = words("x y z v w")
	looseWords  = words("one two -x -rf --all --file=x a=b x.txt d/e ./d .. /dev/null /w/q 12 -1 + - -- @ % ^ : , = == . a:b a@b if then do } { ! in esac [[ ]] ] [ e1 é ü")
	assignments = words("= = = = = = = = = = = = = = = = = = = = += [0]=")
)

// text makes one whole text.
func (g *texts) text() string {
	g.left, g.here = 2+g.IntN(11), nil
	text := g.lines()
	if g.chance(50) && len(text) > 0 && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// lines is a script: lists on lines, with the bodies of here-documents.
func (g *texts) lines() string {
	text := g.list()
	for g.grow() && g.chance(30) {
		if g.chance(10) {
			text += g.comment()
		}
		text += g.newline() + g.list()
	}
	if g.chance(6) {
		text += g.comment()
	}
	if len(g.here) > 0 {
		text += g.newline()
	}
	return text
}

func (g *texts) newline() string {
	text := "\n"
	for _, body := range g.here {
		text += body
	}
	g.here = nil
	if g.chance(3) {
		text += "\n"
	}
	return text
}

// inside is a list within brackets that text is closed by.
func (g *texts) inside(closing string) string {
	outer := g.here
	g.here = nil
	text := g.list()
	if g.grow() && g.chance(20) {
		text += g.newline() + g.list()
	}
	if g.chance(3) {
		text += g.comment() + g.newline()
	}
	if len(g.here) > 0 {
		text += g.newline()
	}
	g.here = outer
	return text + closing
}

// body is a list between reserved words, with its last separator.
func (g *texts) body() string {
	if g.chance(20) {
		return g.inside("\n")
	}
	text := g.inside("")
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + g.one([]string{"; ", ";", "\n", " ;", " & "})
}

func (g *texts) list() string {
	text := g.pipeline()
	for g.grow() && g.chance(30) {
		sep := g.one([]string{"; ", ";", " ; ", " && ", "&&", " || ", "||", " & ", "&"})
		if (strings.Contains(sep, "&&") || strings.Contains(sep, "||")) && g.chance(10) {
			sep += g.newline()
		}
		text += sep + g.pipeline()
	}
	if g.chance(4) {
		text += g.one([]string{";", " &", "&"})
	}
	return text
}

func (g *texts) pipeline() string {
	text := ""
	if g.chance(5) {
		text = "! "
	}
	if g.chance(3) && !g.posix {
		text += g.one([]string{"time ", "time -p ", "time ", "time -- "})
	}
	text += g.command()
	for g.grow() && g.chance(12) {
		bar := g.one([]string{" | ", "|", " |", "| "})
		if !g.posix && g.chance(10) {
			bar = " |& "
		}
		if g.chance(8) {
			bar += g.newline()
		}
		text += bar + g.command()
	}
	return text
}

func (g *texts) command() string {
	if !g.grow() {
		return g.simple()
	}
	return g.pick(g.commands)
}

func (g *texts) compound(text string) string {
	for g.chance(10) {
		text += " " + g.redirect()
	}
	return text
}

func compounds() []rule {
	return []rule{
		{60, false, (*texts).simple},
		{4, false, func(g *texts) string { return g.compound("(" + g.space() + g.inside(")")) }},
		{4, false, func(g *texts) string { return g.compound("{" + g.one([]string{" ", "\n", "\t"}) + g.body() + "}") }},
		{3, false, func(g *texts) string {
			items := ""
			for range g.IntN(4) {
				items += " " + g.word()
			}
			head := "for " + g.one(names) + " in" + items + g.one([]string{"; do ", ";do ", "\ndo ", "; do\n"})
			if g.chance(10) {
				head = "for " + g.one(names) + g.one([]string{" do ", "; do ", "\ndo\n"})
			}
			return g.compound(head + g.body() + "done")
		}},
		{1, true, func(g *texts) string {
			return g.compound(fmt.Sprintf("for ((i=%d; i<%d; i++)); do %sdone", g.IntN(2), g.IntN(3), g.body()))
		}},
		{1, true, func(g *texts) string {
			return g.compound("for ((i=0; i<1; i++)) { " + g.body() + "}")
		}},
		{1, true, func(g *texts) string {
			return "select " + g.one(names) + " in " + g.word() + "; do " + g.body() + "break; done <<<1"
		}},
		{3, false, func(g *texts) string {
			return g.compound(g.one([]string{"while ", "until "}) + g.body() + "do " + g.body() + "break; done")
		}},
		{5, false, func(g *texts) string {
			text := "if " + g.body() + "then " + g.body()
			if g.chance(20) {
				text += "elif " + g.body() + "then " + g.body()
			}
			if g.chance(40) {
				text += "else " + g.body()
			}
			return g.compound(text + "fi")
		}},
		{4, false, func(g *texts) string {
			text := "case " + g.word() + g.one([]string{" in ", " in\n", "\nin "})
			for range 1 + g.IntN(2) {
				text += g.one([]string{"", "("}) + g.pattern() + ") " + g.inside("")
				end := ";;"
				if !g.posix {
					end = g.one([]string{";;", ";;", ";;", ";&", ";;&"})
				}
				text += g.one([]string{"", " ", "\n"}) + end + g.one([]string{" ", "\n"})
			}
			if g.chance(30) {
				text += g.pattern() + ") " + g.body()
			}
			return g.compound(text + "esac")
		}},
		{5, false, func(g *texts) string {
			name := g.one(functions)
			if g.chance(25) {
				name = g.one(programs)
			}
			text := name + g.one([]string{"() ", "()", " () ", "()\n", " ( ) "})
			if !g.posix && g.chance(20) {
				text = "function " + name + g.one([]string{" ", "() ", "\n"})
			}
			left := g.left
			text += g.one([]string{"{ ", "{\n"}) + g.without(name, (*texts).body) + "}"
			if g.chance(15) {
				text = g.compound(text)
			}
			g.left = max(g.left, left/2)
			if g.chance(80) {
				text += g.one([]string{"; ", "\n", " && "}) + name + " " + g.word()
			}
			return text
		}},
		{2, true, func(g *texts) string { return g.compound("((" + g.arithmetic() + "))") }},
		{3, true, func(g *texts) string { return g.compound("[[ " + g.test() + " ]]") }},
		{1, true, func(g *texts) string {
			return "coproc " + g.pick([]rule{
				{2, false, func(g *texts) string { return g.simple() }},
				{1, false, func(g *texts) string { return "{ " + g.body() + "}" }},
				{1, false, func(g *texts) string { return "NAME { " + g.body() + "}" }},
			})
		}},
		{4, false, (*texts).declaration},
		{7, false, (*texts).wrapper},
		{3, false, func(g *texts) string { return "eval " + g.quoted(g.nested()) }},
		{4, false, func(g *texts) string {
			shell := g.one([]string{"sh -c ", "bash -c ", "bash -c ", "bash -c ", "sh -c ", "dash -c ", "sh -ec ", "bash -lc ", "bash --norc -c ", "bash -o pipefail -c ", "env sh -c ", "sh -c -- ", "bash +e -c "})
			return shell + g.quoted(g.nested()) + g.one([]string{"", "", " x " + g.word()})
		}},
		{2, false, func(g *texts) string {
			return "trap " + g.quoted(g.nested()) + g.one([]string{" EXIT", " 0", " EXIT INT", " ERR", " DEBUG", " TERM"})
		}},
		{2, false, func(g *texts) string { // a script on standard input
			word, body := g.document(g.nested() + "\n")
			g.here = append(g.here, body)
			return g.one([]string{"sh ", "sh -s ", "dash ", "sh - ", "sh -es "}) + "<<" + word
		}},
		{1, true, func(g *texts) string { return "bash <<<" + g.quoted(g.nested()) }},
		{3, false, func(g *texts) string {
			if !g.posix && g.chance(40) {
				return g.one([]string{
					"alias " + g.one(programs) + "=" + g.quoted(g.simple()) + "\n" + g.one(programs),
					"let x=1", "let 'x=1' y=2", "x=(a b $(c)); d ${x[1]}", "x=([0]=a [1]=b); c \"${x[@]}\"", "declare -a x=(a b); c $x", "x[$(a)]=1", "printf -v x %s y; a $x", "read x <<<y; a $x", "mapfile -t x <x.txt; a $x",
					"x=(a b); c \"${x[@]}\"", "x=(a b); x+=(c \"d e\"); d \"${x[@]}\" ${x[1]}", "x=(a b); x[0]=c; d \"${x[@]}\"", "x=(a b); x=c; d \"${x[@]}\" $x", "x=(a 'b c'); d ${x[@]} \"${x[*]}\"", "x=(a b); unset 'x[0]'; d \"${x[@]}\" $x", "x=(a b); unset x; d \"${x[@]}\" $x", "x=(a b); read x <<<q; d \"${x[@]}\"", "x=(); d \"${x[@]}\" e ${x[@]}", "x=(a b); ((x[0]=5)); d \"${x[@]}\"", "x=(1 b); ((x++)); d \"${x[@]}\" $x", "x=(a b); declare \"x[0]=c\"; d \"${x[@]}\"", "x=(a b); declare \"x+=c\"; d \"${x[@]}\"", "x=(a b); declare x+=c; d \"${x[@]}\"", "x=(a b); command declare 'x[1]=c'; d \"${x[@]}\"", "x=(~ a=~ {b,c} b:~); d \"${x[@]}\"", "x=(a b); f() { local x=(q); x+=(r); d \"${x[@]}\"; }; f; d \"${x[@]}\"", "x=(a b) y=(\"${x[@]}\" c); d \"${y[@]}\"", "x=(a b); for z in \"${x[@]}\" ${x[*]}; do d $z; done", "x=(a b); (x=(c); d ${x[@]}); d \"${x[@]}\"", "x=(a b); IFS=a; d ${x[@]} \"${x[*]}\"", "a && x=(b); c \"${x[@]}\"", "x=(a b); c && x=(d); b \"${x[@]}\"", "x=a; x+=(b); c \"${x[@]}\"", "declare -u x; x=(a b); c \"${x[@]}\"", "x=(a b); c ${x[-1]} ${x[9]} ${#x[@]} ${x[1]}", "x=(a b); c \"${x[9]}\" \"${x[-3]}\" $x", "x=(a b); printf -v 'x[0]' q; c ${x[@]}", "x=(*.txt '*'); c ${x[@]} \"${x[@]}\"", "x=([1]=a b); c \"${x[1]}\" \"${x[@]}\"", "export x=(a b); c \"${x[@]}\"", "readonly x=(a b); x=(c); d \"${x[@]}\"", "declare -n y=x; x=(a b); y=(c); d \"${x[@]}\"", "x=(a b); mapfile -t x <x.txt; d \"${x[@]}\"", "x=(a b); x=(\"${x[@]:1}\"); d \"${x[@]}\"", "x=(a b); c x\"${x[@]}\"y \"z${x[@]}\"", "x=('' a ''); c \"${x[@]}\" ${x[@]} \"${x[*]}\"", "x=(a b); eval 'x=(c)'; d \"${x[@]}\"", "x=(a b); c | x=(d); b \"${x[@]}\"", "x=(a b); shift; set -- \"${x[@]}\"; c \"$@\"", "x=(f y); f() { c \"$@\"; }; \"${x[@]}\"", "x=(a $(b) c); d \"${x[@]}\"", "x=(a b); x=() ; d \"${x[@]}\" $x", "x=(a b); c ${x[@]:-q} \"${x[@]}\"", "x=5; ((x++)); c $x", "x=5; let x++; c $x", "x=5; : $((x++)); c $x", "x=5; declare 'x+=1'; c $x",
					"local x=1", "shopt -s nullglob; a q*", "shopt -s extglob\na @(x|y)", "set -o posix", "pushd d; a $PWD; popd", "IFS=x; y=axb; c $y", "declare -n x=y; y=z; a $x", "unset -v x; a $x", "set -f; a *", "shopt -u expand_aliases", "x=a y=$x; b $y", "declare x=a y=$x; b $y", "x+=b; a $x", "let x++", "((x++)); a $x", "declare -i x=2; x+=1; a $x", "declare -u x=a; b $x",
				})
			}
			return g.one([]string{
				"c ${x:-~} \"${x:-~}\"", "c ${x:=~} $x", "c \"${x:=~}\" $x", "x=1; c ${x:+~} ${x+a b} \"${x:+\"c d\"}\"", "c ${x:-$HOME/y} ${x:-'a b'} ${x-\"a b\"}", "x=a; c ${x:=b} ${x:?}", "x=; c ${x:=b} $x ${x-c}", "c ${x:-~/y} ${x:-a:~} ${x:-{a,b}}", "x=1; c ${x:+a*} ${x:+\"*\"}", "c ${x+y} ${y-z}",
				"x=a; b $x", "x=a; (x=b); c $x", "x=a; x=b | c; d $x", "x=a; { x=b; } & c $x", "x=\"a  b\"; c $x \"$x\"", "x=1 a $x; b $x", "x=1 :; a $x", "x=1 eval a '$x'; b $x", "set -- a b; c $1 \"$@\"", "set a b; shift; c $1", "unset x; a $x", "read x; a $x", "cd d; a $PWD", "cd q; a $PWD", "cd q && a $PWD; b $PWD", "(cd d); a $PWD", "cd d | a; b $PWD",
				"x='*'; a $x", "x=-; a ${x}x", "export x=q; a $x", "readonly x=q; x=r; a $x", "f() { x=b; }; x=a; f; c $x", "f() { a $1; shift; b $1; }; f x y", "f() { a; }; unset -f f; f x", "f() { local x=b; a $x; }; x=c; f; d $x", "f() { x=b; local x=d; a $x; }; x=c; f; d $x", "f() { x=q g; }; g() { a $x; x=r; }; x=c; f; d $x", "false && f() { a; }; f x", "(f() { a; }); f x", "f() { a; } >x; f y", "f() { return; a; }; f", "f() ( x=b ); x=a; f; c $x", "x=a; for x in b; do c $x; done; d $x", "for x in a b; do :; done; c $x", "if a; then x=b; else x=c; fi; d $x", "a && x=b; c $x", "a || x=b; c $x", "case a in a) x=b;; esac; c $x", "x=$(echo a b); c $x", "HOME=/q; a ~ $HOME", "PWD=/q; a $PWD", "x=~; a $x", "x=a:~; b $x", "x=\"~\"; a $x", "x={a,b}; c $x", "y=x; eval $y=b; c $x", "trap 'a $x' EXIT; x=b", "trap a EXIT; exit; b", "trap - EXIT", "x=a; trap \"b $x\" EXIT",
				"cd d", "cd d && pwd", "set -e", "set -- " + g.word(), "shift", "unset x", "read x", "wait", ":", "true", "false", "pwd", "umask", "type a", "command -v b", "hash -r", "exit", "return 2>x", "set -f", "unset -f f", "jobs",
			}) +
				g.one([]string{"", "", " >x"})
		}},
	}
}

// without makes a piece in which the function name is not called, because the
// recursion would have no end.
func (g *texts) without(name string, piece func(*texts) string) string {
	for range 20 {
		left, here := g.left, g.here
		if text := piece(g); !strings.Contains(text, name) {
			return text
		}
		g.left, g.here = left, here
	}
	return ":; "
}

// nested is a short script to be quoted.
func (g *texts) nested() string {
	outer := g.here
	g.here = nil
	left := g.left
	g.left = min(g.left, 5)
	text := g.lines()
	g.left, g.here = left-3, outer
	return text
}

func (g *texts) simple() string {
	text := ""
	for g.chance(12) {
		text += g.one(names)
		text += g.one(assignments) + g.value() + g.blank()
	}
	if text != "" && g.chance(15) {
		return strings.TrimRight(text, " \t")
	}
	if g.chance(5) {
		text += g.redirect() + " "
	}
	text += g.program()
	for g.chance(50) {
		text += g.blank()
		if g.chance(15) {
			text += g.redirect()
		} else {
			text += g.word()
		}
	}
	if g.chance(4) {
		text += g.heredoc()
	}
	return text
}

// value is the right side of an assignment.
func (g *texts) value() string {
	if g.chance(15) {
		return ""
	}
	if !g.posix && g.chance(8) {
		return "(" + g.word() + " " + g.word() + ")"
	}
	return g.word()
}

func (g *texts) program() string {
	switch n := g.IntN(100); {
	case n < 72:
		return g.one(programs)
	case n < 88:
		return g.spelled(g.one(programs))
	case n < 91:
		return g.one(odd)
	case n < 93:
		return g.one([]string{"d/a", "./d/a", "d//a", "d/../d/a"})
	case n < 96:
		return g.one(functions)
	case n < 97 && g.chance(30):
		return g.word()
	default:
		return g.one([]string{"echo", "printf", "test", "[", "command", "exec", "builtin", "echo -n"})
	}
}

// spelled is another spelling of the same word.
func (g *texts) spelled(s string) string {
	var b strings.Builder
	for i, c := range s {
		switch g.IntN(9) {
		case 0:
			fmt.Fprintf(&b, "\\%c", c)
		case 1:
			fmt.Fprintf(&b, "'%c'", c)
		case 2:
			fmt.Fprintf(&b, "\"%c\"", c)
		case 3:
			if g.posix || c > '~' {
				fmt.Fprintf(&b, "\"%c\"", c)
			} else {
				fmt.Fprintf(&b, g.one([]string{"$'%c'", "$'\\x%02x'", "$'\\%03o'", "$'\\u%04x'", "$\"%c\""}), c)
			}
		case 4:
			if i > 0 {
				b.WriteString("\\\n")
			}
			b.WriteRune(c)
		case 5:
			b.WriteString(g.one([]string{"''", "\"\"", "\"\\\n\"", "\"\"\"\"", ""}))
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func (g *texts) blank() string {
	switch g.IntN(40) {
	case 0:
		return "\t"
	case 1:
		return "  "
	case 2, 3:
		return " \\\n"
	case 4:
		return "\\\n "
	case 5:
		if g.chance(80) {
			return " "
		}
		return g.one([]string{"\v ", "\f ", "\r ", "\u00a0", "\u2003", "\x01", "\x7f "})
	}
	return " "
}

func (g *texts) space() string { return g.one([]string{"", "", " ", "\t", "\n"}) }

func (g *texts) comment() string {
	return g.one([]string{" # ", "\t#", " #", " #!", "#"}) + g.one([]string{"note", "note", "note", "note", "x y", "x y", "it's", "$x", "'", "a: b", "c, d", "->", "a && b", "#", "\"", "$(a)", "`a`", "a; b", "a \\", "\\", "<<E", "(", ")", "{", "} b", "a & b", "é", "'a\\", "a \\\\"})
}

// word is one word.
func (g *texts) word() string {
	if !g.grow() || g.chance(45) {
		return g.one(looseWords)
	}
	text := g.pick(g.pieces)
	for g.chance(25) {
		text += g.pick(g.pieces)
	}
	return text
}

func parts() []rule {
	return []rule{
		{12, false, func(g *texts) string { return g.one(looseWords) }},
		{8, false, func(g *texts) string { return g.spelled(g.one(looseWords)) }},
		{8, false, func(g *texts) string {
			return "'" + g.one([]string{"", "x y", "$x", "`a`", "$(b)", "\"", "\\", "a;b", "#", "*", "\n", "x\\"}) + "'"
		}},
		{10, false, func(g *texts) string { return "\"" + g.inQuotes() + "\"" }},
		{4, true, func(g *texts) string {
			return "$'" + g.one([]string{"x", "\\'", "\\n", "\\\\", "\\x41", "\\101", "\\u00e9", "\\cA", "\\0", "a\\0b", "\\e", "\"", "\\x", "\\x{41}", "\\\"", "\\?", "\\q", "\\U1F600", "\\c'", "\\c\\\\"}) + "'"
		}},
		{2, true, func(g *texts) string { return "$\"" + g.inQuotes() + "\"" }},
		{8, false, (*texts).parameter},
		{7, false, func(g *texts) string { return "$(" + g.space() + g.inside(")") }},
		{4, false, (*texts).backquotes},
		{3, false, func(g *texts) string { return "$((" + g.arithmetic() + "))" }},
		{1, true, func(g *texts) string { return "$[" + g.arithmetic() + "]" }},
		{3, false, func(g *texts) string { // what it writes is known
			return g.one([]string{"$(echo x y)", "\"$(echo x y)\"", "$(printf %s x)", "$(pwd)", "`echo x`", "\"`printf '%s\\n' 'x y'`\"", "$(echo -n x; echo y)", "$(echo x >q)", "$(echo x >&2)", "$(cd d; pwd)", "$(echo \"$x\")", "$(! echo x)", "$(echo x & )", "$(x=1 echo x)", "$(printf 'x\\ty')", "$(echo 'x\\ty')", "$(echo x | cat)", "$(echo -e x)", "$(false && echo x)"})
		}},
		{1, true, func(g *texts) string {
			return g.one([]string{"@(a|b)", "!(x)", "+([a-z])", "?(x)y", "*(a)"})
		}},
		{3, false, func(g *texts) string {
			return g.one([]string{"*", "?", "[a-z]", "*.txt", "[!x]", "[[:alpha:]]*", "[", "d/*", "[]x]", "[^\\]]"})
		}},
		{3, false, func(g *texts) string {
			return g.one([]string{"{x,y}", "{1..3}", "{a,b}{c,d}", "{x,$x}", "{,x}", "{x", "{}", "{a..c}", "{x,'y z'}", "{\"a\",b}", "{3..1..2}", "{01..03}", "${x},{y}", "{a,b\\,c}", "{a,{b,c}}", "{x\\,y}", "{$(a),b}"})
		}},
		{3, false, func(g *texts) string {
			return g.one([]string{"~", "~/x", "~root", "~+", "~-", "~nobody", "x~", "a=~", "~\"\"", "\\~", "~/'x'", "a:~", "~$x", "~/"})
		}},
		{3, true, func(g *texts) string { return g.one([]string{"<(", ">("}) + g.inside(")") }},
		{2, false, func(g *texts) string {
			return g.one([]string{"\\ ", "\\;", "\\#", "\\$", "\\`", "\\\"", "\\'", "\\\\", "x#y", "\\\n", "\\a", "\\*", "\\n"})
		}},
	}
}

// inQuotes is what stands between double quotes.
func (g *texts) inQuotes() string {
	text := ""
	for g.chance(60) {
		text += g.pick([]rule{
			{6, false, func(g *texts) string {
				return g.one([]string{"x", "x y", "'", "\\\"", "\\\\", "\\$x", "\\`", "\n", "\\\n", "\\q", "#", ";", "*", "~", "{a,b}", "$", "$'", "!", "<("})
			}},
			{3, false, (*texts).parameter},
			{2, false, func(g *texts) string { return "$(" + g.inside(")") }},
			{1, false, (*texts).backquotes},
			{1, false, func(g *texts) string { return "$((" + g.arithmetic() + "))" }},
		})
	}
	return text
}

func (g *texts) backquotes() string {
	inner := g.inside("")
	// Inside, a backslash takes the special meaning from $, ` and \ once more.
	if g.chance(90) {
		inner = strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(inner)
	}
	return "`" + inner + "`"
}

func (g *texts) parameter() string {
	name := g.one([]string{"x", "y", "z", "v", "w", "1", "@", "*", "#", "?", "HOME", "PWD", "nothing"})
	if g.chance(45) {
		return "$" + g.one([]string{name, "{" + name + "}"})
	}
	op := g.one([]string{":-", "-", ":=", "=", ":+", "+", "#", "##", "%", "%%", ":?"})
	if !g.posix && g.chance(35) {
		return g.one([]string{
			"${#" + name + "}", "${!x}", "${!x*}", "${" + name + ":0:1}", "${x/" + g.one(looseWords[:4]) + "/" + g.word() + "}", "${x//a}", "${x^^}", "${x,,}",
			"${x@Q}", "${x@U}", "${x[0]}", "${x[@]}", "${#x[@]}", "${x: -1}", "${x:$((1))}", "${x/#a/b}", "${x/%a/b}",
		})
	}
	inner := g.word()
	if g.chance(30) {
		inner = "\"" + g.inQuotes() + "\""
	}
	if g.chance(20) {
		inner = g.one([]string{"'$(b)'", "'`c`'", "\"'$(b)'\"", "\\'$(b)\\'", "'}'", "\"}\"", "\\}", "$'$(b)'", "'\"$(b)\"'", "\"$(b '}')\"", "'x", "#", "$(b # }\n)", "{", "\\$(b)", "'\\'$(b)''", "<(b)", "~", "(", "a b'$(c)'", "${y:-'$(c)'}", "\"${y-'$(c)'}\""})
	}
	return "${" + name + op + inner + "}"
}

func (g *texts) arithmetic() string {
	text := g.one([]string{"1", "0", "2", "010", "0x1f", "16#f"})
	for g.chance(40) {
		text += g.one([]string{"+", " - ", "*", " < ", "<<", ">", "==", "&&", " || ", "&", "|", "^", ",", "?1:", ">="}) + g.one([]string{"1", "2", "3", "(1)", "!1", "~1", "-1", "$((1))", "${#x}", "$#"})
	}
	if g.chance(4) {
		text = g.one([]string{"x=1", "x+1", "x++", "a[1]", "$(a)", "`b`", "\"1\"", "'1'", "x=$(a)"})
	}
	return g.one([]string{"", " "}) + text + g.one([]string{"", " "})
}

func (g *texts) test() string {
	text := g.one([]string{
		"-f x.txt", "-n " + g.word(), "-z $x", "a == b", "$x = *", "x != y", "a < b", "1 -eq 1", "! -e q", "( a )", "abc =~ b", "abc =~ (a|b)", "a =~ ^[a-z]$", "$x == " + g.pattern(), "-v x", "a", "x =~ \\(",
		"$(" + g.inside(")"), "\"`a`\" = b",
	})
	if g.chance(30) {
		text += g.one([]string{" && ", " || ", "\n&& "}) + g.one([]string{"a", "-d d", "$(b) = c", "! ( a = b )"})
	}
	return text
}

func (g *texts) pattern() string {
	return g.one([]string{"*", "a", "x|y", "[a-z]*", "?", "\"x y\"", "$x", "one | two", "-*", "'*'", "\\*", "$(b)", "esac", "one", "+"})
}

func (g *texts) redirect() string {
	target := g.one([]string{"x", "/dev/null", "y.txt", "\"x y\"", "$nothing/x", "'q'", "x\\ y", "d/z"})
	if g.chance(5) {
		target = g.word()
	}
	op := g.one([]string{">", "<", ">>", ">|", "<>", "2>", "2>>", "1>", "0<", "> ", "2> ", "< "})
	switch g.IntN(10) {
	case 0, 1:
		return g.one([]string{"2>&1", ">&2", "1>&2", "<&0", ">&-", "2>&-", "0<&-", "3>&1", "<&3", ">& 2", "1>&-", "2>& 1"})
	case 2:
		if !g.posix {
			return g.one([]string{"&>" + target, "&>>" + target, ">&" + target, "&> " + target, "2>&1-", "{fd}>" + target, "{fd}>&1", ">&1-", "{x}<" + target})
		}
	case 3:
		if !g.posix {
			return "<<<" + g.one([]string{"", " "}) + g.word()
		}
	case 4:
		if g.chance(80) {
			return g.one([]string{"0>x", "2>|x", "<>x", "1<>x", "5>x"})
		}
		return g.one([]string{"<&-x", ">&-x", "2>&-a", "1>&x", "2>&x", "<&x", "<&-b", "10>x", "2 >x", "12>&1", ">&10"})
	}
	return op + target
}

func (g *texts) heredoc() string {
	body := ""
	for range g.IntN(3) {
		body += g.one([]string{"text", "$x", "$(" + g.inside(")"), "`a`", "\\$(b)", "\\`c`", "'", "\"", "E ", " E", "\tE", "a\\", "\\", "${x:-$(b)}", "$((1))", "#", "\\\\$(a)", "EE", "(", "\tx"}) + "\n"
	}
	word, text := g.document(body)
	g.here = append(g.here, text)
	fd := g.one([]string{"", "", "", "0", "3"})
	return " " + fd + "<<" + word + g.one([]string{"", "", " | b", " && c", "; d", " >x", " 2>&1"})
}

// document gives body to a here-document: what follows << and the lines.
func (g *texts) document(body string) (word, text string) {
	end := g.one([]string{"E", "EOF", "end"})
	text = body
	dash := ""
	if g.chance(25) {
		dash = "-"
		text = strings.ReplaceAll("\t"+body, "\n", "\n\t")
		text = strings.TrimSuffix(text, "\t") + g.one([]string{"", "\t", "\t\t"})
	}
	word = g.one([]string{end, end, "'" + end + "'", "\"" + end + "\"", "\\" + end, end[:1] + "''" + end[1:], end[:1] + "\\\n" + end[1:]})
	if g.chance(20) {
		word = " " + word
	}
	return dash + word, text + end + "\n"
}

func (g *texts) declaration() string {
	name := g.one(names)
	if g.posix {
		return g.one([]string{"export ", "readonly "}) + g.one([]string{name, name + "=" + g.value(), name + "=" + g.value() + " w=" + g.word()})
	}
	return g.one([]string{"export ", "readonly ", "declare ", "typeset ", "declare -r ", "declare -a ", "declare -x ", "export -p ", "declare -A ", "declare -g ", "declare -l ", "local ", "export -n "}) +
		g.one([]string{name, name + "=" + g.value(), name + "=" + g.value() + " w=" + g.word(), name + "+=" + g.word(), name + "[0]=" + g.word(), "$x", "\"" + name + "=$(a)\"", "-- " + name + "=" + g.word()})
}

func (g *texts) wrapper() string {
	inner := g.simple
	if g.chance(10) {
		inner = g.wrapper
	}
	switch g.IntN(4) {
	case 0:
		return g.one([]string{"command ", "command -p ", "command -- ", "exec ", "exec -a x ", "exec -c ", "builtin ", "command command ", "exec -- ", "\\command ", "command -v ", "exec >x ", "builtin command ", "builtin eval "}) + inner()
	case 1:
		return g.one([]string{"sudo ", "sudo -u x ", "sudo -n ", "watch -n 1 ", "doas ", "strace -f ", "strace -o x ", "script -c ", "busybox ", "nsenter -t 1 ", "chroot d "}) + inner()
	}
	return g.one([]string{
		"flock x ", "flock -n x ", "flock q -c ", "flock -x -w 1 y.txt ", "flock -E 3 d/z ", "flock -o x sh -c ", "flock -s x.txt -c'a b' ", "flock --exclusive 'x y' ",
		"ionice -c 3 ", "ionice -c2 -n 7 ", "ionice -t -c3 ", "ionice --class idle ", "ionice -p 1 ", "ionice -c2 -n7 -t ", "ionice ",
		"stdbuf -oL ", "stdbuf -o0 -e L ", "stdbuf --output=L -i0 ", "stdbuf -oL -- ",
		"chrt -o 0 ", "chrt -i 0 ", "chrt --batch 0 ", "chrt -b -R 0 ", "chrt -v -o 0 ", "chrt -m ", "chrt -p ",
		"taskset 3 ", "taskset -c 0 ", "taskset --cpu-list 0,1 ", "taskset -a 1 ", "taskset -p ", "taskset -ac 0 ",
		"setarch x86_64 ", "setarch -R ", "setarch x86_64 -R ", "setarch --verbose x86_64 ", "linux64 ", "linux64 -R ", "linux64 -- ", "setarch -v -R -- ", "setarch linux64 ",
		"choom -n 5 -- ", "choom -n5 ", "choom --adjust 5 ", "choom -n 10 -- ", "uclampset -m 1 ", "uclampset -m1 -M 100 -- ", "uclampset -R ", "uclampset --help ", "choom -p 1 ",
		"env ", "env -i ", "env x=1 ", "env -u x ", "env - ", "env -- ", "env x=1 y= ", "env -C d ", "env -S ", "env -S'b c' ", "env -uHOME ", "env --chdir=d ",
		"env -iS", "env --unset=x ", "env 0=x ", "env a.b=c ",
		"timeout 5 ", "timeout -k 1 5 ", "timeout -s KILL 5s ", "timeout --signal=INT 3 ", "timeout -k1 5 ", "timeout --foreground 4 ", "timeout -v -- 5 ",
		"nice ", "nice -n 5 ", "nice -5 ", "nice -n5 ", "nice --adjustment=3 ", "nice --5 ", "nice -+5 ",
		"nohup ", "nohup -- ", "setsid ", "setsid -w ", "setsid -f ",
		"xargs ", "xargs -n 1 ", "xargs -I{} ", "xargs -0 ", "xargs -I % ", "xargs -r ", "xargs -P2 ", "echo x y | xargs ", "echo x y | xargs -n1 ", "echo x | xargs -I{} ", "echo x | xargs -i ", "echo 'a b' | xargs -L1 ",
	}) + inner()
}

// quoted is one word that decodes to s.
func (g *texts) quoted(s string) string {
	switch n := g.IntN(10); {
	case n < 6:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	case n < 8:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
	case n < 9 && !g.posix:
		return "$'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`).Replace(s) + "'"
	}
	return `"` + strings.NewReplacer(`"`, `\"`).Replace(s) + `"` // what it holds is expanded now
}

// mutated takes a text apart and puts it together otherwise: most of what two
// parsers read differently lies between the constructs of the grammar.
func (g *texts) mutated() string {
	text := g.source()
	for range 1 + g.IntN(3) {
		if text == "" {
			return g.text()
		}
		i := g.IntN(len(text) + 1)
		j := min(len(text), i+g.IntN(6))
		switch g.IntN(7) {
		case 0:
			text = text[:i] + text[j:]
		case 1:
			text = text[:j] + text[i:]
		case 2:
			other := g.source()
			k := g.IntN(len(other) + 1)
			text = text[:i] + other[k:min(len(other), k+g.IntN(20))] + text[j:]
		case 3:
			other := g.source()
			text = text[:i] + other[g.IntN(len(other)+1):]
		default:
			text = text[:i] + g.one(fragments) + text[i:]
		}
	}
	return strings.ReplaceAll(text, "\x00", "")
}

func (g *texts) source() string {
	switch {
	case g.chance(35):
		return g.one(g.corpus)
	case len(g.earlier) > 0:
		return g.one(g.earlier)
	}
	return g.text()
}

var fragments = []string{
	"\\\n", "\\", "\n", " ", "\t", "\r", "\r\n", "\\\r\n", "\v", "\f", "\x01", "\x7f", "\u00a0", "\u0085", "\u2028", "\ufeff", "\xff", "#", " #", "# \\\n", "'", "\"", "`", "\\`", "$", "$'", "$\"", "$(", "$((", "((", "))", ")", "(", "${", "}", "{", " } ", " { ",
	"[[ ", " ]]", "[", "]", "<", ">", "<<", "<<-", "<<<", "<<E\n", "\nE\n", "&", "&&", "|", "||", "|&", "&>", ">&", "<&", ">&-", "<>", ">|", "2>", "1", "3>", "<(", ">(", ";", ";;", ";&", "!", " ! ", "=", "+=", "x=", " x=1 ", "~", "*", "?", "@(", "!(", "+(",
	"%", ",", "..", "-", "--", ":", "@", "^", "if ", "; then ", "; fi", " do ", "; done", " in ", "case x in ", "esac", "for ", "while ", "function ", "time ", "coproc ", "select ", "() ", "() {", "; }", "a", " b ", ";c;", "\na\n", "|d", "$(a)", "`b`", "$x", "\\x41", "é", "alias ", "eval ", "exec ", "let ", "declare ", "export ", "local ", "trap ", "x[", "x[0]=", "{fd}", "$[", "$[1", "${x/", "${x@", "${#", "${!", "\\'", "''", "\"\"",
}
