package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

func TestChangesOfProtectedNames(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, path string)
		during func(t *testing.T, path string)
		want   string // "" = no notice
	}{
		{"nothing", func(*testing.T, string) {}, func(*testing.T, string) {}, ""},
		{"untouched", func(t *testing.T, p string) { write(t, "a", p) }, func(*testing.T, string) {}, ""},
		{"appeared", func(*testing.T, string) {}, func(t *testing.T, p string) { write(t, "a", p) }, "appeared"},
		{"appeared as a link", func(*testing.T, string) {}, func(t *testing.T, p string) { os.Symlink("/nowhere", p) }, "appeared"},
		{"removed", func(t *testing.T, p string) { write(t, "a", p) }, func(t *testing.T, p string) { os.Remove(p) }, "removed"},
		{"changed, with its size and time put back", func(t *testing.T, p string) { write(t, "a", p) }, func(t *testing.T, p string) {
			info, _ := os.Stat(p)
			time.Sleep(20 * time.Millisecond) // ticks of the clock of the file system
			write(t, "b", p)
			os.Chtimes(p, info.ModTime(), info.ModTime())
		}, "changed"},
		{"replaced", func(t *testing.T, p string) { write(t, "a", p) }, func(t *testing.T, p string) {
			os.Rename(write(t, "a", p+".new"), p)
		}, "changed"},
		{"entry added", func(t *testing.T, p string) { mkdir(t, p) }, func(t *testing.T, p string) { write(t, "a", p, "hook") }, "changed"},
		{"entry changed", func(t *testing.T, p string) { write(t, "a", p, "hook") }, func(t *testing.T, p string) {
			time.Sleep(20 * time.Millisecond)
			write(t, "b", p, "hook")
		}, "changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(tempDir(t), "name")
			tt.before(t, path)
			guards := watchNames([]sandbox.Name{
				{Path: path, Guard: sandbox.Block, Reason: "it runs"},
			})
			tt.during(t, path)
			got := changes(guards, false, filepath.Dir(path))
			switch {
			case tt.want == "" && len(got) != 0:
				t.Errorf("notices %v, want none", got)
			case tt.want != "" && (len(got) != 1 || got[0].Path != path || !strings.Contains(got[0].Text, tt.want)):
				t.Errorf("notices %v, want one that it %s", got, tt.want)
			}
		})
	}
}

// Names that run later are told together, also new and removed ones.
func TestChangesOfNamesThatRunLater(t *testing.T) {
	dir := tempDir(t)
	var names []sandbox.Name
	for _, name := range []string{"Makefile", "package.json", "setup.py", "build.rs", ".ci"} {
		names = append(names, sandbox.Name{Path: filepath.Join(dir, name), Guard: sandbox.Notice})
	}
	names = append(names, sandbox.Name{Path: "/else/Makefile", Guard: sandbox.Notice})
	write(t, "a", dir, "Makefile")
	write(t, "a", dir, "build.rs")
	write(t, "a", dir, "setup.py")
	mkdir(t, dir, ".ci")
	guards := watchNames(names)
	if got := changes(guards, true, dir); got != nil {
		t.Errorf("nothing changed: %v", got)
	}
	time.Sleep(20 * time.Millisecond)
	write(t, "b", dir, "Makefile")
	write(t, "b", dir, "package.json")
	os.Remove(filepath.Join(dir, "setup.py"))
	write(t, "b", dir, ".ci/run")
	got := changes(guards, true, dir)
	if len(got) != 1 || got[0].Kind != NoticeLater || !strings.HasSuffix(got[0].Text, ": Makefile, package.json, setup.py, .ci") {
		t.Errorf("%v", got)
	}
}

func TestNamesThatRunLaterAreTold(t *testing.T) {
	c := absentNames(t, "echo 'all:' >Makefile; echo '{}' >package.json")
	r, err := Run(t.Context(), c)
	if err != nil || len(r.Notices) != 1 || !strings.HasSuffix(r.Notices[0].Text, ": package.json, Makefile") {
		t.Errorf("%v, %v", r.Notices, err)
	}
}
