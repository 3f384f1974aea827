package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
)

// prompt asks the person at the terminal.
type prompt struct{ tty *os.File }

// openPrompt returns nil where nobody is there to be asked. A terminal that is
// only the session's is not enough: when our messages go elsewhere, it belongs
// to the program that started us.
func (e *env) openPrompt(p *profiles.Profile) *prompt {
	switch {
	case p.Ask != "prompt":
		return nil
	case e.terminal != nil: // the starter has looked
		return &prompt{e.terminal}
	case !isTerminal(e.stderr):
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return &prompt{tty}
}

func (p *prompt) Close() error { return p.tty.Close() }

// Approve shows the whole command and every part that needs an answer. All but
// a clear yes is a no.
func (p *prompt) Approve(ctx context.Context, r runner.Request) (runner.Answer, error) {
	dropTyped(p.tty)
	fmt.Fprint(p.tty, question(r, columns(p.tty)))

	type line struct {
		text string
		err  error
	}
	ch := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(p.tty).ReadString('\n')
		ch <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return runner.Answer{}, ctx.Err()
	case l := <-ch:
		if l.err != nil { // also of a line that is not complete
			return runner.Answer{Reason: "the terminal was closed"}, nil
		}
		return answerOf(l.text, r.Remember), nil
	}
}

// answerOf reads what a person typed.
func answerOf(text string, offered []runner.Choice) runner.Answer {
	word := strings.ToLower(strings.TrimSpace(text))
	remember := runner.Choice("")
	switch word {
	case "y", "yes":
		return runner.Answer{Allow: true}
	case "s", "session":
		remember = runner.ForSession
	case "p", "project":
		remember = runner.ForProject
	}
	if slices.Contains(offered, remember) {
		return runner.Answer{Allow: true, Remember: remember}
	}
	if word, why, found := strings.Cut(strings.TrimSpace(text), " "); found && strings.EqualFold(word, "n") {
		return runner.Answer{Reason: "the answer was no: " + why}
	}
	return runner.Answer{Reason: "the answer was no"}
}

// question is the text of a prompt on a terminal of this width.
func question(r runner.Request, width int) string {
	var b strings.Builder
	text := r.Script
	if text == "" {
		words := make([]string, len(r.Args))
		for i, w := range r.Args {
			words[i] = quote(w)
		}
		text = strings.Join(words, " ")
	}
	asked := distinct(slices.DeleteFunc(slices.Clone(r.Decision.Targets), func(t policy.Target) bool { return t.Verdict != policy.Ask }))
	fmt.Fprintf(&b, "\nsandbox-exec: this command needs an answer. It would run in %s:\n\n", policy.Escape(r.Dir))
	marks := asked
	if r.Script == "" {
		marks = nil // their places are those in another text
	}
	for _, line := range laidOut(text, marks, max(width-len(indent), 20)) {
		fmt.Fprintf(&b, "%s%s\n", indent, line)
	}
	b.WriteString("\nbecause of\n")
	for _, t := range asked {
		fmt.Fprintf(&b, "  - %s: %s\n", display(t), reason(t))
	}

	fmt.Fprintf(&b, "\nWhatever the answer, the sandbox holds: the workspace %s is %s, the network is %s,\nprotected names are read-only (--unprotect NAME opens them).\n",
		policy.Escape(r.Workspace), r.Sandbox.Workspace, network(r.Sandbox.Network))
	if r.Sandbox.Network == "off" && slices.ContainsFunc(r.Decision.Targets, usesNetwork) {
		b.WriteString("The network stays off, whatever the answer (--allow-host NAME or --net host opens it).\n")
	}
	for _, path := range r.Sandbox.Read {
		fmt.Fprintf(&b, "A yes lets this run read %s\n", policy.Escape(path))
	}
	for _, path := range r.Sandbox.Write {
		fmt.Fprintf(&b, "A yes lets this run write %s\n", policy.Escape(path))
	}

	keys := "y"
	b.WriteString("\n  y  yes, once\n")
	for _, choice := range []struct {
		runner.Choice
		key, text string
	}{
		{runner.ForSession, "s", "yes, and in this session without a question"},
		{runner.ForProject, "p", "yes, and always in this project without a question"},
	} {
		if slices.Contains(r.Remember, choice.Choice) {
			keys += "/" + choice.key
			fmt.Fprintf(&b, "  %s  %s:%s\n", choice.key, choice.text, patterns(r.Rules))
		}
	}
	fmt.Fprintf(&b, "  n  no; what follows the n is told as the reason\nRun it? [%s/N] ", keys)
	return b.String()
}

const indent = "    "

// network is what a profile's word for the network means.
func network(word string) string {
	switch word {
	case "localhost":
		return "off, but for its own localhost"
	case "allow":
		return "open to the hosts that rules name"
	case "host":
		return "all that of this machine"
	}
	return word
}

func patterns(rules []policy.Rule) string {
	var b strings.Builder
	for _, rule := range rules {
		action := ""
		if rule.Action != "" && rule.Action != policy.Exec {
			action = string(rule.Action) + " "
		}
		fmt.Fprintf(&b, "\n       %s%s", action, policy.Escape(rule.Pattern))
	}
	return b.String()
}

// laidOut is a text in lines of at most width columns, all of it, and below
// each line what marks the spans of targets in it. The reason stands where a
// span ends.
func laidOut(text string, targets []policy.Target, width int) (out []string) {
	type mark struct {
		span    [2]int
		reasons []string
	}
	var marks []mark
	for _, t := range targets {
		if t.Span[1] > len(text) || t.Span[0] >= t.Span[1] {
			continue
		}
		i := slices.IndexFunc(marks, func(m mark) bool { return m.span == t.Span })
		if i < 0 {
			i = len(marks)
			marks = append(marks, mark{span: t.Span})
		}
		if r := reason(t); !slices.Contains(marks[i].reasons, r) {
			marks[i].reasons = append(marks[i].reasons, r)
		}
	}

	start := 0 // of the line
	var line strings.Builder
	cols := 0
	type cell struct{ at, col, width int }
	var cells []cell
	flush := func(end int) {
		out = append(out, line.String())
		for _, m := range marks {
			var under strings.Builder
			drawn := 0
			for _, c := range cells {
				if c.at >= m.span[0] && c.at < m.span[1] {
					under.WriteString(strings.Repeat(" ", c.col-drawn) + strings.Repeat("~", c.width))
					drawn = c.col + c.width
				}
			}
			if drawn == 0 {
				continue
			}
			if m.span[1] <= end {
				under.WriteString(" " + strings.Join(m.reasons, "; "))
			}
			out = append(out, under.String())
		}
		line.Reset()
		cells, cols, start = nil, 0, end
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == '\n' {
			flush(i + 1)
			i++
			continue
		}
		shown := policy.Escape(text[i : i+n])
		w := columnsOf(shown)
		if cols+w > width {
			flush(i)
		}
		cells = append(cells, cell{i, cols, w})
		line.WriteString(shown)
		cols += w
		i += n
	}
	if start < len(text) || len(text) == 0 {
		flush(len(text))
	}
	return out
}

// columnsOf is how wide a terminal shows a text that is escaped.
func columnsOf(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case unicode.Is(wide, r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide are the characters that take two columns (Unicode, EastAsianWidth.txt, W
// and F, in the large).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x2e80, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}
