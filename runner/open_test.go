package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// tools are those of a workspace in a home of its own, by the built-in profile
// "workspace" with changes.
func tools(t *testing.T, change func(*Command)) (tl *Tools, home, ws string) {
	t.Helper()
	home, ws = ownHome(t)
	p, err := profiles.Load("workspace")
	if err != nil {
		t.Fatal(err)
	}
	mine := *p
	c := Command{Dir: ws, Workspace: ws, Profile: &mine}
	if change != nil {
		change(&c)
	}
	tl, err = NewTools(c)
	if err != nil {
		t.Fatal(err)
	}
	return tl, home, ws
}

func read(t *testing.T, f *os.File) string {
	t.Helper()
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOpenRead(t *testing.T) {
	tl, home, ws := tools(t, func(c *Command) {
		c.Profile.Rules = []policy.Rule{
			{Action: policy.FileRead, Verdict: policy.Deny, Pattern: "private/**"},
			{Action: policy.FileRead, Verdict: policy.Allow, Pattern: "~/.ssh/**"},
		}
	})
	write(t, "inside", ws, "a/file")
	write(t, "denied", ws, "private/file")
	write(t, "key", home, ".ssh/id")
	write(t, "token", home, ".netrc")
	write(t, "notes", home, "notes")
	for link, to := range map[string]string{
		"link": "a/file", "dir": "a", "out": home + "/.netrc", "up": "..", "den": "private/file", "loop": "loop", "nothing": "nowhere",
	} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(ws, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, text, err string }{
		{"a/file", "inside", ""},
		{ws + "/a/../a/file", "inside", ""},
		{"link", "inside", ""},
		{"dir/file", "inside", ""},
		{home + "/notes", "notes", ""}, // home is read-only
		{"up/notes", "notes", ""},
		{home + "/.netrc", "", "hidden from commands"},
		{"out", "", "is a link to it"},
		{"up/.netrc", "", ""},
		{home + "/.ssh/id", "", "for commands it is none"}, // by a rule that only answers
		{"private/file", "", "denied"},
		{"den", "", "denied"},
		{"loop", "", ""},
		{"nothing", "", "no such file"},
		{"missing", "", "no such file"},
		{"a", "", "not a regular file"},
		{"fifo", "", "not a regular file"},
		{"/dev/zero", "", "other files than this program"},
		{"/proc/self/environ", "", "other files than this program"},
		{"/proc/self/cwd/a/file", "inside", ""},
		{"/proc/self/root/proc/self/environ", "", "other files than this program"},
		{home + "/.local/state/sandbox-exec/x", "", ""},
		{"", "", "no path"},
		{"a\x00b", "", "no path"},
	} {
		if strings.HasPrefix(test.path, "/proc/self/cwd") {
			t.Chdir(ws)
		}
		f, err := tl.OpenRead(context.Background(), test.path)
		switch {
		case test.text != "":
			if err != nil {
				t.Errorf("%q: %v", test.path, err)
			} else if got := read(t, f); got != test.text {
				t.Errorf("%q: %q", test.path, got)
			}
		case err == nil:
			t.Errorf("%q: opened: %q", test.path, read(t, f))
		case !strings.Contains(err.Error(), test.err):
			t.Errorf("%q: %v, want %q in it", test.path, err, test.err)
		}
	}
}

func TestOpenWrite(t *testing.T) {
	tl, home, ws := tools(t, nil)
	write(t, "old text", ws, "file")
	write(t, "", ws, ".git/hooks/pre-commit")
	write(t, "", ws, "mise.toml")
	for link, to := range map[string]string{"link": "file", "new-link": "made", "out": home + "/out", "hook": ".git/hooks/pre-commit"} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ path, err string }{
		{"file", ""},
		{"link", ""},
		{"fresh", ""},
		{"new-link", ""},
		{"out", "is a link to it"},
		{home + "/x", "outside the writable roots"},
		{".git/hooks/pre-commit", "runs later"},
		{"hook", "is a link to it"},
		{"mise.toml", "runs later"},
		{"no/such/dir", "no such file"},
		{".", "outside"},
	} {
		f, err := tl.OpenWrite(context.Background(), test.path)
		if test.err == "" {
			if err != nil {
				t.Errorf("%q: %v", test.path, err)
				continue
			}
			if _, err := f.WriteString("new"); err != nil {
				t.Error(err)
			}
			f.Close()
			continue
		}
		if test.path == "." && err != nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %v, want %q in it", test.path, err, test.err)
		}
	}
	for file, want := range map[string]string{"file": "new text", "fresh": "new", "made": "new"} {
		if got, err := os.ReadFile(filepath.Join(ws, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if _, err := os.Lstat(home + "/out"); err == nil {
		t.Error("a file was made outside")
	}

	// No answer lifts the protection.
	tl.command.Approver = &says{Answer: Answer{Allow: true}}
	if _, err := tl.OpenWrite(context.Background(), "mise.toml"); err == nil || !strings.Contains(err.Error(), "is protected") {
		t.Errorf("after a yes: %v", err)
	}
}

// A person's answer to a question about a path opens just that file, but none
// of ours.
func TestOpenAsks(t *testing.T) {
	s := &says{Answer: Answer{Allow: true}}
	tl, home, _ := tools(t, func(c *Command) { c.Approver = s })
	write(t, "token", home, ".netrc")
	write(t, "mine", home, ".config/sandbox-exec/config.toml")
	f, err := tl.OpenRead(context.Background(), home+"/.netrc")
	if err != nil {
		t.Fatal(err)
	}
	if read(t, f) != "token" || len(s.asked) != 1 || s.asked[0].kind() != "path" || s.asked[0].Script != "" || s.asked[0].Args != nil {
		t.Errorf("asked %+v", s.asked)
	}
	if f, err := tl.OpenRead(context.Background(), home+"/.config/sandbox-exec/config.toml"); err == nil {
		t.Errorf("our own configuration was opened: %q", read(t, f))
	}
	if f, err := tl.OpenWrite(context.Background(), home+"/new"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}

	s.Answer = Answer{Reason: "no"}
	var refused *RefusedError
	if _, err := tl.OpenRead(context.Background(), home+"/.netrc"); !errors.As(err, &refused) || refused.Reason != "no" {
		t.Errorf("got %v", err)
	}
}

func TestToolsInvokeAndConnect(t *testing.T) {
	tl, _, _ := tools(t, func(c *Command) {
		c.Profile.Rules = []policy.Rule{
			{Action: policy.Tool, Verdict: policy.Allow, Pattern: "todo_*"},
			{Action: policy.NetworkTo, Verdict: policy.Allow, Pattern: "*.example.org"},
		}
	})
	ctx := context.Background()
	for what, err := range map[string]error{"todo_add": tl.Invoke(ctx, "todo_add"), "docs.example.org": tl.Connect(ctx, "docs.example.org", 443)} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"browser": tl.Invoke(ctx, "browser"), "example.com": tl.Connect(ctx, "example.com", 443),
		"a NUL": tl.Connect(ctx, "evil\x00.example.org", 443),
	} {
		var refused *RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a refusal", what, err)
		}
	}
}

