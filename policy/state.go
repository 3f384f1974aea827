package policy

// state is what is known about the shell at one point of the script: where it
// is and what its variables hold. It is copied where the shell forks and joined
// where two ways meet.
type state struct {
	// dirs are the directories in which the shell can be. The first is where
	// it is when everything went well. None means unknown.
	dirs []string
	vars *binding // newest first
}

// binding is one assignment. Bindings are never changed, so that states can
// share them.
type binding struct {
	name string // a variable, a positional parameter, or a function as "name()"
	value
	next *binding
}

type valueState uint8

const (
	unbound      valueState = iota // never assigned in this text
	boundUnknown                   // assigned, to something unknown
	boundText                      // assigned to text
	boundNumber                    // assigned to some decimal number
	boundGlob                      // assigned to a name that matches a pattern
	boundFunc                      // a function
)

type value struct {
	state valueState
	text  string
	fixed int  // boundGlob: the beginning that is certain
	rough bool // boundGlob: the rest can hold anything
	fn    *function
}

func (v value) known() bool { return v.state == boundText }

const maxDirs = 4

func (s *state) lookup(name string) value {
	for b := s.vars; b != nil; b = b.next {
		if b.name == name {
			return b.value
		}
		if b.name == "" { // everything before was forgotten
			return value{state: boundUnknown}
		}
	}
	return value{}
}

func (s *state) bind(name string, v value) {
	s.vars = &binding{name, v, s.vars}
}

func (s *state) unknown(name string) { s.bind(name, value{state: boundUnknown}) }

// forget makes every variable, function and the directory unknown.
func (s *state) forget() {
	s.dirs = nil
	s.vars = &binding{next: nil}
}

// fork is the state of a subshell.
func (s *state) fork() state { return *s }

// join is the state after either a or b.
func join(a, b state) state {
	out := state{dirs: joinDirs(a.dirs, b.dirs), vars: a.vars}
	if a.vars == b.vars {
		return out
	}
	old := common(a.vars, b.vars)
	for _, list := range [...]*binding{a.vars, b.vars} {
		for x := list; x != old; x = x.next {
			if x.name == "" {
				out.vars = &binding{next: nil}
				return out
			}
			va, vb := a.lookup(x.name), b.lookup(x.name)
			if va != vb {
				merged := value{state: boundUnknown}
				if numeric(va) && numeric(vb) {
					merged.state = boundNumber
				}
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
	na, nb := length(a), length(b)
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

func length(b *binding) (n int) {
	for ; b != nil; b = b.next {
		n++
	}
	return n
}

func joinDirs(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	out := a
	for _, d := range b {
		if !contains(out, d) {
			if len(out) == maxDirs {
				return nil
			}
			out = append(out[:len(out):len(out)], d)
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
