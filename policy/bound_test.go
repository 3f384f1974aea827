package policy

import (
	"strings"
	"testing"
)

// A variable that doubles itself sixty times would be larger than any memory.
func TestValuesAreBounded(t *testing.T) {
	text := "a=a; " + strings.Repeat("a=$a$a; ", 60) + "rm -rf $a"
	if d := (&Policy{Mode: ModeAllow}).Decide(text, Scope{Cwd: "/w", Workspace: "/w", Home: "/home/dev"}); d.Verdict != Ask {
		t.Errorf("%v, want ask", d.Verdict)
	}
}
