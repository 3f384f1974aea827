package policy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DeniedError is a call that must not run.
type DeniedError struct {
	Targets []Target // those that are denied
}

func (e *DeniedError) Error() string { return explainFirst("denied", e.Targets) }

// NeedsApprovalError is a call that may run once a person or an approver
// answers.
type NeedsApprovalError struct {
	Targets []Target // those that ask
}

func (e *NeedsApprovalError) Error() string { return explainFirst("needs approval", e.Targets) }

// Err returns nil for an allowed call, else a *DeniedError or a
// *NeedsApprovalError.
func (d Decision) Err() error {
	switch d.Verdict {
	case Allow:
		return nil
	case Ask:
		return &NeedsApprovalError{d.with(Ask)}
	default:
		return &DeniedError{d.with(Deny)}
	}
}

func (d Decision) with(v Verdict) []Target {
	var list []Target
	for _, t := range d.Targets {
		if t.Verdict == v {
			list = append(list, t)
		}
	}
	return list
}

func explainFirst(what string, list []Target) string {
	if len(list) == 0 {
		return what
	}
	t := list[0]
	why := t.Detail
	if why == "" {
		why = string(t.Reason)
	}
	msg := fmt.Sprintf("%s: %s: %s", what, t.display(), Escape(why))
	if n := len(list) - 1; n > 0 {
		msg += fmt.Sprintf(" (and %d more)", n)
	}
	if advice := t.advice(); advice != "" {
		msg += "; " + advice
	}
	return msg
}

// display is what the target does, in at most 120 bytes of safe text.
func (t Target) display() string {
	s := t.Resource
	if len(t.Argv) > 0 {
		quoted := make([]string, len(t.Argv))
		for i, a := range t.Argv {
			quoted[i] = quoteWord(a)
		}
		s = strings.Join(quoted, " ")
	}
	s = Escape(s)
	if len(s) > 120 {
		cut := 117
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return s
}

// advice is what a person can do about the target.
func (t Target) advice() string {
	switch {
	case t.Stage == StageBreaker:
		return "no mode, rule or answer allows this"
	case t.Stage == StagePlan:
		return "mode plan runs only what is proven read-only"
	case t.Verdict == Deny:
		return byRule("a rule denies it", t.Rule)
	case t.Verdict == Ask && t.Stage == StageDanger:
		return "no rule or mode lifts this question; answer it for this call, or run something narrower"
	case t.Verdict == Ask && t.Stage == StageRule:
		return byRule("a rule asks", t.Rule)
	case t.Verdict == Ask && t.Reason == OutsideRead:
		return "answer it, or make the path readable"
	case t.Verdict == Ask && (t.Action == Tool || t.Action == NetworkTo && t.Resource != unknownHost):
		return "answer it, or add an allow rule: " + Escape(t.Resource)
	case t.Verdict == Ask && t.Action == Exec && t.Grantable && len(suggestion(t.Argv)) < 80 && (&Rule{Verdict: Allow, Pattern: suggestion(t.Argv)}).check() == "":
		return "answer it, or add an allow rule: " + Escape(suggestion(t.Argv))
	case t.Verdict == Ask && t.Stage == StageDefault:
		return "answer it, or run with mode allow"
	default:
		return ""
	}
}

func byRule(what, source string) string {
	if source == "" {
		return what
	}
	return what + ": " + Escape(source)
}

func quoteWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && r != '/' && r != '.' && r != ',' && r != ':' && r != '=' && r != '+' && r != '@' && r != '%' &&
			!unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Escape makes text safe to show: what could move a cursor, hide or reorder
// text is written as an escape, so that a command cannot forge a prompt.
func Escape(s string) string {
	safe := func(r rune) bool {
		return r == ' ' || r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case safe(r):
			b.WriteString(s[i : i+n])
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}
