//go:build unix

package darwin

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// scratch makes a directory whose path has no links in it.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-exec-test-*")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPrivate(t *testing.T) {
	base := scratch(t)
	spec := sandbox.Spec{Files: []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}}}
	d, err := newPrivate(base, spec)
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{
		d.path: 0o700 | os.ModeDir, d.tmp(): 0o700 | os.ModeDir, d.readOnly(): 0o700 | os.ModeDir, d.hidden(): 0o600, d.shown(): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
	// The run after one that was killed takes away what that left; what a run
	// that lives has, and what is not ours, stays.
	killed, err := newPrivate(base, spec)
	if err != nil {
		t.Fatal(err)
	}
	killed.lock.Close()
	other := base + "/" + prefix + "other"
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := newPrivate(base, spec)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{killed.path: false, d.path: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
	// What the command left in it may be closed to us.
	if err := os.MkdirAll(d.tmp()+"/a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(d.tmp()+"/a/b/c", nil, 0o400)
	os.Chmod(d.tmp()+"/a/b", 0)
	os.Chmod(d.tmp()+"/a", 0o100)
	for _, d := range []private{d, next} {
		if err := d.remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(d.path); err == nil {
			t.Errorf("%s is left", d.path)
		}
	}
}

func TestPrivateIsOutOfReach(t *testing.T) {
	base := scratch(t)
	for _, access := range []sandbox.Access{sandbox.None, sandbox.ReadOnly, sandbox.ReadWrite} {
		d, err := newPrivate(base, sandbox.Spec{Files: []sandbox.FileRule{{Path: filepath.Dir(base), Access: access}}})
		var bad *sandbox.SpecError
		if refused := errors.As(err, &bad); refused != (access == sandbox.ReadWrite) {
			t.Errorf("%v: %v", access, err)
		}
		if err == nil {
			d.remove()
		}
	}
	var setup *sandbox.SetupError
	if _, err := newPrivate(base+"/none", sandbox.Spec{}); !errors.As(err, &setup) {
		t.Errorf("no directory: %v", err)
	}
}

func TestConfine(t *testing.T) {
	dir := private{path: "/private/T/run"}
	// The session's temporary directory is in our state, which is hidden.
	files := []sandbox.FileRule{
		{Path: "/", Access: sandbox.ReadOnly}, {Path: "/state", Sort: sandbox.Hard}, {Path: "/w", Access: sandbox.ReadWrite},
	}
	for _, c := range []struct{ tmp, want string }{{"", "/private/T/run/tmp"}, {"/state/tmp/x", "/state/tmp/x"}} {
		spec := confine(sandbox.Spec{Files: files, Tmp: c.tmp}, dir)
		if spec.Tmp != c.want {
			t.Errorf("tmp is %s, want %s", spec.Tmp, c.want)
		}
		for path, want := range map[string]sandbox.Access{
			c.want + "/f": sandbox.ReadWrite, dir.hidden(): sandbox.None, dir.profile(): sandbox.None, dir.path: sandbox.None,
			dir.shown(): sandbox.ReadOnly, "/state": sandbox.None, "/state/grants": sandbox.None, "/w/x": sandbox.ReadWrite, "/etc": sandbox.ReadOnly,
		} {
			if got := sandbox.AccessOf(spec.Files, path); got != want {
				t.Errorf("tmp %q: %s is %v, want %v", c.tmp, path, got, want)
			}
		}
	}
	if len(files) != 3 {
		t.Error("the caller's rules changed")
	}
}

// The canaries are what the Spec of the run says: the profile is compiled from the
// same, so one that does not hold shows.
func TestCanaries(t *testing.T) {
	dir := private{path: "/private/T/run", tag: "0123"}
	spec := confine(sandbox.Spec{Files: []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}}}, dir)
	var kinds []string
	for _, c := range canaries(dir, spec) {
		access := sandbox.AccessOf(spec.Files, c.path)
		want := syscall.Errno(0)
		switch {
		case c.op == connect, c.op == read && access < sandbox.ReadOnly, c.op == create && access < sandbox.ReadWrite:
			want = syscall.EPERM
		}
		if c.want != want {
			t.Errorf("%s: wants %v where the Spec says %v", c.what, c.want, access)
		}
		kinds = append(kinds, [...]string{"read", "create", "connect"}[c.op]+map[bool]string{true: "+", false: "-"}[c.want == 0])
	}
	for _, kind := range []string{"read+", "read-", "create+", "create-", "connect-"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("nothing tries %s", kind)
		}
	}
	spec.Network = sandbox.NetworkHost
	if slices.ContainsFunc(canaries(dir, spec), func(c canary) bool { return c.op == connect }) {
		t.Error("the network is tried where it is open")
	}
}

