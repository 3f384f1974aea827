package policy

import "strings"

// options lists the options of one program, as its manual does.
type options struct {
	short string // one-letter options without a value; they may be clustered
	value string // one-letter options with a value, glued or in the next word
	glued string // one-letter options that may have a value, which is then glued
	long  string // "name" without a value, "name=" with one, "name==" with two, "name?" with one only after "="
	words string // whole words that are options in the program's own style, as "-ps"
}

// option is one option as it was found.
type option struct {
	name  string // "-n", "--lines", or the whole word
	value word   // zero without a value
	has   bool   // it has a value
}

// optionScan walks over the words of a command and tells options from
// operands the way getopt_long(3) does, for the options that are listed.
type optionScan struct {
	options
	argv      []word
	first     bool   // stop at the first operand, as wrappers do
	noDash    string // not empty: only these options may have a value in the next word that begins with a dash
	noCluster bool   // every one-letter option is a word of its own
	next      int    // index of the next word
	rest      string
	restWord  word
	ended     bool // "--" was seen
	bad       word // the word that is not understood
	buf       option
}

type scanResult uint8

const (
	scanEnd scanResult = iota
	scanOption
	scanOperand
	scanUnknown // an option that is not listed, or a word that could be one
)

// step returns the next option or operand. The operand is argv[next-1].
func (s *optionScan) step() scanResult {
	if s.rest != "" {
		return s.cluster()
	}
	if s.next >= len(s.argv) {
		return scanEnd
	}
	w := s.argv[s.next]
	s.next++
	if s.ended || !w.mayBeOption() {
		return scanOperand
	}
	if !w.flagKnown() {
		s.bad = w
		return scanUnknown
	}
	t := w.text
	if listed(s.words, t) {
		s.buf = option{name: t}
		return scanOption
	}
	switch {
	case t == "-" || t == "":
		return scanOperand
	case t == "--" && w.literal():
		s.ended = true
		if s.first {
			if s.next >= len(s.argv) {
				return scanEnd
			}
			s.next++
			return scanOperand
		}
		return s.step()
	case strings.HasPrefix(t, "--"):
		return s.longOption(w)
	default:
		s.rest, s.restWord = t[1:], w
		return s.cluster()
	}
}

func (s *optionScan) longOption(w word) scanResult {
	name, value, glued := strings.Cut(w.text[2:], "=")
	if glued && w.fixed < len(name)+3 || !glued && !w.literal() {
		s.bad = w // the name itself is not fixed
		return scanUnknown
	}
	kind, ok := longKind(s.long, name)
	if !ok {
		s.bad = w
		return scanUnknown
	}
	s.buf = option{name: w.text[:2+len(name)]}
	switch {
	case kind == "" && glued:
		s.bad = w
		return scanUnknown
	case kind == "", kind == "?" && !glued:
		return scanOption
	case glued:
		s.buf.value, s.buf.has = w.from(len(w.text)-len(value)), true
		return scanOption
	}
	for range len(kind) {
		if s.next >= len(s.argv) || s.dashValue() {
			s.bad = w
			return scanUnknown
		}
		s.buf.value, s.buf.has = s.argv[s.next], true
		if s.argv[s.next].split {
			s.bad = s.argv[s.next]
			return scanUnknown
		}
		s.next++
	}
	return scanOption
}

func (s *optionScan) cluster() scanResult {
	c := s.rest[:1]
	w := s.restWord
	at := len(w.text) - len(s.rest)
	s.rest = s.rest[1:]
	if at >= w.fixed { // the letter itself is not fixed
		s.bad, s.rest = w, ""
		return scanUnknown
	}
	s.buf = option{name: shortName(c[0])}
	switch {
	case strings.Contains(s.value, c):
		s.buf.has = true
		if s.rest != "" && s.first && w.split {
			s.bad, s.rest = w, "" // it may leave nothing, and the value be the next word
			return scanUnknown
		}
		if s.rest != "" {
			s.buf.value, s.rest = w.from(at+1), ""
			return scanOption
		}
		if s.next >= len(s.argv) || s.argv[s.next].split || s.dashValue() {
			s.bad = w
			return scanUnknown
		}
		s.buf.value = s.argv[s.next]
		s.next++
		return scanOption
	case strings.Contains(s.glued, c):
		if s.rest != "" {
			s.buf.value, s.buf.has, s.rest = w.from(at+1), true, ""
		}
		return scanOption
	case strings.Contains(s.short, c) && !(s.noCluster && s.rest != ""):
		if s.rest == "" && !w.literal() {
			s.bad = w
			return scanUnknown
		}
		return scanOption
	}
	s.bad, s.rest = w, ""
	return scanUnknown
}

// dashValue reports a next word that the program could take for an option
// instead of a value.
func (s *optionScan) dashValue() bool {
	return s.noDash != "" && !listed(s.noDash, s.buf.name) && s.argv[s.next].mayBeOption()
}

var shortNames = func() (t [256]string) {
	for c := range t {
		t[c] = "-" + string(rune(c))
	}
	return t
}()

func shortName(c byte) string { return shortNames[c] }

// listed reports whether word is one of the blank-separated words of list.
func listed(list, word string) bool {
	for i := 0; word != ""; {
		k := strings.Index(list[i:], word)
		if k < 0 {
			return false
		}
		start, end := i+k, i+k+len(word)
		if (start == 0 || list[start-1] == ' ') && (end == len(list) || list[end] == ' ') {
			return true
		}
		i = start + 1
	}
	return false
}

// longKind returns what follows name in a list of long options: "", "=", "=="
// or "?".
func longKind(list, name string) (string, bool) {
	if name == "" || strings.ContainsAny(name, " =?") {
		return "", false
	}
	for i := 0; ; {
		k := strings.Index(list[i:], name)
		if k < 0 {
			return "", false
		}
		start, end := i+k, i+k+len(name)
		stop := end
		for stop < len(list) && (list[stop] == '=' || list[stop] == '?') {
			stop++
		}
		if (start == 0 || list[start-1] == ' ') && (stop == len(list) || list[stop] == ' ') {
			return list[end:stop], true
		}
		i = start + 1
	}
}
