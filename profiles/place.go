package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Place is where a command runs. All paths are absolute, clean and resolved.
type Place struct {
	OS        string // as runtime.GOOS; "" = this one
	Workspace string
	Home      string
	Cwd       string // "" = Workspace
	UID       int
	// MoreHomes are other homes whose secrets the command could read: the
	// user database's where HOME names another, and, for root, those of other
	// people.
	MoreHomes []string
	// RuntimeDir is XDG_RUNTIME_DIR; "" = /run/user/UID.
	RuntimeDir string
	// GitDirs are the git directories outside of the workspace that belong to
	// it: a linked worktree's common directory and its own.
	GitDirs []string
	// Environ is the caller's environment. It tells where secrets and sockets
	// were moved to, and which programs are in use.
	Environ []string
	Memory  int64 // bytes of memory that the machine has; 0 = ask the system

	StateDir  string // our own state: grants, quarantine, spilled output
	ConfigDir string // our own configuration
	CacheDir  string // this workspace's private cache; "" = a folder in the temporary directory
	TmpDir    string // this workspace's session /tmp
}

func (w *Place) os() string  { return cmp.Or(w.OS, runtime.GOOS) }
func (w *Place) cwd() string { return cmp.Or(w.Cwd, w.Workspace) }

// getenv returns a variable of the caller's environment; of several with one
// name the last.
func (w *Place) getenv(name string) string {
	for _, v := range slices.Backward(w.Environ) {
		if len(v) > len(name) && v[len(name)] == '=' && v[:len(name)] == name {
			return v[len(name)+1:]
		}
	}
	return ""
}

// tmp is the temporary directory as the command sees it.
func (w *Place) tmp() string {
	if w.os() == "darwin" && w.TmpDir != "" {
		return w.TmpDir // macOS has no mounts that could put another one at /tmp
	}
	return "/tmp"
}

// expand makes "~/x" absolute.
func (w *Place) expand(name string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok {
		return path.Join(w.Home, rest)
	}
	return name
}

// resolve makes a path of the caller's absolute.
func (w *Place) resolve(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(w.cwd(), name)
}

// movedFolder is a folder of the home that the XDG Base Directory Specification
// lets the user move.
type movedFolder struct{ from, to string }

func (w *Place) movedFolders() []movedFolder {
	var moved []movedFolder
	for _, m := range []struct{ name, from string }{
		{"XDG_CONFIG_HOME", "~/.config/"},
		{"XDG_DATA_HOME", "~/.local/share/"},
		{"XDG_STATE_HOME", "~/.local/state/"},
		{"XDG_CACHE_HOME", "~/.cache/"},
	} {
		to := w.getenv(m.name)
		if !path.IsAbs(to) { // "invalid and must be ignored"
			continue
		}
		if to = path.Clean(to) + "/"; to != w.expand(m.from)+"/" && to != "//" {
			moved = append(moved, movedFolder{m.from, to})
		}
	}
	return moved
}

// canHide says whether a path that a variable names is a secret's: people set
// such variables to /dev/null, and one that names a folder of programs or the
// workspace itself would hide those.
func (w *Place) canHide(file string) bool {
	for _, dir := range [...]string{"/dev", "/proc", "/sys"} {
		if sandbox.Covers(dir, file) {
			return false
		}
	}
	return file != "/" && !w.needs(file)
}

// needs says whether the command works in dir or below it, so that dir cannot
// be hidden.
func (w *Place) needs(dir string) bool {
	for _, used := range [...]string{w.Workspace, w.cwd(), w.Home, w.CacheDir} {
		if used != "" && sandbox.Covers(dir, used) {
			return true
		}
	}
	for _, used := range w.GitDirs {
		if sandbox.Covers(dir, used) {
			return true
		}
	}
	for _, used := range filepath.SplitList(w.getenv("PATH")) {
		if strings.HasPrefix(used, "/") && sandbox.Covers(dir, path.Clean(used)) {
			return true
		}
	}
	return false
}

// check refuses a place in which no promise could be kept.
func (w *Place) check() error {
	for _, d := range []struct{ field, path string }{
		{"workspace", w.Workspace},
		{"home", w.Home},
		{"working directory", w.cwd()},
	} {
		if !path.IsAbs(d.path) || path.Clean(d.path) != d.path {
			return &sandbox.SpecError{Field: d.field, Value: d.path, Err: errors.New("not an absolute, clean path")}
		}
	}
	if w.Workspace == "/" {
		return &sandbox.SpecError{
			Field: "workspace", Value: "/", Err: errors.New("the whole file system cannot be a workspace"),
			Hint: "go to the project's directory, or name it with --workspace DIR",
		}
	}
	if w.Workspace != w.Home && sandbox.Covers(w.Workspace, w.Home) {
		return &sandbox.SpecError{
			Field: "workspace", Value: w.Workspace, Err: fmt.Errorf("it holds the home directory %s", w.Home),
			Hint: "go to the project's directory, or name it with --workspace DIR",
		}
	}
	return nil
}

// checkWritable refuses a workspace that belongs to the system.
func (w *Place) checkWritable() error {
	for _, row := range systemRows {
		if w.Workspace == row.Path || row.Below && sandbox.Covers(row.Path, w.Workspace) {
			return &sandbox.SpecError{
				Field: "workspace", Value: w.Workspace, Err: fmt.Errorf("a directory of the system (%s), which no command is given to write to", row.Reason),
				Hint: "go to the project's directory, or name it with --workspace DIR; --write PATH opens what has to be written to here",
			}
		}
	}
	return nil
}
