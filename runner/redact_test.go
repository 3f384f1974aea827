package runner

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// redacted writes text in the given pieces.
func redacted(secrets []profiles.Secret, pieces ...string) (string, int) {
	r := newRedactor(secrets)
	var out bytes.Buffer
	for _, p := range pieces {
		out.Write(r.next([]byte(p)))
	}
	out.Write(r.rest())
	return out.String(), r.count()
}

func TestRedact(t *testing.T) {
	secrets := []profiles.Secret{
		{Name: "A", Value: "hunter2hunter2"},
		{Name: "B", Value: "hunter2hunter2-and-more"},
		{Name: "C", Value: "abcabcab"},
		{Name: "D", Value: "<<abcabcab>>"}, // holds another
	}
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"nothing here\n", "nothing here\n"},
		{"x hunter2hunter2 y", "x [redacted A] y"},
		{"hunter2hunter2-and-more", "[redacted B]"},
		{"hunter2hunter2-and-les", "[redacted A]-and-les"},
		{"hunter2hunter2hunter2hunter2", "[redacted A][redacted A]"},
		{"abcabcab", "[redacted C]"},
		{"abcabcabcabcab", "[redacted C]c[redacted C]"},
		{"<<abcabcab>>", "[redacted D]"},
		{"<<abcabcab>", "<<[redacted C]>"},
		{"hunter2", "[redacted A]"}, // half of it, cut off
		{"hunter", "hunter"},
		{"hunter2hunter", "[redacted A]"},
		{"a\x00hunter2hunter2\xff", "a\x00[redacted A]\xff"},
	} {
		if got, _ := redacted(secrets, tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
		// However it is split, the same.
		for i := range tt.text {
			if got, _ := redacted(secrets, tt.text[:i], tt.text[i:]); got != tt.want {
				t.Errorf("%q + %q: %q, want %q", tt.text[:i], tt.text[i:], got, tt.want)
			}
		}
		if got, _ := redacted(secrets, strings.Split(tt.text, "")...); got != tt.want {
			t.Errorf("%q byte by byte: %q, want %q", tt.text, got, tt.want)
		}
	}
	if newRedactor(nil) != nil {
		t.Error("a redactor of nothing")
	}
}

// No text that is written in any pieces lets a value through, and nothing else
// is changed.
func TestRedactAnyPieces(t *testing.T) {
	secrets := []profiles.Secret{{Name: "A", Value: "aabaabaa"}, {Name: "B", Value: "abaabaaab"}, {Name: "C", Value: "bbbbbbbb"}}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var text strings.Builder
		var pieces []string
		for range rnd.IntN(12) {
			var p strings.Builder
			for range rnd.IntN(9) {
				p.WriteByte("aab"[rnd.IntN(3)])
			}
			pieces = append(pieces, p.String())
			text.WriteString(p.String())
		}
		whole, n := redacted(secrets, text.String())
		split, m := redacted(secrets, pieces...)
		if whole != split || n != m {
			t.Fatalf("%q: %q (%d), %q: %q (%d)", text.String(), whole, n, pieces, split, m)
		}
		for _, s := range secrets {
			if strings.Contains(split, s.Value) {
				t.Fatalf("%q: %q", pieces, split)
			}
		}
	}
}
