package darwin

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

var (
	errControl = errors.New("has a control character, which a Seatbelt profile cannot hold")
	errUTF8    = errors.New("is no UTF-8, which a Seatbelt profile cannot hold")
	errClean   = errors.New("not an absolute, clean path")
	errLong    = errors.New("longer than macOS takes (1,024 bytes)")
	errTag     = errors.New("a tag is letters, digits, '-' and '_'")
	errNetwork = errors.New("a Seatbelt profile cannot express it")

	errLoopback = errors.New("macOS has no loopback that is a command's own")
	errHosts    = errors.New("macOS cannot hold a command to some hosts")
)

const maxPath = 1024 // PATH_MAX in sys/syslimits.h

// writer writes the text of a profile. It is ASCII throughout: one byte beyond,
// even in a comment, and the profile does not load.
type writer struct {
	text   strings.Builder
	params []Param
	keys   map[string]string
	tag    string
	err    error
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.text, format+"\n", args...)
}

func (w *writer) comment(text string) { w.line("\n; %s", text) }

// message makes the log name this run beside each refusal.
func (w *writer) message() string {
	if w.tag == "" {
		return ""
	}
	return ` (with message "` + w.tag + `")`
}

// path is a string that holds a path.
func (w *writer) path(path string) string {
	if err := checkPath(path); err != nil && w.err == nil {
		w.err = &sandbox.SpecError{Field: "path", Value: path, Err: err, Hint: "rename it, or work elsewhere"}
	}
	if plain(path) {
		return `"` + path + `"`
	}
	return w.param(path)
}

// regex is a string that holds an expression made from path. A raw string, in
// which a backslash is one.
func (w *writer) regex(expression, path string) string {
	if plain(path) {
		return `#"` + expression + `"`
	}
	return w.param(expression)
}

func (w *writer) param(value string) string {
	key, ok := w.keys[value]
	if !ok {
		key = fmt.Sprintf("P%d", len(w.params)+1)
		w.params = append(w.params, Param{Key: key, Value: value})
		if w.keys == nil {
			w.keys = map[string]string{}
		}
		w.keys[value] = key
	}
	return `(param "` + key + `")`
}

// plain says whether text can stand in a string as it is.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// checkPath refuses spellings that a rule would compile with and never match,
// and what could end a string or a line.
func checkPath(path string) error {
	switch {
	case !utf8.ValidString(path):
		return errUTF8
	case strings.ContainsFunc(path, unicode.IsControl) || strings.ContainsAny(path, "\u2028\u2029"):
		return errControl
	case len(path) > maxPath:
		return errLong
	case path == "/":
		return nil
	case path == "" || path[0] != '/' || strings.HasSuffix(path, "/"):
		return errClean
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return errClean
		}
	}
	return nil
}

func checkTag(tag string) error {
	for _, c := range tag {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return &sandbox.SpecError{Field: "tag", Value: tag, Err: errTag}
		}
	}
	return nil
}

// ascii is text for a comment: it cannot end the line.
func ascii(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, text)
}

// note is a comment at the end of a line.
func note(why string) string {
	if why == "" {
		return ""
	}
	return " ; " + why
}

// anyCase is an expression for path and all below it, in which the letters after
// prefix stand for both cases. Regular expressions compare bytes, and the name
// of what is yet to be made is compared as the program spells it.
func anyCase(prefix, path string) string {
	var b strings.Builder
	b.WriteByte('^')
	for i, c := range path {
		lower, upper := unicode.ToLower(c), unicode.ToUpper(c)
		switch {
		case i >= len(prefix) && (lower == 'k' || lower == 's'):
			// The Kelvin sign and the long s fold to these, too. One class for
			// whatever is not ASCII keeps the expression ASCII.
			fmt.Fprintf(&b, "([%c%c]|[^ -~]+)", lower, upper)
		case i >= len(prefix) && lower != upper && c < utf8.RuneSelf:
			fmt.Fprintf(&b, "[%c%c]", lower, upper)
		case i >= len(prefix) && lower != upper: // a class would be one of bytes
			fmt.Fprintf(&b, "(%c|%c)", lower, upper)
		case strings.ContainsRune(`.*+?()[{}|$`, c): // in a class they mean themselves
			fmt.Fprintf(&b, "[%c]", c)
		case strings.ContainsRune(`^\]`, c): // in a class they do not
			b.WriteByte('\\')
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteString("(/|$)")
	return b.String()
}
