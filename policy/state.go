package policy

import "mvdan.cc/sh/v3/syntax"

// state is what is known about the shell at one point of the script: where it
// is and what its variables hold. It is copied where the shell forks and joined
// where two ways meet.
type state struct {
	// dirs are the directories in which the shell can be; none means unknown.
	// The first likely ones are those when every cd worked.
	dirs   []string
	likely int
	vars   *binding // newest first
}

// binding is one assignment. Bindings are never changed, so that states can
// share them.
type binding struct {
	name string // a variable, a positional parameter, or a function as "name()"
	value
	next  *binding
	depth int    // bindings below this one
	names uint64 // a bit for each name in the list, to say quickly what is not there
}

type valueState uint8

const (
	unbound      valueState = iota // never assigned in this text
	boundUnknown                   // assigned, to something unknown
	boundText                      // assigned to text
	boundNumber                    // assigned to some decimal number
	boundGlob                      // assigned to a name that matches a pattern
	boundFunc                      // a function
	boundList                      // an array, assigned to texts
)

type value struct {
	state valueState
	text  string
	fixed int  // boundGlob: the beginning that is certain
	rough bool // boundGlob: the rest can hold anything
	fn    *function
	list  *[]string // boundList; boundUnknown: an array that it may be, among others
	maybe [2]string // boundUnknown: texts that it may be, among others
}

// either is a value that is a or b.
func either(a, b value) value {
	out := value{state: boundUnknown}
	if numeric(a) && numeric(b) {
		out.state = boundNumber
		return out
	}
	n := 0
	for _, v := range [...]value{a, b} {
		if v.fn != nil {
			out.fn = v.fn
		}
		if v.list != nil {
			out.list = v.list
		}
		for _, t := range [...]string{v.text, v.maybe[0], v.maybe[1]} {
			if n < len(out.maybe) && t != "" && (v.state == boundText || v.state == boundUnknown) && t != out.maybe[0] {
				out.maybe[n] = t
				n++
			}
		}
	}
	return out
}

// listOf is the value of an array of words.
func listOf(words []word) value {
	list := make([]string, len(words))
	size := 0
	for i, w := range words {
		if !w.literal() || w.process {
			return value{state: boundUnknown}
		}
		list[i] = w.text
		size += len(w.text) + 1
	}
	if size > maxValue {
		return value{state: boundUnknown}
	}
	return value{state: boundList, list: &list}
}

// at is what the array holds at an index, which is nothing where it was not
// assigned.
func (v value) at(i int) value {
	if i < 0 {
		i += len(*v.list)
	}
	if i < 0 || i >= len(*v.list) {
		return value{state: boundText}
	}
	return value{state: boundText, text: (*v.list)[i]}
}

func (v value) known() bool { return v.state == boundText }

const maxDirs = 6

func (s *state) lookup(name string) value {
	if s.vars == nil || s.vars.names&(nameBit(name)|forgotten) == 0 {
		return value{}
	}
	hops := 0
	for b := s.vars; b != nil; b = b.next {
		if b.name == name {
			return b.value
		}
		if hops++; hops > maxHops || b.name == "" { // everything before was forgotten
			return value{state: boundUnknown}
		}
	}
	return value{}
}

// maxHops bounds the search for a variable; beyond, it is unknown.
const maxHops = 1000

const (
	forgotten = 1
	homeBit   = 1 << 63 // for HOME alone, so that it is known for certain when it was never set
)

func nameBit(name string) uint64 {
	if name == "HOME" {
		return homeBit
	}
	h := uint(len(name)) * 7
	for i := range len(name) {
		h = h*31 + uint(name[i])
	}
	return 2 << (h % 62)
}

// maxValue bounds what is known of a variable, in bytes: a=$a$a doubles it.
const maxValue = 4 << 10

func (s *state) bind(name string, v value) {
	if len(v.text) > maxValue {
		v = value{state: boundUnknown}
	}
	b := &binding{name: name, value: v, next: s.vars, depth: s.vars.length(), names: nameBit(name)}
	if s.vars != nil {
		b.names |= s.vars.names
	}
	s.vars = b
}

func (s *state) unknown(name string) { s.bind(name, value{state: boundUnknown}) }

// unsettleSubscript makes unknown what a word assigns to that is not
// NAME=VALUE, such as NAME[0]=VALUE and NAME+=VALUE.
func (s *state) unsettleSubscript(text string) {
	n := 0
	for n < len(text) && syntax.ValidName(text[:n+1]) {
		n++
	}
	if n > 0 {
		s.unsettleName(text[:n])
	}
}

// unsettleElement makes an array unknown of which arithmetic changes an
// element.
func (s *state) unsettleElement(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok && len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Index != nil && p.Param != nil {
			s.unsettleName(p.Param.Value)
		}
	}
}

// forget makes every variable, function and the directory unknown.
func (s *state) forget() {
	s.cwd(nil)
	s.vars = &binding{names: forgotten}
}

// cwd sets where the shell is.
func (s *state) cwd(dirs []string) { s.dirs, s.likely = dirs, len(dirs) }

// fork is the state of a subshell.
func (s *state) fork() state { return *s }

// join is the state after either a or b.
func join(a, b state) state {
	out := state{vars: a.vars}
	out.dirs, out.likely = joinDirs(a, b)
	if a.vars == b.vars {
		return out
	}
	old := common(a.vars, b.vars)
	for _, list := range [...]*binding{a.vars, b.vars} {
		for x := list; x != old; x = x.next {
			if x.name == "" {
				out.vars = &binding{names: forgotten}
				return out
			}
			va, vb := a.lookup(x.name), b.lookup(x.name)
			if va != vb {
				merged := either(va, vb)
				if cur := out.lookup(x.name); cur != merged {
					out.bind(x.name, merged)
				}
			} else if cur := out.lookup(x.name); cur != va {
				out.bind(x.name, va)
			}
		}
	}
	return out
}

func numeric(v value) bool {
	return v.state == boundNumber || v.state == boundText && isNumber(v.text)
}

func isNumber(s string) bool {
	if s == "" || len(s) > 18 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return s[i] == '-' && i == 0 && len(s) > 1 && isNumber(s[1:])
		}
	}
	return true
}

// common returns the newest binding that both lists share.
func common(a, b *binding) *binding {
	na, nb := a.length(), b.length()
	for ; na > nb; na-- {
		a = a.next
	}
	for ; nb > na; nb-- {
		b = b.next
	}
	for a != b {
		a, b = a.next, b.next
	}
	return a
}

func (b *binding) length() int {
	if b == nil {
		return 0
	}
	return b.depth + 1
}

func joinDirs(a, b state) ([]string, int) {
	if len(a.dirs) == 0 || len(b.dirs) == 0 {
		return nil, 0
	}
	if among(b.dirs[:b.likely], a.dirs[:a.likely]) && among(b.dirs, a.dirs) {
		return a.dirs, a.likely
	}
	out := make([]string, 0, maxDirs)
	likely := 0
	for i, list := range [...][]string{a.dirs[:a.likely], b.dirs[:b.likely], a.dirs[a.likely:], b.dirs[b.likely:]} {
		for _, d := range list {
			if !contains(out, d) {
				if len(out) == maxDirs {
					return nil, 0
				}
				out = append(out, d)
			}
		}
		if i == 1 {
			likely = len(out)
		}
	}
	return out, likely
}

func sameStrings(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// among reports whether all of list are in all.
func among(list, all []string) bool {
	for _, s := range list {
		if !contains(all, s) {
			return false
		}
	}
	return true
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
