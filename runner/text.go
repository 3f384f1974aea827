package runner

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

const (
	// MaxText is how much output a Result's Text holds, in characters.
	MaxText = 50_000
	// MaxTextLines is the same in lines.
	MaxTextLines = 2_000
	// maxNotice is how much of a notice is in it, in characters: some tell what a
	// command chose.
	maxNotice = 1_000
)

// Text is what a model is told of the run: the end of the output, as text
// without the control of a terminal; where there was more, a line that says so
// and names the file; and, unless the command just succeeded, how it ended and
// what to do about that.
//
// Only captured output is in it. It is valid UTF-8 and bounded: MaxText and
// MaxTextLines, and a few lines.
func (r *Result) Text() string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, strings.TrimSuffix(text, "\n"))
		}
	}
	stdout, stderr := r.Output.Stdout, r.Output.Stderr
	out, errs := readable(stdout), readable(stderr)
	// Each stream has half, and what the other leaves of its own.
	outSize, errSize := measure(out), measure(errs)
	out, outCut := lastOf(out, size{MaxText, MaxTextLines}.without(errSize.atMost(size{MaxText / 2, MaxTextLines / 2})))
	errs, errCut := lastOf(errs, size{MaxText, MaxTextLines}.without(outSize.atMost(size{MaxText / 2, MaxTextLines / 2})))
	add(cutNote("output", stdout, outCut))
	add(out)
	if errs != "" {
		add("[stderr]")
		add(cutNote("error output", stderr, errCut))
		add(errs)
	}
	if out == "" && errs == "" {
		add("[no output]")
	}
	if ending := r.Ending(); ending != "" {
		add("[" + ending + "]")
	}
	for _, n := range r.Notices {
		text := policy.Escape(n.Text)
		if runes := []rune(text); len(runes) > maxNotice {
			text = string(runes[:maxNotice]) + "…"
		}
		add("[notice: " + text + "]")
	}
	return strings.Join(parts, "\n") + "\n"
}

// Ending says in words how the command ended and what to do about it; "" after
// exit status 0.
func (r *Result) Ending() string {
	how := ""
	switch {
	case r.Signal != 0:
		how = "killed by signal " + fmt.Sprint(int(r.Signal)) + ", " + r.Signal.String()
	case r.ExitCode > 0:
		how = "exit status " + fmt.Sprint(r.ExitCode)
	}
	why := ""
	switch r.Cause {
	case TimedOut:
		why = "timed out"
		if r.Timeout > 0 {
			why += " after " + seconds(r.Timeout)
		}
		why += "; what is to take longer needs a longer time-out or runs in the background"
	case Cancelled:
		why = "cancelled by the program that ran it"
	case CancelledByUser:
		why = "cancelled by the user; do not retry by yourself, ask what they want"
	case OutputLimit:
		why = "it wrote too much"
		if r.OutputLimit > 0 {
			why = "it wrote more than " + bytesText(r.OutputLimit)
		}
		why += "; let it write less, or to a file"
	case OOM:
		why = "it used more memory than it may"
		if r.Usage.MemoryLimit > 0 {
			why += " (" + bytesText(r.Usage.MemoryLimit) + ")"
		}
	case PIDsLimit:
		why = "it started more processes and threads than it may"
		if r.Usage.PIDsLimit > 0 {
			why += fmt.Sprintf(" (%d)", r.Usage.PIDsLimit)
		}
	case HelperLost:
		why = "the helper that confines the command was killed; how the command ended is unknown"
	}
	switch {
	case why == "":
		return how
	case how == "":
		return why
	}
	return why + "; " + how
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	return fmt.Sprintf("%.4g s", d.Seconds())
}

// bytesText writes a number of bytes for people.
func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// cutNote is the line in front of output of which only the end is shown.
func cutNote(what string, s Stream, cut bool) string {
	if !cut && !s.Truncated() || s.Binary() {
		return ""
	}
	note := fmt.Sprintf("[only the end of the %s is shown; all %d lines (%s) ", what, s.Lines, bytesText(s.Bytes))
	if s.File == "" {
		return note + "are not kept]"
	}
	return note + "are in " + s.File + "]"
}

// Text is the end of the stream as it can stand in JSON: valid UTF-8, what is
// not is U+FFFD, and no character is cut at the front.
func (s Stream) Text() string {
	return strings.ToValidUTF8(string(s.whole()), "\uFFFD")
}

