package runner

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPlainGitConfig(t *testing.T) {
	for text, want := range map[string]bool{
		"":                         true,
		"[core]\n\tbare = false\n": true,
		"[remote \"o\"]\nurl = https://x/y\nfetch = +refs/heads/*:refs/remotes/o/*\n": true,
		"[core] bare = false # fsmonitor = x\n":                                       true,
		"[core]\nbare = false \\\nfsmonitor=x\n":                                      true, // one value
		"[core]\nfsmonitor = x\n":                                                     false,
		"[core]\nbare = \"false\\\n\nfsmonitor=x\n":                                   false,
		"[core]bare=false\r\nfsmonitor = x\n":                                         false,
		"\ufeff[core]\nfsmonitor\n":                                                   false,
		"[core] ; x\nfsmonitor = x":                                                   false,
		"[include]\npath = x\n":                                                       false,
		"[remote \"o\"]\nurl = ext::sh\n":                                             false,
		"[remote \"o\"]\nvcs = sh\n":                                                  false,
		"[remote \"a.vcs\x00\"]\nurl = sh\n":                                          false, // git's string ends at the NUL
		"[submodule \"s\"]\nupdate = !sh\n":                                           false,
		"[core] fsmonitor = x\n":                                                      false,
		"[alias]\nx = !sh\n":                                                          false,
		"[CORE]\nHooksPath=x":                                                         false,
		"[core \"\"]\nbare = false":                                                   false,
		"bare = false\n":                                                              false,
		"[[[[":                                                                        false,
	} {
		if got := plainGitConfig(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestCheckGitConfig(t *testing.T) {
	const mine = "[core]\n\tbare = false\n\tsshCommand = ssh -F x # mine\n[include]\n\tpath = y\n"
	const kept = "[core]\n\tsshcommand = ssh -F x\n[include]\n\tpath = y\n[core]\n\tbare = false\n"
	for _, tt := range []struct {
		name, after string
		changed     []string
		restored    string
	}{
		{"nothing", mine, nil, ""},
		{"a remote", mine + "[remote \"o\"]\n\turl = https://x\n", nil, ""},
		{"a remote and its branch", mine + "[remote \"o\"]\n\turl = git@x:y\n[branch \"b\"]\n\tremote = o\n[branch \"c\"]\n\tremote = .\n", nil, ""},
		{"a plain setting goes", "[core]\n\tsshCommand = ssh -F x\n[include]\n\tpath = y\n", nil, ""},
		{
			"a program and a remote", mine + "[remote \"o\"]\n\turl = h:a b;c\n[core]\n\tfsmonitor = evil\n",
			[]string{"core.fsmonitor"},
			"[core]\n\tsshcommand = ssh -F x\n[include]\n\tpath = y\n[core]\n\tbare = false\n[remote \"o\"]\n\turl = h:a b\n",
		},
		{
			"another value", strings.Replace(mine, "-F x", "-F z", 1),
			[]string{"core.sshcommand"},
			"[core]\n\tsshcommand = ssh -F x\n[include]\n\tpath = y\n[core]\n\tbare = false\n",
		},
		{
			"one goes", "[core]\n\tsshCommand = ssh -F x\n",
			[]string{"include.path"},
			"[core]\n\tsshcommand = ssh -F x\n[include]\n\tpath = y\n",
		},
		{"a directory to push to", mine + "[remote \"o\"]\n\turl = https://x\n\tpushurl = ./o:p\n", []string{"remote.o.pushurl"}, kept + "[remote \"o\"]\n\turl = https://x\n"},
		{"a directory by URL", mine + "[remote \"o\"]\n\turl = file:///o\n", []string{"remote.o.url"}, kept},
		{"a directory to clear a URL", mine + "[remote \"o\"]\n\turl = https://x\n\turl =\n", []string{"remote.o.url"}, kept + "[remote \"o\"]\n\turl = https://x\n"},
		{"a branch of a directory", mine + "[branch \"b\"]\n\tremote = o\n", []string{"branch.b.remote"}, kept},
		{"a branch of a remote that is put back", mine + "[remote \"o\"]\n\turl = o\n[branch \"b\"]\n\tpushRemote = o\n", []string{"remote.o.url", "branch.b.pushremote"}, kept},
		{"a directory for all branches", mine + "[remote]\n\tpushDefault = o\n", []string{"remote.pushdefault"}, kept},
		{"not understood", mine + "[", []string{"a line that git does not write"}, mine},
	} {
		changed, restored := checkGitConfig(mine, tt.after)
		if !slices.Equal(changed, tt.changed) || restored != tt.restored {
			t.Errorf("%s: %q, %q", tt.name, changed, restored)
		}
		if again, _ := checkGitConfig(mine, restored); changed != nil && again != nil {
			t.Errorf("%s: what is put back is not good either: %v", tt.name, again)
		}
	}
}

// A remote that is a directory is the person's own where it was there before.
func TestCheckGitConfigOwnDirectory(t *testing.T) {
	const mine = "[remote \"o\"]\n\turl = /srv/o\n"
	const branch = "[branch \"b\"]\n\tremote = o\n"
	if changed, _ := checkGitConfig(mine, mine+branch); changed != nil {
		t.Errorf("a branch of it: %v", changed)
	}
	if changed, restored := checkGitConfig(mine, branch); changed == nil || restored != mine+branch {
		t.Errorf("it goes: %v, %q", changed, restored)
	}
	// A URL that goes leaves a name that is one of a directory.
	const elsewhere = "[remote \"o\"]\n\turl = https://x\n"
	if changed, restored := checkGitConfig(elsewhere+branch, branch); changed == nil || restored != "" {
		t.Errorf("another goes: %v, %q", changed, restored)
	}
}

// FuzzGitConfig: what is read here is what git reads, and what is written here
// git reads as it was.
func FuzzGitConfig(f *testing.F) {
	for _, text := range []string{
		"[a]\nb = c\n", "[a \"x\\\"y\"]b\n", "[a.B]c=d;e", "[a]\n\tb = \" c \" d\\\n e # f\n", "\ufeff[a]b=\\t\r\n[c \"D.e\"]\nf = 1\n",
		"[a]\nb = \"\\\n\"\n", "[a ]\nb=1", "[a]b=c\rd\n", "[a]b =\n", "[a-1 \"\"]\nB2=\"", "# x\n;y\n[a]#z\nb=1", "[\n",
	} {
		f.Add(text)
	}
	dir := f.TempDir()
	read := func(t *testing.T, text string) (string, bool) {
		file := filepath.Join(dir, "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "--file", file, "--list", "-z", "--no-includes").Output()
		return string(out), err == nil
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := parseGitConfig(text)
		if err != nil || strings.ContainsRune(text, '\r') {
			return // refused as a whole; a return in a value is trimmed in one version of git alone
		}
		git, ok := read(t, text)
		if !ok {
			t.Fatalf("%q: git refuses it", text)
		}
		var want bytes.Buffer
		for _, s := range settings {
			want.WriteString(s.name())
			if !s.bare {
				want.WriteString("\n" + s.value)
			}
			want.WriteByte(0)
		}
		if git != want.String() && !strings.ContainsAny(text, "\t") { // a tab in a value was a blank before git 2.45
			t.Errorf("%q: git reads %q, we %q", text, git, want.String())
		}
		again, err := parseGitConfig(formatGitConfig(settings))
		if err != nil || !slices.Equal(again, settings) {
			t.Errorf("%q: written and read again it is %v, %v", text, again, err)
		}
	})
}

// A configuration that is checked may be written, and what in it runs programs
// is put back, whatever the command made of the file.
func TestCheckedGitConfig(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		notices      int
		want         []string // lines of git config --list --local
		not          string
	}{
		{"nothing", "touch x", 0, []string{"core.editor=mine"}, ""},
		{"a remote", "git remote add o https://x/y; git branch -f b; git config branch.b.remote o", 0, []string{"core.editor=mine", "remote.o.url=https://x/y", "branch.b.remote=o"}, ""},
		{"a directory to push to", "git remote add o https://x/y; git config remote.o.pushurl ./evil", 1, []string{"core.editor=mine", "remote.o.url=https://x/y"}, "evil"},
		{"a program", "git remote add o https://x/y; git config core.fsmonitor ./evil", 1, []string{"core.editor=mine", "remote.o.url=https://x/y"}, "fsmonitor"},
		{"another value", "git config core.editor evil", 1, []string{"core.editor=mine"}, "evil"},
		{"removed", "rm .git/config", 1, []string{"core.editor=mine"}, ""},
		{"a link", "git config --file elsewhere core.fsmonitor evil; ln -sf ../elsewhere .git/config", 1, []string{"core.editor=mine"}, "evil"},
		{"a FIFO", "rm .git/config; mkfifo .git/config", 1, []string{"core.editor=mine"}, ""},
		{"too long", "head -c 100000 /dev/zero | tr '\\0' '#' >>.git/config", 1, []string{"core.editor=mine"}, ""},
		{"of a worktree", "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor evil", 2, []string{"core.editor=mine"}, "fsmonitor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := absentNames(t, tt.script)
			c.Profile.GitConfig = "checked"
			git(t, c.Dir, "init", "-q", "-b", "main")
			git(t, c.Dir, "commit", "-q", "--allow-empty", "-m", "1")
			git(t, c.Dir, "config", "core.editor", "mine")
			r, err := Run(context.Background(), c)
			if err != nil || len(r.Notices) != tt.notices {
				t.Fatalf("notices %v, %v", r.Notices, err)
			}
			cmd := exec.Command("git", "config", "--list", "--local")
			cmd.Dir = c.Dir
			out, err := cmd.CombinedOutput()
			lines := strings.Split(string(out), "\n")
			for _, want := range tt.want {
				if err != nil || !slices.Contains(lines, want) {
					t.Errorf("%s is not in %q, %v", want, out, err)
				}
			}
			if tt.not != "" && strings.Contains(string(out), tt.not) {
				t.Errorf("%s is in %q", tt.not, out)
			}
			var st unix.Stat_t
			if unix.Lstat(filepath.Join(c.Dir, ".git/config"), &st) != nil || st.Mode != unix.S_IFREG|0o644 || int(st.Uid) != os.Getuid() {
				t.Errorf("mode %o of user %d", st.Mode, st.Uid)
			}
			if left, _ := filepath.Glob(filepath.Join(c.Dir, ".git/.sandbox-exec-*")); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// What a killed run wrote, the next one puts back.
func TestCheckedGitConfigAfterKill(t *testing.T) {
	c := absentNames(t, "touch x")
	c.Profile.GitConfig = "checked"
	git(t, c.Dir, "init", "-q")
	k, err := prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := k.profile.Spec(k.place)
	if err != nil {
		t.Fatal(err)
	}
	_, w, err := startWatch(k.place, spec.Protect, nil)
	if err != nil {
		t.Fatal(err)
	}
	git(t, c.Dir, "config", "core.fsmonitor", "evil")
	w.file.Close() // as the kernel does at the end of a killed process
	r, err := Run(context.Background(), c)
	if err != nil || len(r.Notices) != 1 || !strings.Contains(r.Notices[0].Text, "core.fsmonitor was set") {
		t.Errorf("%v, %v", r.Notices, err)
	}
	if text, _ := os.ReadFile(filepath.Join(c.Dir, ".git/config")); strings.Contains(string(text), "evil") {
		t.Errorf("%s", text)
	}
}
