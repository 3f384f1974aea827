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
				{Path: path, Guard: sandbox.Notice},
			})
			tt.during(t, path)
			got := changes(guards, false)
			switch {
			case tt.want == "" && len(got) != 0:
				t.Errorf("notices %v, want none", got)
			case tt.want != "" && (len(got) != 1 || got[0].Path != path || !strings.Contains(got[0].Text, tt.want)):
				t.Errorf("notices %v, want one that it %s", got, tt.want)
			}
		})
	}
}
