package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

func TestStarts(t *testing.T) {
	for _, tt := range []struct {
		command string
		want    bool
	}{
		{"git remote add x y", true},
		{"/usr/bin/git --no-pager remote add x y", true},
		{"gitx remote add", false},
		{"git remote", false},
		{"git log remote add", false},
		{"git push --set-upstream=origin x", true},
		{"git lfs -q install", true},
	} {
		if got := starts(strings.Fields(tt.command), configWriters); got != tt.want {
			t.Errorf("%s: got %v", tt.command, got)
		}
	}
	if starts(nil, configWriters) {
		t.Error("nothing starts something")
	}
}

func TestWritesGitConfig(t *testing.T) {
	for _, tt := range []struct {
		command string
		want    bool
	}{
		{"git config a.b c", true},
		{"git config --global a.b c", false},
		{"git config --file=x a.b c", false},
		{"git config a.b", false},
		{"git config get a.b", false},
		{"git config set a.b c", true},
		{"git config --unset a.b", true},
		{"git remote add x y", true},
		{"git remote -v", false},
		{"git branch -u origin/main", true},
		{"git branch --set-upstream-to=origin/main", true},
		{"git branch x", false},
		{"git push -u origin main", true},
		{"git push", false},
		{"hg config", false},
	} {
		if got := writesGitConfig(policy.Target{Argv: strings.Fields(tt.command)}); got != tt.want {
			t.Errorf("%s: got %v", tt.command, got)
		}
	}
}

func TestRowsAddSomething(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range configWriters {
		if seen[row] || row != strings.Join(strings.Fields(row), " ") {
			t.Errorf("twice, or odd blanks: %q", row)
		}
		seen[row] = true
		if slices.ContainsFunc(configWriters, func(other string) bool { return strings.HasPrefix(row, other+" ") }) {
			t.Errorf("%q adds nothing to a shorter row", row)
		}
	}
}
