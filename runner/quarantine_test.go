package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// absentNames is a profile's command with protected names that are not there.
func absentNames(t *testing.T, script string) Command {
	t.Helper()
	c, b := fakeCommand(t, script)
	p, err := profiles.Load("workspace")
	if err != nil {
		t.Fatal(err)
	}
	p.Ask = "allow" // what the text shows is asked about; this is about what it does not
	c.Profile, b.tier = p, "namespaces"
	return c
}

func kinds(r Result) (out []string) {
	for _, n := range r.Notices {
		out = append(out, n.Kind+" "+filepath.Base(n.Path))
	}
	return out
}

func TestQuarantine(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         []string // kind and name
		gone         []string
	}{
		{"nothing", "echo x >file", nil, nil},
		{"a file", "echo '{}' >.mcp.json", []string{"quarantined .mcp.json"}, []string{".mcp.json"}},
		{"a directory", "mkdir .vscode && echo '{}' >.vscode/tasks.json", []string{"quarantined .vscode"}, []string{".vscode"}},
		{"a link", "ln -s /etc/passwd .envrc", []string{"quarantined .envrc"}, []string{".envrc"}},
		{"made and removed", "touch .envrc; rm .envrc", nil, nil},
		{"a repository", "git init -q . && git remote add origin https://example.com/x", nil, nil},
		{"a repository with a hook", "git init -q . && echo >.git/hooks/pre-commit", []string{"quarantined hooks"}, []string{".git/hooks"}},
		{"a repository that runs a program", "git init -q . && git config core.fsmonitor ./x", []string{"quarantined config"}, []string{".git/config"}},
		{"a repository with a helper's address", "git init -q . && git remote add o 'ext::sh -c x'", []string{"quarantined config"}, []string{".git/config"}},
		{"in a directory that is a link", "mkdir -p elsewhere/mise && ln -s elsewhere .config && echo >elsewhere/mise/config.toml", []string{"quarantined mise"}, []string{"elsewhere/mise"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := absentNames(t, tt.script)
			r, err := Run(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(r); !slices.Equal(got, tt.want) {
				t.Errorf("notices %v, want %v: %v", got, tt.want, r.Notices)
			}
			for _, p := range tt.gone {
				if _, err := os.Lstat(filepath.Join(c.Dir, p)); err == nil {
					t.Errorf("%s is still there", p)
				}
			}
			all, err := Quarantine()
			if err != nil || len(all) != len(tt.gone) {
				t.Fatalf("quarantine holds %v, %v", all, err)
			}
			for i, q := range all {
				if _, err := Restore(q.ID); err != nil {
					t.Error(err)
				}
				if _, err := os.Lstat(filepath.Join(c.Dir, tt.gone[i])); err != nil {
					t.Errorf("%s did not come back: %v", tt.gone[i], err)
				}
				if _, err := Restore(q.ID); err == nil {
					t.Error("came back twice")
				}
			}
		})
	}
}

// A way out through a link that the command made must not lead the move astray.
func TestQuarantineStaysInside(t *testing.T) {
	c := absentNames(t, "")
	outside := mkdir(t, filepath.Dir(c.Dir), "outside")
	os.WriteFile(filepath.Join(outside, "mise"), []byte("mine"), 0o600)
	c.Script = "ln -s ../outside .config"
	r, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds(r); !slices.Equal(got, []string{"protected mise"}) {
		t.Errorf("notices %v", got)
	}
	if b, err := os.ReadFile(filepath.Join(outside, "mise")); err != nil || string(b) != "mine" {
		t.Errorf("outside: %q, %v", b, err)
	}
}

func TestQuarantineOverlap(t *testing.T) {
	c := absentNames(t, "while ! test -e go; do sleep 0.01; done; echo >.envrc")
	first, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	second := c
	second.Script = "touch go"
	if _, err := Run(context.Background(), second); err != nil {
		t.Fatal(err)
	}
	if got := kinds(first.Wait()); !slices.Equal(got, []string{"protected .envrc"}) {
		t.Errorf("notices %v, want only a word: two ran at once", got)
	}
	if _, err := os.Lstat(filepath.Join(c.Dir, ".envrc")); err != nil {
		t.Error("moved away, though another run may have made it")
	}
}

// Without mounts of its own a command leaves only a word.
func TestQuarantineWeakerTier(t *testing.T) {
	c := absentNames(t, "echo >.envrc")
	c.backend.(*fakeBackend).tier = "landlock"
	r, err := Run(context.Background(), c)
	if err != nil || !slices.Equal(kinds(r), []string{"protected .envrc"}) {
		t.Errorf("%v, %v", kinds(r), err)
	}
}

// TestQuarantineAfterKill: what a killed run made is found by the next.
func TestQuarantineAfterKill(t *testing.T) {
	c := absentNames(t, "touch other")
	k, err := prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.compile(); err != nil {
		t.Fatal(err)
	}
	w, err := startWatch(k.place, watchNames(k.spec.Protect))
	if err != nil {
		t.Fatal(err)
	}
	w.file.Close() // as the kernel does at the end of a killed process
	os.WriteFile(filepath.Join(c.Dir, ".envrc"), []byte("x"), 0o600)
	r, err := Run(context.Background(), c)
	if err != nil || !slices.Equal(kinds(r), []string{"quarantined .envrc"}) {
		t.Errorf("%v, %v", kinds(r), err)
	}
	if left, _ := filepath.Glob(filepath.Join(k.place.StateDir, "runs", "*", "*.json")); len(left) != 0 {
		t.Errorf("records left: %v", left)
	}
}

// TestCommitted: what git takes out of the repository is no finding, loose or
// packed; what is put into the repository during the run is.
func TestCommitted(t *testing.T) {
	c := absentNames(t, "git checkout -q topic")
	git := func(script string) {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-ec", "cd "+c.Dir+"; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "+script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("git init -q .; git commit -q --allow-empty -m 1; git branch -m main; git checkout -q -b topic; mkdir .vscode; echo '{}' >.vscode/settings.json; git add .; git commit -q -m 2; git checkout -q main")
	for _, how := range []string{"loose", "packed"} {
		r, err := Run(context.Background(), c)
		if err != nil || len(kinds(r)) != 0 {
			t.Errorf("%s: %v, %v", how, r.Notices, err)
		}
		if _, err := os.Lstat(c.Dir + "/.vscode/settings.json"); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		git("git checkout -q main; git gc -q")
	}
	c.Script = "mkdir .vscode; echo '{\"a\":1}' >.vscode/settings.json; git hash-object -w .vscode/settings.json"
	if r, err := Run(context.Background(), c); err != nil || !slices.Equal(kinds(r), []string{"quarantined .vscode"}) {
		t.Errorf("put into the repository by the run: %v, %v", kinds(r), err)
	}
}

func TestPlainGitConfig(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "[core]\n\tbare = false\n": true, "[remote \"o\"]\nurl = https://x/y\nfetch = +refs/heads/*:refs/remotes/o/*\n": true,
		"[core]\nfsmonitor = x\n": false, "[core]\nbare = false \\\nfsmonitor=x\n": false, "[include]\npath = x\n": false,
		"[remote \"o\"]\nurl = ext::sh\n": false, "[core] fsmonitor = x\n": false, "[alias]\nx = !sh\n": false, "[CORE]\nHooksPath=x": false,
	} {
		if got := plainGitConfig(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if plainGitConfig(strings.Repeat("[", 10)) {
		t.Error("brackets alone are plain")
	}
}
