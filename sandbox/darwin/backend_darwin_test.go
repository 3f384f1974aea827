package darwin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// confined runs a script under the real thing.
func confined(t *testing.T, script string, change func(*sandbox.Spec)) (sandbox.Exit, string) {
	t.Helper()
	dir := scratch(t)
	for name, text := range map[string]string{"ws/file": "in the workspace", "secret/key": "the secret", "out": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.OpenFile(dir+"/out", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	spec := sandbox.Spec{
		Workspace: dir + "/ws", Home: dir,
		Files: []sandbox.FileRule{
			{Path: "/", Access: sandbox.ReadOnly},
			{Path: dir + "/ws", Access: sandbox.ReadWrite},
			{Path: dir + "/secret", Sort: sandbox.Secret},
		},
		Protect: []sandbox.Name{{Path: dir + "/ws/.git/hooks"}},
		Limits:  sandbox.Limits{Memory: 1 << 30, PIDs: 64},
	}
	if change != nil {
		change(&spec)
	}
	p, err := New().Start(context.Background(), &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp"},
		Dir: dir + "/ws", Stdout: out, Stderr: out,
	}, spec)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	return exit, string(text)
}

func TestBackendHolds(t *testing.T) {
	for script, want := range map[string]string{ // what the output holds; "!" = the status is not 0
		"cat file; echo x > new && cat new":                     "in the workspacex\n",
		"echo x > $TMPDIR/f && cat $TMPDIR/f":                   "x\n",
		"cat ../secret/key":                                     "!Operation not permitted",
		"ln ../secret/key k && cat k":                           "!Operation not permitted",
		"ln -s ../secret/key s; cat s":                          "!Operation not permitted",
		"mv ../secret moved; cat moved/key":                     "!Operation not permitted",
		"echo x > ../outside":                                   "!Operation not permitted",
		"echo x > $HOME/outside":                                "!",
		"mkdir -p .git/hooks && echo x > .git/hooks/pre-commit": "!Operation not permitted",
		"mkdir -p .GIT/HOOKS && echo x > .GIT/HOOKS/pre-commit": "!Operation not permitted",
		"echo > /dev/tcp/127.0.0.1/22":                          "!",
		"/usr/bin/open -a Calculator":                           "!",
		"/usr/bin/sandbox-exec -p '(version 1)(allow default)(deny file-write*)' /usr/bin/true": "!sandbox_apply",
	} {
		exit, out := confined(t, script, nil)
		want, refused := strings.CutPrefix(want, "!")
		if refused != (exit.Status.ExitStatus() != 0) || !strings.Contains(out, want) || strings.Contains(out, "the secret") {
			t.Errorf("%s: status %d, output %q", script, exit.Status.ExitStatus(), out)
		}
	}
}

func TestBackendEndsTheTree(t *testing.T) {
	exit, out := confined(t, "for i in 1 2 3 4 5 6 7 8 9; do sleep 300 & done; wait", func(s *sandbox.Spec) { s.Limits.PIDs = 5 })
	if !exit.PIDsMax {
		t.Errorf("%+v, %q", exit, out)
	}
}

func TestDoctor(t *testing.T) {
	r := New().Doctor()
	if r.Tier != sandbox.LayerSeatbelt || len(r.Layers) < 4 || r.Layers[0].State != sandbox.Enforced {
		t.Errorf("%+v", r)
	}
}

func TestSetup(t *testing.T) {
	dir := scratch(t)
	text, err := New().Setup(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh"}, Dir: dir}, sandbox.Spec{
		Workspace: dir, Files: []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}, {Path: dir, Access: sandbox.ReadWrite}},
	})
	if err != nil || !strings.Contains(text, "(version 1)") || !strings.Contains(text, "execute /bin/sh") {
		t.Errorf("%v\n%s", err, text)
	}
}
