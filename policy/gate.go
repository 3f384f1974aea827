package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Budgets. They count, so that the same text always gives the same answer.
const (
	maxText    = 64 << 10 // bytes of one script
	maxOpeners = 3000     // opening brackets and backquotes; bounds the parser's recursion
	maxNesting = 500      // nested constructs that are followed
	maxShells  = 8        // scripts inside scripts
	maxSteps   = 40000    // commands and words of one call, loops unrolled
	maxBlanks  = 200      // blanks in a row
)

type finding struct {
	reason Reason
	detail string
	pos    int
}

// gate looks at the raw text before a parser does. Text with a finding is
// never allowed without a question; unparsable says that the parser must not
// see it at all, because its recursion could not be bounded.
func gate(text string) (found []finding, unparsable bool) {
	if len(text) > maxText {
		found = append(found, finding{TooLong, fmt.Sprintf("%d bytes; at most %d are analysed", len(text), maxText), maxText})
		unparsable = true
	}
	openers, blanks, odd := 0, 0, false
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			if !odd && (r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) || invisible(r)) {
				found = append(found, finding{OddCharacter, fmt.Sprintf("%U", r), i})
				odd = true
			}
			blanks = 0
			i += n
			continue
		}
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			if blanks++; blanks == maxBlanks+1 {
				found = append(found, finding{Padding, fmt.Sprintf("more than %d blanks in a row", maxBlanks), i})
			}
		case c < ' ' || c == 0x7f:
			if !odd {
				found = append(found, finding{OddCharacter, fmt.Sprintf("%U", rune(c)), i})
				odd = true
			}
			blanks = 0
		default:
			if c == '(' || c == '{' || c == '[' || c == '`' {
				openers++
			}
			blanks = 0
		}
		i++
	}
	if openers > maxOpeners {
		found = append(found, finding{TooDeep, fmt.Sprintf("%d opening brackets; at most %d are analysed", openers, maxOpeners), 0})
		unparsable = true
	}
	return found, unparsable
}

// invisible reports graphic characters that show nothing: fillers and the
// blank braille pattern.
func invisible(r rune) bool {
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0:
		return true
	}
	return r >= 0xe0100 && r <= 0xe01ef
}

// oddComments finds comments that are none, or not all of what the parser takes
// for one. The shells end a comment at the newline whatever stands before it;
// the parser takes a backslash there for a continuation. And they begin one only
// at the start of a word; the parser also behind an expansion. It returns the
// text with what misleads the parser blanked, so that what the shell would run
// is seen.
func oddComments(text string, lang syntax.LangVariant) (string, bool) {
	if !mayHoldOddComment(text) {
		return text, false
	}
	return withoutOddComments(text, lang)
}

func withoutOddComments(text string, lang syntax.LangVariant) (string, bool) {
	odd := false
	parser := syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true))
	for range 8 {
		file, _ := parser.Parse(strings.NewReader(text), "")
		if file == nil {
			break
		}
		line := []byte(text)
		changed := false
		syntax.Walk(file, func(n syntax.Node) bool {
			c, ok := n.(*syntax.Comment)
			if !ok {
				return true
			}
			at := int(c.Hash.Offset())
			if at >= len(line) || line[at] != '#' {
				return true
			}
			if at > 0 && strings.IndexByte(" \t\n;|&(<>", text[at-1]) < 0 {
				line[at] = '_'
				changed = true
				return true
			}
			end := strings.IndexByte(text[at:], '\n')
			if end < 0 {
				end = len(text) - at
			}
			for k := at + end - 1; k > at && line[k] == '\\'; k-- {
				line[k] = ' '
				changed = true
			}
			return true
		})
		if !changed {
			break
		}
		odd = true
		text = string(line)
	}
	return text, odd
}

func mayHoldOddComment(text string) bool {
	for i := 0; ; {
		k := strings.IndexByte(text[i:], '#')
		if k < 0 {
			return false
		}
		i += k
		if i > 0 && strings.IndexByte(" \t\n;|&(", text[i-1]) < 0 && text[i-1] != '$' && text[i-1] != '{' {
			return true
		}
		end := strings.IndexByte(text[i:], '\n')
		if end < 0 {
			end = len(text) - i
		}
		if text[i+end-1] == '\\' {
			return true
		}
		i++
	}
}