func TestRetarget(t *testing.T) {
	got := retarget([]string{"TMPDIR=/tmp", "TMP=/tmp/x", "A=/tmp", "GOCACHE=/tmp/cache/go-build", "B=/tmp/cachet", "TMPDIR2=/tmpx", "C"}, "/p/tmp")
	want := []string{
		"TMPDIR=/p/tmp", "TMP=/p/tmp/x", "A=/tmp", "GOCACHE=/p/tmp/cache/go-build", "B=/tmp/cachet", "TMPDIR2=/tmpx", "C", "TMPPREFIX=/p/tmp/zsh",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := retarget([]string{"TMPPREFIX=/s/zsh"}, "/p/tmp"); !slices.Equal(got, []string{"TMPPREFIX=/s/zsh"}) {
		t.Errorf("got %q", got)
	}
}

func TestValidate(t *testing.T) {
	good := func() (*exec.Cmd, sandbox.Spec) {
		return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh"}, Dir: "/w"}, sandbox.Spec{Workspace: "/w"}
	}
	if err := sandbox.CheckCommand(good()); err != nil {
		t.Error(err)
	}
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for name, change := range map[string]func(*exec.Cmd, *sandbox.Spec){
		"no workspace":         func(_ *exec.Cmd, s *sandbox.Spec) { s.Workspace = "" },
		"all is the workspace": func(_ *exec.Cmd, s *sandbox.Spec) { s.Workspace = "/" },
		"relative":             func(_ *exec.Cmd, s *sandbox.Spec) { s.Workspace = "w" },
		"no arguments":         func(c *exec.Cmd, _ *sandbox.Spec) { c.Args = nil },
		"no directory":         func(c *exec.Cmd, _ *sandbox.Spec) { c.Dir = "" },
		"NUL":                  func(c *exec.Cmd, _ *sandbox.Spec) { c.Env = []string{"A=\x00"} },
		"a directory as stdin": func(c *exec.Cmd, _ *sandbox.Spec) { c.Stdin = dir },
	} {
		cmd, spec := good()
		change(cmd, &spec)
		var bad *sandbox.SpecError
		if err := sandbox.CheckCommand(cmd, spec); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReport(t *testing.T) {
	limits := sandbox.Limits{Memory: 1 << 30, PIDs: 64, OpenFiles: 100, FileSize: 200}
	r := report(sandbox.Spec{Limits: limits}, false, nil)
	states := map[string]sandbox.State{}
	for _, l := range r.Layers {
		states[l.Name] = l.State
		if l.State == sandbox.Weaker && (l.Why == "" || l.Lost == "") {
			t.Errorf("%+v does not say why or what that costs", l)
		}
	}
	for name, want := range map[string]sandbox.State{
		sandbox.LayerSeatbelt: sandbox.Enforced, sandbox.LayerWatch: sandbox.Weaker,
		sandbox.LayerRlimits: sandbox.Enforced, sandbox.LayerDescriptors: sandbox.Enforced,
	} {
		if states[name] != want {
			t.Errorf("%s is %v, want %v", name, states[name], want)
		}
	}
	text := func(spec sandbox.Spec, terminal bool) string {
		var b strings.Builder
		for _, l := range report(spec, terminal, nil).Layers {
			b.WriteString(l.Detail + "; " + l.Lost + "\n")
		}
		return b.String()
	}
	off := text(sandbox.Spec{Limits: limits}, false)
	// Every promise of Linux's that is weaker here.
	for _, word := range []string{"names of hidden files", "no /tmp", "hard-linked", "set-user-ID", "no loopback", "outlives", "between two looks", "100 open files", "200 bytes"} {
		if !strings.Contains(off, word) {
			t.Errorf("%q is not told in\n%s", word, off)
		}
	}
	if on := text(sandbox.Spec{Network: sandbox.NetworkHost}, true); !strings.Contains(on, "trustd") || strings.Contains(on, "no loopback") || !strings.Contains(on, "on a terminal") {
		t.Errorf("with the network, on a terminal:\n%s", on)
	}
	limits.CPUs = 2
	if got := text(sandbox.Spec{Limits: limits}, false); !strings.Contains(got, "processor time is not capped") {
		t.Errorf("a cap on processors that does not hold is not told:\n%s", got)
	}
}

func TestHoldsAll(t *testing.T) {
	blind := errors.New("proc_pid_rusage: no")
	memory := sandbox.Limits{Memory: 1 << 30}
	for name, c := range map[string]struct {
		spec        sandbox.Spec
		noFootprint error
		layer       string // that is refused
	}{
		"all that there is":       {sandbox.Spec{}, nil, ""},
		"seatbelt required":       {sandbox.Spec{Require: []string{"seatbelt"}}, nil, ""},
		"the watch required":      {sandbox.Spec{Require: []string{"watch"}}, nil, "watch"},
		"a layer of Linux":        {sandbox.Spec{Require: []string{"cgroup"}}, nil, "cgroup"},
		"blind, memory capped":    {sandbox.Spec{Limits: memory}, blind, "watch"},
		"blind, may be":           {sandbox.Spec{Limits: memory, AllowMissing: []string{"watch"}}, blind, ""},
		"blind, may and must":     {sandbox.Spec{Limits: memory, AllowMissing: []string{"watch"}, Require: []string{"watch"}}, blind, "watch"},
		"blind, memory unlimited": {sandbox.Spec{Limits: sandbox.Limits{Memory: sandbox.Unlimited}}, blind, ""},
	} {
		err := report(c.spec, false, c.noFootprint).Check(c.spec)
		var refused *sandbox.UnsupportedError
		if c.layer == "" && err != nil || c.layer != "" && (!errors.As(err, &refused) || refused.Layer != c.layer || refused.Have == "") {
			t.Errorf("%s: got %v, want layer %q refused", name, err, c.layer)
		}
	}
}
