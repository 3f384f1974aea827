package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
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
		{"a repository with more samples than are looked at", "git init -q . && cd .git/hooks && seq -f %g.sample 1200 | xargs touch", []string{"quarantined hooks"}, []string{".git/hooks"}},
		{"a repository with a link to no hooks", "git init -q . && rm -r .git/hooks && mkdir h && ln -s ../h .git/hooks", []string{"quarantined hooks"}, []string{".git/hooks"}},
		{"a repository that runs a program", "git init -q . && git config core.fsmonitor ./x", []string{"quarantined config"}, []string{".git/config"}},
		{"a pointer to a repository", "git init -q r && git -C r config core.fsmonitor ./x && echo 'gitdir: r/.git' >.git", []string{"quarantined .git"}, []string{".git"}},
		{"a link to a repository", "git init -q r && git -C r config core.fsmonitor ./x && ln -s $PWD/r/.git .git", []string{"quarantined .git"}, []string{".git"}},
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

// Of runs that overlap, whichever made a name, the last one to end moves it
// away.
func TestQuarantineOverlap(t *testing.T) {
	for _, tt := range []struct {
		name, long, short string
		free              []string // what the short one may make
		early, late       []string // notices of the short and of the long one
	}{
		{
			"the long one makes it", "touch on; while ! test -e go; do sleep 0.01; done; echo >.envrc", "touch x",
			nil, nil,
			[]string{"quarantined .envrc"},
		},
		{
			"the short one makes it", "touch on; while ! test -e go; do sleep 0.01; done", "echo >.envrc",
			nil,
			[]string{"protected .envrc"},
			[]string{"quarantined .envrc"},
		},
		{
			"the short one may make it", "touch on; while ! test -e go; do sleep 0.01; done", "echo >.envrc",
			[]string{".envrc"},
			nil,
			[]string{"protected .envrc"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			long := absentNames(t, tt.long)
			short := long
			short.backend = &fakeBackend{tier: "namespaces"}
			short.Script = tt.short
			p := *long.Profile
			p.Unprotect = tt.free
			short.Profile = &p
			first, err := Start(context.Background(), long)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(context.Background(), short)
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(r); !slices.Equal(got, tt.early) {
				t.Errorf("the short one: %v, want %v", r.Notices, tt.early)
			}
			write(t, "", long.Dir, "go")
			last := first.Wait()
			if got := kinds(last); !slices.Equal(got, tt.late) {
				t.Errorf("the long one: %v, want %v", last.Notices, tt.late)
			}
			_, err = os.Lstat(filepath.Join(long.Dir, ".envrc"))
			if moved := strings.HasPrefix(tt.late[0], NoticeQuarantined); moved == (err == nil) {
				t.Errorf("it is there: %v", err == nil)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(long.Dir), ".local/state/sandbox-exec/runs/*/*.json")); len(left) != 0 {
				t.Errorf("records left: %v", left)
			}
		})
	}
}

// However many runs end while one is on, they leave one record.
func TestQuarantineOverlapIsBounded(t *testing.T) {
	c := absentNames(t, "touch on; while ! test -e go; do sleep 0.01; done")
	long, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	short := c
	short.Script = "touch x"
	for range 5 {
		if _, err := Run(context.Background(), short); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(c.Dir), ".local/state/sandbox-exec/runs/*/*")); len(files) != 3 {
		t.Errorf("%v; want the lock, the record of the long run and one of the others", files)
	}
	write(t, "", c.Dir, "go")
	long.Wait()
}

// A protected name that is a link is put back, and what took its place is moved
// away.
func TestQuarantineOfLinks(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         []string
	}{
		{"untouched", "true", nil},
		{"made again", "rm .envrc; ln -s conf/envrc .envrc", nil},
		{"removed", "rm .envrc", []string{"protected .envrc"}},
		{"replaced by a file", "rm .envrc; echo bad >.envrc", []string{"quarantined .envrc"}},
		{"replaced by a directory", "rm .envrc; mkdir .envrc", []string{"quarantined .envrc"}},
		{"replaced by another link", "ln -sfn other .envrc", []string{"quarantined .envrc"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := absentNames(t, tt.script)
			write(t, "good", c.Dir, "conf/envrc")
			link := filepath.Join(c.Dir, ".envrc")
			if err := os.Symlink("conf/envrc", link); err != nil {
				t.Fatal(err)
			}
			r, err := Run(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(r); !slices.Equal(got, tt.want) {
				t.Errorf("notices %v, want %v", r.Notices, tt.want)
			}
			if text, err := os.Readlink(link); text != "conf/envrc" {
				t.Errorf("the link is %q, %v", text, err)
			}
		})
	}
}