// The /tmp of commands is not that of the machine.
func TestOpenTmp(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("macOS has one /tmp")
	}
	tl, home, _ := tools(t, func(c *Command) { c.Profile.Tmp = "session" })
	f, err := os.CreateTemp("/tmp", "sandbox-exec-test-*")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	t.Cleanup(func() { os.Remove(f.Name()) })
	name := filepath.Base(f.Name())
	if f, err := tl.OpenRead(context.Background(), "/tmp/"+name); err == nil {
		t.Errorf("a file of the machine's: %q", read(t, f))
	}
	write(t, "by a command", tl.place.TmpDir, "out", "log")
	write(t, "secret", home, "secret")
	for link, to := range map[string]string{"rel": "out/log", "abs": home + "/secret", "up": "../../../secret"} {
		if err := os.Symlink(to, filepath.Join(tl.place.TmpDir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"/tmp/out/log": "by a command", "/tmp/x/../rel": "by a command", "/tmp/abs": "", "/tmp/up": "", "/tmp/out": ""} {
		f, err := tl.OpenRead(context.Background(), path)
		if want == "" {
			if err == nil {
				t.Errorf("%s: opened: %q", path, read(t, f))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if got := read(t, f); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if f, err := tl.OpenWrite(context.Background(), "/tmp/new"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if _, err := os.Stat(tl.place.TmpDir + "/new"); err != nil {
		t.Error(err)
	}
}

// While names on the way are swapped without end, what is opened is what was
// judged: a file of the workspace or none, never the secret.
func TestSwappedNamesChangeNothing(t *testing.T) {
	for _, test := range []struct {
		name string
		path string
		// swap makes one state, or the other, of the names.
		swap func(ws, secret string, outside bool) error
	}{
		{"a link for the file", "name", func(ws, secret string, outside bool) error {
			return relink(ws+"/name", map[bool]string{false: ws + "/good/file", true: secret + "/file"}[outside])
		}},
		{"a link for its folder", "name/file", func(ws, secret string, outside bool) error {
			return relink(ws+"/name", map[bool]string{false: ws + "/good", true: secret}[outside])
		}},
		{"the folder itself and a link", "dir/file", func(ws, secret string, outside bool) error {
			if outside {
				return errors.Join(os.Rename(ws+"/dir", ws+"/away"), os.Symlink(secret, ws+"/dir"))
			}
			return errors.Join(os.Remove(ws+"/dir"), os.Rename(ws+"/away", ws+"/dir"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tl, home, ws := tools(t, func(c *Command) { c.Profile.Hide = []string{"~/secret"} })
			secret := filepath.Dir(write(t, "SECRET", home, "secret/file"))
			write(t, "good", ws, "good/file")
			write(t, "good", ws, "dir/file")
			if err := relink(ws+"/name", ws+"/good"); err != nil {
				t.Fatal(err)
			}
			var stop atomic.Bool
			var swapper sync.WaitGroup
			swapper.Go(func() {
				for outside := true; !stop.Load(); outside = !outside {
					if err := test.swap(ws, secret, outside); err != nil {
						t.Error(err)
						return
					}
				}
			})
			end := func() {
				stop.Store(true)
				swapper.Wait()
			}
			defer end()
			opened, refused := 0, 0
			for i := 0; i < 1500 || i < 40000 && (opened == 0 || refused == 0); i++ {
				f, err := tl.OpenRead(context.Background(), test.path)
				if err != nil {
					refused++
				} else if text := read(t, f); text != "good" {
					t.Fatalf("read %q", text)
				} else {
					opened++
				}
				if f, err := tl.OpenWrite(context.Background(), test.path); err == nil {
					if _, err := f.WriteAt([]byte("good"), 0); err != nil {
						t.Error(err)
					}
					f.Close()
				}
			}
			end()
			if text, err := os.ReadFile(secret + "/file"); err != nil || string(text) != "SECRET" {
				t.Fatalf("the secret was written: %q, %v", text, err)
			}
			t.Logf("opened %d, refused %d", opened, refused)
			if opened == 0 || refused == 0 {
				t.Error("the names were never seen in both states")
			}
		})
	}
}

// relink makes link point to target, without a moment in which it is missing.
func relink(link, target string) error {
	next := link + ".next"
	return errors.Join(os.Symlink(target, next), os.Rename(next, link))
}
