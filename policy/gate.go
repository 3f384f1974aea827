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

// oddComments finds comments that the parser joins with the next line. The
// shells end a comment at the newline whatever stands before it; the parser
// takes a backslash there for a continuation. It returns the text with those
// backslashes blanked, so that what the shell would run is seen.
func oddComments(text string, lang syntax.LangVariant) (string, bool) {
	if !mayHoldOddComment(text) {
		return text, false
	}
	odd := false
	for range 8 {
		file, _ := syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
		if file == nil {
			break
		}
		at := -1
		syntax.Walk(file, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.Comment); ok && at < 0 {
				if k := strings.IndexByte(c.Text, '\n'); k >= 0 || strings.HasSuffix(c.Text, "\\") {
					at = int(c.Hash.Offset())
				}
			}
			return at < 0
		})
		if at < 0 || at >= len(text) {
			break
		}
		odd = true
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at
		}
		line := []byte(text)
		for k := at + end - 1; k > at && line[k] == '\\'; k-- {
			line[k] = ' '
		}
		if string(line) == text {
			break
		}
		text = string(line)
	}
	return text, odd
}

func mayHoldOddComment(text string) bool {
	for i := 0; ; {
		k := strings.Index(text[i:], "\\\n")
		if k < 0 {
			k = len(text) - i
			return strings.HasSuffix(text, "\\") && strings.Contains(text[strings.LastIndexByte(text, '\n')+1:], "#")
		}
		line := text[strings.LastIndexByte(text[:i+k], '\n')+1 : i+k]
		if strings.Contains(line, "#") {
			return true
		}
		i += k + 2
	}
}
