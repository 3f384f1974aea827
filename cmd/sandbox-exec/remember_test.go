//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A p is remembered for the workspace, where that is offered, and is no yes
// where it is not.
func TestPromptRemembersForTheProject(t *testing.T) {
	ws := workspace(t)
	tm := onTerminal(t, ws, "", "--mode", "ask", "-c", "touch made; touch other")
	tm.expect("touch other\r\n") // the rule
	tm.expect("[y/s/p/N]")
	tm.typeText("p\r")
	if got := tm.ending(); got != 0 {
		t.Fatalf("ended with %d", got)
	}
	if err := os.Remove(filepath.Join(ws, "made")); err != nil {
		t.Fatal(err)
	}
	again := onTerminal(t, ws, "", "--mode", "ask", "--", "touch", "made")
	if got := again.ending(); got != 0 {
		t.Errorf("asked again, ended with %d", got)
	}
	if _, err := os.Stat(filepath.Join(ws, "made")); err != nil {
		t.Error(err)
	}

	danger := onTerminal(t, ws, "", "-c", "rm -rf src")
	danger.expect("[y/N]")
	danger.typeText("p\r")
	if got := danger.ending(); got != exitRefused {
		t.Errorf("danger: ended with %d", got)
	}
	if _, err := os.Stat(filepath.Join(ws, "src")); err != nil {
		t.Error(err)
	}
}

// An approver that does not answer leaves the question to the person.
func TestPromptAfterASilentApprover(t *testing.T) {
	ws := workspace(t)
	tm := onTerminal(t, ws, "", "--mode", "ask", "--approver", "false", "--", "touch", "made")
	tm.expect("[y/s/p/N]")
	tm.typeText("y\r")
	if got := tm.ending(); got != 0 {
		t.Errorf("ended with %d", got)
	}
	if _, err := os.Stat(filepath.Join(ws, "made")); err != nil {
		t.Error(err)
	}
}

// On a terminal trust asks after it has shown what is trusted.
func TestTrustAsks(t *testing.T) {
	for _, tt := range []struct {
		keys string
		want int
	}{{"y\n", 0}, {"n\n", exitFailed}, {"\n", exitFailed}} {
		ws := workspace(t)
		if err := os.WriteFile(filepath.Join(ws, ".sandbox-exec.toml"), []byte("network = \"host\"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		tm := onTerminal(t, ws, "", "trust")
		tm.expect("network = \"host\"")
		tm.expect("[y/N] ")
		if _, err := os.Stat(filepath.Join(filepath.Dir(ws), ".local/state/sandbox-exec/trust")); err == nil {
			t.Error("trusted before the answer")
		}
		tm.typeText(tt.keys)
		if got := tm.ending(); got != tt.want {
			t.Errorf("%q: ended with %d, want %d", tt.keys, got, tt.want)
		}
	}
}
