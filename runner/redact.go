package runner

import (
	"bytes"
	"sync/atomic"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// redactor replaces the values of variables in a stream. A value is found
// however it is split over writes; one that is encoded is not.
type redactor struct {
	secrets []profiles.Secret
	held    []byte // the end of what was written, which may begin a value
	found   atomic.Int64
}

// newRedactor returns nil where there is nothing to redact.
func newRedactor(secrets []profiles.Secret) *redactor {
	if len(secrets) == 0 {
		return nil
	}
	return &redactor{secrets: secrets}
}

func (r *redactor) count() int { return int(r.found.Load()) }

// next returns what can be passed on after p was written.
func (r *redactor) next(p []byte) []byte {
	text := p
	if len(r.held) > 0 {
		text = append(r.held, p...)
	}
	out, left := r.replace(text, true)
	r.held = bytes.Clone(left)
	return out
}

// rest returns what was held back, at the end of the stream. A value that a cut
// has left at least half of is replaced too.
func (r *redactor) rest() []byte {
	out, left := r.replace(r.held, false)
	r.held = nil
	at, name := r.beginning(left, 2)
	out = append(out, left[:at]...)
	if at < len(left) {
		out = append(out, r.mark(name)...)
	}
	return out
}

func (r *redactor) mark(name string) string {
	r.found.Add(1)
	return "[redacted " + name + "]"
}

// replace goes through text from the left; of several values that begin at one
// place the longest counts. It returns what is done, and what is left: with
// more to come, from where a value may begin that is not whole, else what
// follows the last value.
func (r *redactor) replace(text []byte, more bool) (done, left []byte) {
	begin := len(text) // of what may become a value
	if more {
		begin, _ = r.beginning(text, 0)
	}
	next := make([]int, len(r.secrets)) // where each stands next; len(text) = nowhere
	for i := range next {
		next[i] = -1
	}
	var out []byte
	from := 0
	for {
		first, length := -1, 0
		for i, s := range r.secrets {
			if next[i] < from {
				next[i] = len(text)
				if at := bytes.Index(text[from:], []byte(s.Value)); at >= 0 {
					next[i] = from + at
				}
			}
			if at := next[i]; at < len(text) && (first < 0 || at < next[first] || at == next[first] && len(s.Value) > length) {
				first, length = i, len(s.Value)
			}
		}
		if begin < from {
			at, _ := r.beginning(text[from:], 0)
			begin = from + at
		}
		if first < 0 || more && begin <= next[first] {
			break
		}
		out = append(out, text[from:next[first]]...)
		out = append(out, r.mark(r.secrets[first].Name)...)
		from = next[first] + length
	}
	if !more {
		return out, text[from:]
	}
	if out == nil {
		return text[:begin], text[begin:] // no copy where nothing was found
	}
	return append(out, text[from:begin]...), text[begin:]
}

// beginning finds the longest end of text that is the beginning of a value and
// not all of it, but at least one part in share of it (0 = any): where, and
// whose. It is len(text) if there is none.
func (r *redactor) beginning(text []byte, share int) (at int, name string) {
	at = len(text)
	for _, s := range r.secrets {
		least := 1
		if share > 0 {
			least = (len(s.Value) + share - 1) / share
		}
		for n := min(len(s.Value)-1, len(text)); n >= least && len(text)-n < at; n-- {
			if s.Value[:n] == string(text[len(text)-n:]) {
				at, name = len(text)-n, s.Name
			}
		}
	}
	return at, name
}
