package main

import (
	"strings"
	"unicode/utf8"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

// display is what a target does, as one short line that cannot move a cursor.
func display(t policy.Target) string {
	text := t.Resource
	if len(t.Argv) > 0 {
		words := make([]string, len(t.Argv))
		for i, w := range t.Argv {
			words[i] = quote(w)
		}
		text = strings.Join(words, " ")
	}
	switch {
	case text != "":
	case t.Reason == policy.SyntaxError:
		text = "cannot be parsed"
	default:
		text = string(t.Action)
	}
	return shorten(policy.Escape(text), 200)
}

// reason is why a target was settled as it was.
func reason(t policy.Target) string {
	text := t.Detail
	if text == "" {
		text = string(t.Reason)
	}
	if t.Rule != "" {
		text += " (" + t.Rule + ")"
	}
	return policy.Escape(text)
}

// quote makes a word that a shell reads as one.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_/.,:=+@%~^", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shorten cuts text to at most n bytes and says so.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	cut := n - len("...")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
