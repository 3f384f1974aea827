package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a start does must not grow with the workspace: the setup for one with
// thousands of files is that for an empty one, and no directory below the top is
// opened. Time would prove neither on a busy machine.
func TestWorkspaceIsNotWalked(t *testing.T) {
	home, err := filepath.EvalSymlinks(tempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	ws := mkdir(t, home, "ws")
	c := Command{Args: []string{"/bin/true"}, Dir: ws, Workspace: ws, Wrapper: true}
	empty, err := DryRun(c)
	if err != nil {
		t.Fatal(err)
	}

	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	const dirs, files = 20, 200
	for i := range dirs {
		dir := mkdir(t, ws, fmt.Sprintf("dir%d", i))
		for j := range files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", j)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
			t.Fatal(err)
		}
	}
	full, err := DryRun(c)
	if err != nil {
		t.Fatal(err)
	}
	if empty.Setup != full.Setup {
		t.Errorf("the setup of a workspace with %d files is another one than that of an empty one:\n%s\n\n%s", dirs*files, empty.Setup, full.Setup)
	}
	if !strings.Contains(empty.Setup, ws) {
		t.Errorf("the setup does not name the workspace:\n%s", empty.Setup)
	}
	if result, err := Run(t.Context(), c); err != nil || result.ExitCode != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); err == nil && n > 0 {
		t.Errorf("a directory of the workspace was opened")
	}
	// The watch does see it.
	if _, err := os.ReadDir(filepath.Join(ws, "dir0")); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); err != nil || n == 0 {
		t.Errorf("the watch sees nothing: %v", err)
	}
}
