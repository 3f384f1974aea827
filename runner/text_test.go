package runner

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// captured is the stream of a program that writes text.
func captured(text string) Stream {
	k := &capture{}
	for len(text) > 0 {
		n := min(len(text), 64<<10)
		k.Write([]byte(text[:n]))
		text = text[n:]
	}
	k.end()
	return k.stream()
}

func TestReadable(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"plain\n", "plain\n"},
		{"no newline", "no newline"},
		{"tab\tand ünïcödé 漢字\n", "tab\tand ünïcödé 漢字\n"},
		{"dos\r\nlines\r\n", "dos\nlines\n"},
		{" 1%\r 50%\r100%\ndone\n", "100%\ndone\n"},
		{"working\r", "working"},
		{"\x1b[31mred\x1b[0m \x1b[1;38;5;200mbold\x1b[m\n", "red bold\n"},
		{"\x1b]0;title\x07text \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "text link\n"},
		{"\x1b(Bcharset\x1b7\x1b8\x1bM\n", "charset\n"},
		{"bell\x07 back\x08space\x7f\n", "bell backspace\n"},
		{"\x1b", ""},
		{"\x1b[", ""},
		{"\x1b[12;", ""},
		{"\x1b]never ends", ""},
		{"\x1b]ends by another\x1bü\n", "ü\n"},
		{"one byte: \u009b31mred\u0085\n", "one byte: 31mred\n"},
		{"\x1b[3\nnext\n", "\nnext\n"},
		{"one bad byte \xff in many good ones\n", "one bad byte \uFFFD in many good ones\n"},
		{"a\x00b", "[binary output, 3 bytes; not shown]\n"},
		{"\xff\xfe\xfd\xfc", "[binary output, 4 bytes; not shown]\n"},
	} {
		if got := readable(captured(tt.in)); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, "line", i)
		}
		return b.String()
	}
	for name, out := range map[string]Output{
		"nothing":                {},
		"many lines":             {Stdout: captured(numbers(5000))},
		"many lines in both":     {Stdout: captured(numbers(5000)), Stderr: captured(numbers(5000))},
		"one line":               {Stdout: captured(strings.Repeat("x", 1<<20))},
		"one line of umlauts":    {Stdout: captured("x" + strings.Repeat("ü", 1<<19))},
		"one line of 4 bytes":    {Stdout: captured("x" + strings.Repeat("𝄞", 1<<18))},
		"empty lines":            {Stdout: captured(strings.Repeat("\n", 10_000))},
		"binary":                 {Stdout: captured(strings.Repeat("\x00\xff", 1<<20))},
		"invalid":                {Stdout: captured(strings.Repeat("good text and \xff", 1<<15))},
		"a little and a lot":     {Stdout: captured("small\n"), Stderr: captured(numbers(5000))},
		"a progress bar":         {Stdout: captured(strings.Repeat(" 42%\r", 1<<18))},
		"escapes":                {Stdout: captured(strings.Repeat("\x1b[31mx", 1<<18))},
		"exactly the most":       {Stdout: captured(strings.Repeat("x", MaxText))},
		"exactly the most lines": {Stdout: captured(strings.Repeat("x\n", MaxTextLines))},
	} {
		r := Result{Cause: Exited, Output: out, Notices: []Notice{{Text: strings.Repeat("a name that a command chose\n", 1<<12)}}}
		text := r.Text()
		if !utf8.ValidString(text) {
			t.Errorf("%s: not UTF-8", name)
		}
		const notes = 10
		if n := measure(text); n.characters > MaxText+maxNotice+1000 || n.lines > MaxTextLines+notes {
			t.Errorf("%s: %+v", name, n)
		}
		if strings.Count(text, "\uFFFD") > 0 && name != "invalid" {
			t.Errorf("%s: a character was cut", name)
		}
		whole := strings.HasPrefix(name, "exactly") || name == "nothing" || name == "binary"
		if cut := strings.Contains(text, "[only the end of the "); cut == whole {
			t.Errorf("%s: %.300q", name, text)
		}
	}

	// The end is what is kept, from the beginning of a line on, and all that
	// there was is told.
	r := Result{Output: Output{Stdout: captured(numbers(5000))}}
	text := r.Text()
	if !strings.HasSuffix(text, "line 4998\nline 4999\n") || !strings.Contains(text, "all 5000 lines (47.74 KiB) are not kept]\nline 3000\n") {
		t.Errorf("%.200q ... %q", text, text[len(text)-100:])
	}
	r.Output = Output{Stdout: captured("small\n"), Stderr: captured(numbers(5000))}
	text = r.Text()
	if !strings.HasPrefix(text, "small\n[stderr]\n[only the end of the error output is shown; all 5000 lines") || !strings.Contains(text, "\nline 3001\n") {
		t.Errorf("%.300q", text)
	}
}

func TestEnding(t *testing.T) {
	for _, tt := range []struct {
		r    Result
		want string
	}{
		{Result{Cause: Exited}, ""},
		{Result{Cause: Exited, ExitCode: 3}, "exit status 3"},
		{Result{Cause: Signalled, ExitCode: -1, Signal: syscall.SIGSEGV}, "killed by signal 11, segmentation fault"},
		{Result{Cause: TimedOut, ExitCode: -1, Timeout: 90 * time.Second}, "timed out after 90 s; what is to take longer needs a longer time-out or runs in the background"},
		{Result{Cause: Cancelled, ExitCode: 3}, "cancelled by the program that ran it; exit status 3"},
		{Result{Cause: CancelledByUser, ExitCode: -1}, "cancelled by the user; do not retry by yourself, ask what they want"},
		{Result{Cause: OutputLimit, OutputLimit: 16 << 20}, "it wrote more than 16 MiB; let it write less, or to a file"},
		{Result{Cause: OOM, ExitCode: 137, Usage: sandbox.Usage{MemoryLimit: 1536 << 20}}, "it used more memory than it may (1.5 GiB); exit status 137"},
		{Result{Cause: PIDsLimit, ExitCode: 1}, "it started more processes and threads than it may; exit status 1"},
		{Result{Cause: HelperLost, ExitCode: -1}, "the helper that confines the command was killed; how the command ended is unknown"},
	} {
		if got := tt.r.Ending(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.r.Cause, got, tt.want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "text\n", "\x1b[31m\r\x00\xff", "\x1b]\x1b\\", "\x1b]\x1bü\u009b", strings.Repeat("ü\n", 3000)} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, stdout, stderr string) {
		r := Result{Output: Output{Stdout: captured(stdout), Stderr: captured(stderr)}, Notices: []Notice{{Text: stdout[:min(len(stdout), 100)]}}}
		text := r.Text()
		if !utf8.ValidString(text) {
			t.Errorf("%q", text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("%q", text[i:])
		}
		if n := measure(text); n.characters > MaxText+1000 || n.lines > MaxTextLines+10 {
			t.Errorf("%+v", n)
		}
	})
}
