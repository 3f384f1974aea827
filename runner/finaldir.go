package runner

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// finalDirFD is the descriptor on which a shell tells where it is in the end.
// It is above those that scripts use, and below none that a shell keeps for
// itself: bash takes the next free one.
const finalDirFD = 99

// maxDir is the longest path of a directory, in bytes (PATH_MAX, path_resolution(7)).
const maxDir = 4096

// endOf is a writer that keeps what can be the path of a directory and a
// newline.
type endOf struct{ text []byte }

func (e *endOf) Write(p []byte) (int, error) {
	e.text = append(e.text, p...)
	if n := len(e.text) - (maxDir + 1); n > 0 {
		e.text = append(e.text[:0], e.text[n:]...)
	}
	return len(p), nil
}

// asksDir says whether the shell is to tell where it is in the end. A text in
// which nothing can change the directory is left as it is: a trap costs a
// process, and a shell without one can become the last program of its text.
func (c *Command) asksDir() bool { return c.FinalDir && changesDir(c.Script) }

func changesDir(script string) bool {
	for _, word := range []string{"cd", "pushd", "popd", "source", "eval", "."} {
		if strings.Contains(script, word) {
			return true
		}
	}
	return false
}

// tellDir puts before a script what makes its shell tell. Nothing else of it
// changes: not its exit status, not the numbers of its lines. A script that
// sets a trap of its own for EXIT tells nothing.
func tellDir(script string, bash bool) string {
	to := "/proc/self/fd/99" // POSIX shells know descriptors of one digit only
	if bash {
		to = "&99"
	}
	return "trap '{ command pwd -P >" + to + " || :; } 2>/dev/null' EXIT; " + script
}

// listen makes the pipe on which the shell tells.
func (s *streams) listen(k *call) error {
	script := tellDir(k.Script, filepath.Base(k.exec.Path) == "bash")
	if !k.asksDir() || len(script) > maxScript || len(k.ExtraFiles) > finalDirFD-3 || k.spec.Limits.OpenFiles > 0 && k.spec.Limits.OpenFiles <= finalDirFD+1 {
		return nil
	}
	s.lastDir = new(endOf)
	o, err := newOutlet(s.lastDir, &limit{})
	if err != nil {
		return err
	}
	s.dir = o
	s.ours = append(s.ours, o.write)
	files := make([]*os.File, finalDirFD-3+1)
	copy(files, k.ExtraFiles)
	files[finalDirFD-3] = o.write
	k.exec.ExtraFiles = files
	k.exec.Args[2] = script
	return nil
}

// finalDir is where the shell was in the end, if that can be told to others.
func (t *Task) finalDir() string {
	s := &t.streams
	if t.stays {
		return t.result.Dir
	}
	if s.dir == nil || !s.dir.delivered() {
		return ""
	}
	dir := strings.TrimSuffix(string(s.lastDir.text), "\n")
	// Whatever the command wrote: it is a directory here, too, and not in a
	// /tmp that only the command sees.
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || len(dir) > maxDir || !utf8.ValidString(dir) || strings.ContainsAny(dir, "\n\x00") {
		return ""
	}
	if !sandbox.Covers(t.place.Workspace, dir) && (sandbox.Covers("/tmp", dir) || sandbox.Covers("/dev/shm", dir)) {
		return ""
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}