// A name that is there can lie below a link, which is as good as the name.
func TestQuarantineOfLinksAbove(t *testing.T) {
	c := absentNames(t, "rm .config; mkdir -p .config/mise; echo bad >.config/mise/config.toml")
	write(t, "good", c.Dir, "dot/mise/config.toml")
	if err := os.Symlink("dot", filepath.Join(c.Dir, ".config")); err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), c)
	if err != nil || !slices.Contains(kinds(r), "quarantined .config") {
		t.Fatalf("%v, %v", r.Notices, err)
	}
	if text, err := os.ReadFile(filepath.Join(c.Dir, ".config/mise/config.toml")); string(text) != "good" {
		t.Errorf("%q, %v", text, err)
	}
}

// Where a name leads through further links, these are as good as the name.
func TestQuarantineOfLinksOnTheWay(t *testing.T) {
	for _, script := range []string{
		"rm a; mkdir a; echo bad >a/envrc",
		"rm conf/b; mkdir conf/b; echo bad >conf/b/envrc",
		"ln -sfn other conf/b",
	} {
		c := absentNames(t, script)
		write(t, "good", c.Dir, "real/envrc")
		write(t, "bad", c.Dir, "conf/other/envrc")
		for name, text := range map[string]string{".envrc": "./conf/../a/envrc", "a": "conf/b", "conf/b": filepath.Join(c.Dir, "real")} {
			if err := os.Symlink(text, filepath.Join(c.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Run(context.Background(), c)
		if err != nil || len(r.Notices) != 1 || r.Notices[0].Kind != NoticeQuarantined {
			t.Errorf("%s: %v, %v", script, r.Notices, err)
		}
		if text, err := os.ReadFile(filepath.Join(c.Dir, ".envrc")); string(text) != "good" {
			t.Errorf("%s: %q, %v", script, text, err)
		}
	}
}

// No record is seen before it is locked, lest it is taken for a dead run's:
// while another run looks at the records, none appears.
func TestRecordsAppearLocked(t *testing.T) {
	c := absentNames(t, "touch x")
	k, err := prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	names := []sandbox.Name{{Path: filepath.Join(c.Dir, ".envrc"), Guard: sandbox.Block}}
	_, w, err := startWatch(k.place, names, nil)
	if err != nil {
		t.Fatal(err)
	}
	looking, err := w.lockRecords()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan *watchman)
	go func() {
		_, w, err := startWatch(k.place, names, nil)
		if err != nil {
			t.Error(err)
		}
		second <- w
	}()
	time.Sleep(50 * time.Millisecond)
	if on, left, files := w.others(); on || left != nil || files != nil {
		t.Errorf("on %v, left %v, files %v", on, left, files)
	}
	looking.Close()
	other := <-second
	if on, left, _ := w.others(); !on || left != nil {
		t.Errorf("on %v, left %v; want the second run", on, left)
	}
	other.finish(names, true)
	w.finish(names, true)
	if left, _ := filepath.Glob(filepath.Join(w.dir, "*.json")); len(left) != 0 {
		t.Errorf("records left: %v", left)
	}
}

// Between the move and the return a command may have put a link on the way.
func TestRestoreStaysInside(t *testing.T) {
	for _, to := range []string{"..", "../elsewhere", "/"} {
		c := absentNames(t, "echo x >.envrc")
		home := filepath.Dir(c.Dir)
		mkdir(t, home, "elsewhere")
		c.Workspace, c.Dir = c.Dir, mkdir(t, c.Dir, "sub")
		if _, err := Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		all, err := Quarantine()
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if err := os.Remove(c.Dir); err != nil {
			t.Fatal(err)
		}
		if to != "/" {
			to = filepath.Join(c.Workspace, to)
		}
		if err := os.Symlink(to, c.Dir); err != nil {
			t.Fatal(err)
		}
		_, err = Restore(all[0].ID)
		var want *CommandError
		if !errors.As(err, &want) || want.Hint == "" {
			t.Errorf("%v, want a *CommandError with a hint", err)
		}
		for _, dir := range []string{home, filepath.Join(home, "elsewhere"), "/"} {
			if _, err := os.Lstat(filepath.Join(dir, ".envrc")); err == nil {
				t.Errorf("it came back in %s", dir)
			}
		}
		if again, _ := Quarantine(); len(again) != 1 {
			t.Error("it is lost")
		}
	}
}

func TestRestoreReplacesNothing(t *testing.T) {
	c := absentNames(t, "echo old >.envrc")
	if _, err := Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	all, _ := Quarantine()
	file := write(t, "new", c.Dir, ".envrc")
	if _, err := Restore(all[0].ID); err == nil || !strings.Contains(err.Error(), "there again") {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "new" {
		t.Errorf("replaced by %q", text)
	}
	os.Remove(file)
	if _, err := Restore(all[0].ID); err != nil {
		t.Error(err)
	}
}

func TestRenameNew(t *testing.T) {
	for name, rename := range map[string]func(int, string, int, string) error{"renameNew": renameNew, "linkNew": linkNew} {
		dir := tempDir(t)
		write(t, "a", dir, "file")
		write(t, "b", dir, "there")
		write(t, "c", dir, "folder/x")
		write(t, "d", dir, "full/x")
		os.Symlink("nowhere", filepath.Join(dir, "link"))
		d, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		fd := int(d.Fd())
		for _, tt := range []struct {
			from, to string
			ok       bool
		}{
			{"file", "there", false},
			{"link", "there", false},
			{"folder", "there", false},
			{"folder", "full", false},
			{"file", "full", false},
			{"file", "new", true},
			{"link", "newlink", true},
			{"folder", "newfolder", true},
			{"file", "x", false},
		} {
			if err := rename(fd, tt.from, fd, tt.to); (err == nil) != tt.ok {
				t.Errorf("%s(%s, %s): %v", name, tt.from, tt.to, err)
			}
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "there")); string(text) != "b" {
			t.Errorf("%s: replaced by %q", name, text)
		}
		d.Close()
	}
}

// otherFileSystem puts our state on another file system than the workspace.
func otherFileSystem(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sandbox-exec-test-*")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var here, there unix.Stat_t
	if unix.Stat("/var/tmp", &here) != nil || unix.Stat(dir, &there) != nil || here.Dev == there.Dev {
		t.Skip("/dev/shm is no file system of its own")
	}
	t.Setenv("XDG_STATE_HOME", dir)
}

func TestQuarantineAcrossFileSystems(t *testing.T) {
	c := absentNames(t, "mkdir -p .vscode/a; echo x >.vscode/a/run; chmod 755 .vscode/a/run; ln -s a .vscode/link")
	otherFileSystem(t)
	r, err := Run(context.Background(), c)
	if err != nil || !slices.Equal(kinds(r), []string{"quarantined .vscode"}) {
		t.Fatalf("%v, %v", r.Notices, err)
	}
	dir := filepath.Join(c.Dir, ".vscode")
	if _, err := os.Lstat(dir); err == nil {
		t.Fatal("it is still there")
	}
	all, _ := Quarantine()
	if _, err := Restore(all[0].ID); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "link/run"))
	if err != nil || string(text) != "x\n" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, _ := os.ReadDir(c.Dir); len(entries) != 1 {
		t.Errorf("the workspace holds %v", entries)
	}
	if left, _ := Quarantine(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Where the original cannot be removed whole, the copy is all that there is.
func TestQuarantineKeepsTheCopy(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can remove it")
	}
	c := absentNames(t, "mkdir -p .vscode/a .vscode/z; echo x >.vscode/a/x; echo z >.vscode/z/z; chmod 555 .vscode/z")
	otherFileSystem(t)
	t.Cleanup(func() { os.Chmod(filepath.Join(c.Dir, ".vscode/z"), 0o700) })
	r, err := Run(context.Background(), c)
	if err != nil || !slices.Equal(kinds(r), []string{"protected .vscode"}) {
		t.Fatalf("%v, %v", r.Notices, err)
	}
	all, _ := Quarantine()
	if len(all) != 1 {
		t.Fatal(all)
	}
	item := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sandbox-exec/quarantine", all[0].ID, "item")
	for _, name := range []string{"a/x", "z/z"} {
		if _, err := os.Lstat(filepath.Join(item, name)); err != nil {
			t.Error(err)
		}
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
	_, w, err := startWatch(k.place, k.spec.Protect, nil)
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

// TestCommitted: what was in the repository before stays, loose or packed, but
// is told: an earlier run may have stored it. What is put into the repository
// during the run is moved away.
func TestCommitted(t *testing.T) {
	c := absentNames(t, "git checkout -q topic")
	git(t, c.Dir, "init", "-q", "-b", "main")
	git(t, c.Dir, "commit", "-q", "--allow-empty", "-m", "1")
	git(t, c.Dir, "checkout", "-q", "-b", "topic")
	write(t, "{}", c.Dir, ".vscode/settings.json")
	git(t, c.Dir, "add", ".")
	git(t, c.Dir, "commit", "-q", "-m", "2")
	git(t, c.Dir, "checkout", "-q", "main")
	for _, how := range []string{"loose", "packed"} {
		r, err := Run(context.Background(), c)
		if err != nil || !slices.Equal(kinds(r), []string{"protected .vscode"}) || !strings.Contains(r.Notices[0].Text, "was in the repository before") {
			t.Errorf("%s: %v, %v", how, r.Notices, err)
		}
		if _, err := os.Lstat(c.Dir + "/.vscode/settings.json"); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		git(t, c.Dir, "checkout", "-q", "main")
		git(t, c.Dir, "gc", "-q")
	}
	c.Script = "mkdir .vscode; echo '{\"a\":1}' >.vscode/settings.json; git hash-object -w .vscode/settings.json"
	if r, err := Run(context.Background(), c); err != nil || !slices.Equal(kinds(r), []string{"quarantined .vscode"}) {
		t.Errorf("put into the repository by the run: %v, %v", kinds(r), err)
	}
}
