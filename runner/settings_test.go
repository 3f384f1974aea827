package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// ownHome gives the test a home, with a workspace in it.
func ownHome(t *testing.T) (home, ws string) {
	t.Helper()
	home = tempDir(t)
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	return home, mkdir(t, home, "ws")
}

func settings(t *testing.T, ws string) *Settings {
	t.Helper()
	s, err := LoadSettings(ws, ws)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func grant(verdict policy.Verdict, pattern string) profiles.Grant {
	return profiles.Grant{Rule: policy.Rule{Verdict: verdict, Pattern: pattern}}
}

func TestSettingsProfile(t *testing.T) {
	home, ws := ownHome(t)
	write(t, "profile = 'readonly'\nmode = 'plan'\n[[rule]]\nverdict = 'deny'\npattern = 'a'\n", home, ".config/sandbox-exec/config.toml")
	write(t, "[[rule]]\nverdict = 'deny'\npattern = 'b'\n[[rule]]\nverdict = 'allow'\npattern = 'c'\n", ws, profiles.ProjectFile)
	if err := settings(t, ws).AddGrant(grant(policy.Allow, "d")); err != nil {
		t.Fatal(err)
	}
	patterns := func(p *profiles.Profile) (all string) {
		for _, r := range p.Rules {
			all += r.Pattern
		}
		return all
	}
	s := settings(t, ws)
	p, notices, err := s.Profile("")
	if err != nil || p.Name != "readonly" || p.Mode != policy.ModePlan || patterns(p) != "abd" {
		t.Errorf("%v: profile %s, mode %v, rules %s", err, p.Name, p.Mode, patterns(p))
	}
	if len(notices) != 1 || notices[0].Kind != NoticeUntrusted || !strings.Contains(notices[0].Text, "rule allow c") {
		t.Errorf("notices %+v", notices)
	}
	if err := s.Trust(); err != nil {
		t.Fatal(err)
	}
	s = settings(t, ws)
	p, notices, err = s.Profile("workspace")
	if err != nil || p.Name != "workspace" || p.Mode != policy.ModeAllow || patterns(p) != "abcd" || notices != nil {
		t.Errorf("%v: profile %s, mode %v, rules %s, notices %v", err, p.Name, p.Mode, patterns(p), notices)
	}
	if err := Untrust(ws, ws); err != nil || settings(t, ws).Trusted {
		t.Errorf("still trusted: %v", err)
	}
}

// The name of the file of trust is a part of a hash; the path in it decides.
func TestTrustIsOfOneWorkspace(t *testing.T) {
	_, ws := ownHome(t)
	write(t, "mode = 'ask'\n", ws, profiles.ProjectFile)
	s := settings(t, ws)
	if err := s.Trust(); err != nil {
		t.Fatal(err)
	}
	other := write(t, "mode = 'ask'\n", mkdir(t, ws, "other"), profiles.ProjectFile)
	o := settings(t, filepath.Dir(other))
	if o.Trusted {
		t.Error("the same content is trusted elsewhere")
	}
	if err := os.Rename(s.trustFile(), o.trustFile()); err != nil {
		t.Fatal(err)
	}
	if settings(t, filepath.Dir(other)).Trusted || settings(t, ws).Trusted {
		t.Error("the trust in one workspace counts for another")
	}
	if err := os.Remove(o.trustFile()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(write(t, "{}", ws, "x"), o.trustFile()); err != nil {
		t.Fatal(err)
	}
	var bad *StateError
	if _, err := LoadSettings(filepath.Dir(other), filepath.Dir(other)); !errors.As(err, &bad) {
		t.Errorf("a link for a file of trust: %v", err)
	}
}

func TestGrantsOfAnotherWorkspaceAreAnError(t *testing.T) {
	_, ws := ownHome(t)
	s := settings(t, ws)
	if err := s.AddGrant(grant(policy.Allow, "make")); err != nil {
		t.Fatal(err)
	}
	o := settings(t, mkdir(t, ws, "other"))
	if err := os.Rename(s.GrantsFile(), o.GrantsFile()); err != nil {
		t.Fatal(err)
	}
	var bad *profiles.Error
	if _, err := LoadSettings(o.Workspace, o.Workspace); !errors.As(err, &bad) || !strings.Contains(err.Error(), "the rules are those of") {
		t.Errorf("got %v", err)
	}
}

// Of those who change a file at the same time nobody loses anything, and no
// reader sees a part.
func TestChangesAtTheSameTime(t *testing.T) {
	_, ws := ownHome(t)
	const writers, each = 4, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := settings(t, ws).AddGrant(grant(policy.Deny, fmt.Sprintf("p%d-%d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := settings(t, ws)
	if len(s.Grants) != writers*each {
		t.Errorf("%d of %d rules are there", len(s.Grants), writers*each)
	}
	left, err := os.ReadDir(filepath.Dir(s.GrantsFile()))
	if err != nil || len(left) != 2 { // the file and the lock
		t.Errorf("left behind: %v, %v", left, err)
	}
	n, err := s.RemoveGrants(func(g profiles.Grant) bool { return strings.HasPrefix(g.Pattern, "p1-") })
	if err != nil || n != each || len(settings(t, ws).Grants) != (writers-1)*each {
		t.Errorf("removed %d: %v", n, err)
	}
}

// A path that our directory is reached by may be a link: what is hidden must be
// where it leads.
func TestOwnDirectoriesAreHiddenWhereTheyAre(t *testing.T) {
	home, ws := ownHome(t)
	real := mkdir(t, ws, "dotfiles")
	if err := os.Symlink(real, filepath.Join(home, ".config")); err != nil {
		t.Fatal(err)
	}
	where, _, err := place(&Command{Dir: ws, Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	if where.ConfigDir != real+"/sandbox-exec" {
		t.Errorf("configuration in %s", where.ConfigDir)
	}
	p, err := profiles.Load("workspace")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := p.Spec(where)
	if err != nil {
		t.Fatal(err)
	}
	if err := makeOwn(&where, spec.Files); err != nil {
		t.Fatal(err)
	}
	if a := sandbox.AccessOf(spec.Files, real+"/sandbox-exec/config.toml"); a != sandbox.None {
		t.Errorf("the configuration is %v", a)
	}
	if info, err := os.Stat(real + "/sandbox-exec"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it was not made, so that the command could: %v, %v", info, err)
	}

	if err := os.Remove(real + "/sandbox-exec"); err != nil {
		t.Fatal(err)
	}
	write(t, "", real, "sandbox-exec")
	var bad *StateError
	if err := makeOwn(&where, spec.Files); !errors.As(err, &bad) {
		t.Errorf("something else in its place: %v", err)
	}
}

func FuzzPatternTokens(f *testing.F) {
	f.Add("git push *")
	f.Add("echo 'a b' ''  x")
	f.Add("a'b c")
	f.Fuzz(func(t *testing.T, pattern string) {
		tokens, err := TokensOf("", pattern)
		if err != nil {
			return
		}
		again, err := PatternOf("", tokens)
		if err != nil {
			t.Fatalf("%q: %v", tokens, err)
		}
		if back, err := TokensOf("", again); err != nil || !slices.Equal(back, tokens) {
			t.Errorf("%q: %q, by %q %q, %v", pattern, tokens, again, back, err)
		}
		// The judge reads the same tokens.
		judge := policy.Policy{Rules: []policy.Rule{{Verdict: policy.Deny, Pattern: again}}}
		plain := !slices.ContainsFunc(tokens, func(w string) bool { return strings.ContainsAny(w, "*?[{\x00") })
		if tokens[0] != "" && plain && !filepath.IsAbs(tokens[0]) && !strings.Contains(tokens[0], "/") {
			d := judge.DecideArgs(tokens, policy.Scope{Cwd: "/w", Workspace: "/w", Home: "/h"})
			if d.Verdict != policy.Deny {
				t.Errorf("%q does not match %q: %v", again, tokens, d.Verdict)
			}
		}
	})
}

// The place that the settings found is that of the first command, if nothing
// has moved since.
func TestSettingsLendTheirPlaceOnce(t *testing.T) {
	home, ws := ownHome(t)
	t.Chdir(ws)
	for name, test := range map[string]struct {
		before func()
		c      Command
		lent   bool
	}{
		"the same":              {nil, Command{}, true},
		"another workspace":     {nil, Command{Workspace: home}, false},
		"another directory":     {nil, Command{Dir: home}, false},
		"another environment":   {nil, Command{Env: []string{"HOME=/x"}}, false},
		"the directory changed": {func() { t.Chdir(home) }, Command{}, false},
	} {
		t.Chdir(ws)
		s, err := LoadSettings("", "")
		if err != nil {
			t.Fatal(err)
		}
		if test.before != nil {
			test.before()
		}
		if lent := s.takePlace(&test.c) != nil; lent != test.lent {
			t.Errorf("%s: lent %v", name, lent)
		}
		if s.takePlace(&test.c) != nil {
			t.Errorf("%s: lent twice", name)
		}
	}
}

// TestAtHome: a HOME that is missing or leads elsewhere makes no workspace of the
// home that the user database has.
func TestAtHome(t *testing.T) {
	for _, tt := range []struct {
		uid  int
		home string
		more []string
		want bool
	}{
		{1000, "/home/a", nil, true},
		{1000, "/elsewhere", []string{"/home/a"}, true},
		{1000, "/elsewhere", nil, false},
		{0, "/root", []string{"/home/a"}, false}, // somebody else's
	} {
		s := &Settings{Workspace: "/home/a", place: profiles.Place{UID: tt.uid, Home: tt.home, MoreHomes: tt.more}}
		if got := s.AtHome(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