// whole is the tail without the rest of a character at its front.
func (s Stream) whole() []byte {
	tail := s.Tail
	if !s.Truncated() {
		return tail
	}
	for i := range min(utf8.UTFMax, len(tail)) {
		if utf8.RuneStart(tail[i]) {
			return tail[i:]
		}
	}
	return tail
}

// Binary says whether the tail is no text: it holds a NUL byte, or a tenth of
// it or more is no UTF-8.
func (s Stream) Binary() bool {
	tail := s.whole()
	if bytes.IndexByte(tail, 0) >= 0 {
		return true
	}
	bad := 0
	for rest := tail; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		rest = rest[n:]
	}
	return bad > 0 && bad*10 >= len(tail)
}

// readable is the tail as a person would have seen it in the end: of a line
// that was written over (CR) what was written last, no escape sequences, no
// other control characters.
func readable(s Stream) string {
	if s.Binary() {
		where := "it is not kept"
		switch {
		case s.File != "":
			where = "it is in " + s.File
		case !s.Truncated():
			where = "not shown"
		}
		return fmt.Sprintf("[binary output, %s; %s]\n", bytesText(s.Bytes), where)
	}
	text := s.Text()
	if strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		line, newline := strings.CutSuffix(line, "\n")
		line = strings.TrimRight(line, "\r")
		if i := strings.LastIndexByte(line, '\r'); i >= 0 {
			line = line[i+1:]
		}
		plain(&b, line)
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// plain writes line without escape sequences (ECMA-48) and controls.
func plain(b *strings.Builder, line string) {
	for i := 0; i < len(line); {
		c := line[i]
		switch {
		case c == 0x1b:
			i += escape(line[i:])
			continue
		case c == 0xc2 && i+1 < len(line) && line[i+1] < 0xa0: // U+0080 to U+009F, of which one is ESC [
			i += 2
			continue
		case c >= ' ' && c != 0x7f || c == '\t':
			b.WriteByte(c)
		}
		i++
	}
}

// escape returns the length of the escape sequence that text begins with.
func escape(text string) int {
	if len(text) < 2 {
		return len(text)
	}
	switch text[1] {
	case '[': // control sequence: parameters, intermediates, a final byte
		for i := 2; i < len(text); i++ {
			if c := text[i]; c >= 0x40 && c <= 0x7e {
				return i + 1
			} else if c < 0x20 || c > 0x3f {
				return i
			}
		}
		return len(text)
	case ']', 'P', 'X', '^', '_': // a string up to BEL or ESC \
		for i := 2; i < len(text); i++ {
			if text[i] == 0x07 {
				return i + 1
			}
			if strings.HasPrefix(text[i:], "\x1b\\") {
				return i + 2
			}
			if text[i] == 0x1b { // another sequence
				return i
			}
		}
		return len(text)
	}
	i := 1
	for i < len(text) && text[i] >= 0x20 && text[i] <= 0x2f {
		i++
	}
	if i < len(text) && text[i] < 0x7f {
		i++
	}
	return i
}

// size is how long a text is.
type size struct{ characters, lines int }

func measure(text string) size {
	n := size{utf8.RuneCountInString(text), strings.Count(text, "\n")}
	if text != "" && !strings.HasSuffix(text, "\n") {
		n.lines++
	}
	return n
}

func (s size) atMost(t size) size {
	return size{min(s.characters, t.characters), min(s.lines, t.lines)}
}

func (s size) without(t size) size { return size{s.characters - t.characters, s.lines - t.lines} }

// lastOf returns the end of text that is at most so long, and whether that is
// less than all. It begins with a line where one begins soon.
func lastOf(text string, most size) (end string, cut bool) {
	if n := measure(text); n.characters <= most.characters && n.lines <= most.lines {
		return text, false
	}
	from, lines := len(text), 0
	for range most.characters {
		r, n := utf8.DecodeLastRuneInString(text[:from])
		if n == 0 {
			break
		}
		if r == '\n' && from < len(text) {
			if lines++; lines >= most.lines {
				return text[from:], true
			}
		}
		from -= n
	}
	end = text[from:]
	if i := strings.IndexByte(end, '\n'); i >= 0 && i < len(end)/10 && from > 0 && text[from-1] != '\n' {
		end = end[i+1:]
	}
	return end, true
}
