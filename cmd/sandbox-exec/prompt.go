package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

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
	fmt.Fprint(p.tty, question(r))

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
		switch strings.ToLower(strings.TrimSpace(l.text)) {
		case "y", "yes":
			return runner.Answer{Allow: l.err == nil}, nil
		case "p", "project":
			if slices.Contains(r.Remember, runner.ForProject) {
				return runner.Answer{Allow: l.err == nil, Remember: runner.ForProject}, nil
			}
		}
		return runner.Answer{Reason: "the answer was no"}, nil
	}
}

func question(r runner.Request) string {
	var b strings.Builder
	text := r.Script
	if text == "" {
		words := make([]string, len(r.Args))
		for i, w := range r.Args {
			words[i] = quote(w)
		}
		text = strings.Join(words, " ")
	}
	fmt.Fprintf(&b, "\nsandbox-exec: this command needs an answer. It would run in %s:\n\n", policy.Escape(r.Dir))
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "    %s\n", policy.Escape(strings.TrimSuffix(line, "\n")))
	}
	b.WriteString("\nbecause of\n")
	for _, t := range distinct(r.Decision.Targets) {
		if t.Verdict == policy.Ask {
			fmt.Fprintf(&b, "  - %s: %s\n", display(t), reason(t))
		}
	}
	b.WriteString("\nThe sandbox holds all the same: a yes opens the files named here that exist, for this\n" +
		"run, and nothing else; protected names stay read-only (--unprotect NAME opens them).\n")
	if r.Sandbox.Network == "off" && slices.ContainsFunc(r.Decision.Targets, usesNetwork) {
		b.WriteString("The network stays off, whatever the answer (--net host opens it).\n")
	}
	if !slices.Contains(r.Remember, runner.ForProject) {
		b.WriteString("Run it? [y/N] ")
		return b.String()
	}
	b.WriteString("A p allows this here from now on:\n")
	for _, rule := range r.Rules {
		fmt.Fprintf(&b, "  %s\n", policy.Escape(rule.Pattern))
	}
	b.WriteString("Run it? [y/p/N] ")
	return b.String()
}
