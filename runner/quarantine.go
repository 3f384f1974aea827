package runner

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// A protected name that is not there cannot be protected: nothing can be
// mounted over it without a placeholder on the host. What appears under such a
// name is moved out of the workspace after the run, into a directory of ours,
// where nothing runs it. That is done only where nobody but the command can
// have made it as far as we know: no other run in the workspace at the time.

// maxQuarantined bounds what is read or copied of one name: entries and bytes.
const (
	maxQuarantined      = 1000
	maxQuarantinedBytes = 16 << 20
)

// NoticeQuarantined is a protected name that appeared and was moved away.
const NoticeQuarantined = "quarantined"

// record is what is kept of a run while it lasts: if we are killed, the next
// run finds it and looks after the names.
type record struct {
	Workspace string    `json:"workspace"`
	Began     time.Time `json:"began"`
	Absent    []string  `json:"absent"` // protected names that were not there
}

// watchman looks after absent protected names of one run.
type watchman struct {
	where   profiles.Place
	dir     string // of the records of this workspace
	file    *os.File
	record  record
	overlap bool
	starts  int64 // runs that ever started in the workspace, ours the last
	left    []record
}

// startWatch writes the record of a run, and collects those that killed runs
// left.
func startWatch(where profiles.Place, guards []guard) (*watchman, error) {
	w := &watchman{where: where, dir: filepath.Join(where.StateDir, "runs", workspaceID(where.Workspace))}
	if err := ownDir(where.StateDir, w.dir); err != nil {
		return nil, err
	}
	w.record = record{Workspace: where.Workspace, Began: time.Now()}
	for _, g := range guards {
		if g.before == "" {
			w.record.Absent = append(w.record.Absent, g.name.Path)
		}
	}
	text, err := json.Marshal(w.record)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(w.dir, token()+".json")
	w.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(w.file); err != nil {
		w.file.Close()
		os.Remove(name)
		return nil, err
	}
	if _, err := w.file.Write(text); err != nil {
		w.stop()
		return nil, err
	}
	// Ours is there before the others are looked at, so that of two runs that
	// start at once at least one sees the other, and each sees a later one by
	// the count of starts.
	if w.starts, err = w.count(true); err != nil {
		w.stop()
		return nil, err
	}
	w.overlap, w.left = w.others()
	return w, nil
}

// count reads, and for a start raises, the number of runs that ever started.
func (w *watchman) count(start bool) (int64, error) {
	f, err := os.OpenFile(filepath.Join(w.dir, "starts"), os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if start {
		if _, err := f.Write([]byte{'.'}); err != nil {
			return 0, err
		}
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// others says whether another run is on in the workspace, and takes over the
// records of those that ended without a word.
func (w *watchman) others() (on bool, left []record) {
	names, _ := filepath.Glob(filepath.Join(w.dir, "*.json"))
	for _, name := range names {
		if name == w.file.Name() {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if lock(f) != nil {
			on = true
		} else {
			var r record
			if text, err := io.ReadAll(io.LimitReader(f, 1<<20)); err == nil && json.Unmarshal(text, &r) == nil {
				left = append(left, r)
			}
			os.Remove(name)
		}
		f.Close()
	}
	return on, left
}

func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

func (w *watchman) stop() {
	os.Remove(w.file.Name())
	w.file.Close()
}

// finish looks at the names again and moves away what appeared, if nobody else
// can have made it.
//
// Where the program had no mounts of its own nothing is moved: there even names
// that exist are told only.
func (w *watchman) finish(names []sandbox.Name, mounts bool) []Notice {
	defer w.stop()
	on, _ := w.others()
	starts, err := w.count(false)
	alone := err == nil && !on && !w.overlap && starts == w.starts && mounts

	reasons := map[string]string{}
	for _, n := range names {
		reasons[n.Path] = n.Reason
	}
	var out []Notice
	seen := map[string]bool{}
	for _, r := range append(w.left, w.record) {
		for _, path := range r.Absent {
			if seen[path] {
				continue
			}
			if _, err := os.Lstat(path); err != nil || harmless(path) || w.committed(path, r.Began) {
				continue
			}
			seen[path] = true
			out = append(out, w.found(path, reasons[path], alone))
		}
	}
	return out
}

// found reports a name, and moves it away.
func (w *watchman) found(path, reason string, alone bool) Notice {
	n := Notice{Kind: NoticeProtected, Path: path, Text: fmt.Sprintf("%s appeared during the run", path)}
	if reason != "" {
		n.Text += ": " + reason
	}
	if !alone {
		n.Text += "; it stays, because something else may have made it"
		return n
	}
	id, err := w.move(path, reason)
	if err != nil {
		n.Text += fmt.Sprintf("; it stays, because it could not be moved away: %v", err)
		return n
	}
	n.Kind = NoticeQuarantined
	n.Text += "; moved away, take it back with: sandbox-exec quarantine restore " + id
	return n
}

// harmless knows what git init and git clone make themselves: hooks that are
// samples, which do not run, and a configuration that names no program.
func harmless(path string) bool {
	switch filepath.Base(path) {
	case "hooks":
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".sample") || !e.Type().IsRegular() {
				return false
			}
		}
		return err == nil
	case "config":
		text, err := readSmall(path, 64<<10)
		return err == nil && plainGitConfig(string(text))
	}
	return false
}

// plainGitConfig says whether a repository's configuration holds nothing but
// what git writes at init, clone and branch (git-config(1)). Every other key,
// and an address that names a transport helper, may run a program.
func plainGitConfig(text string) bool {
	plain := map[string][]string{
		"core":   {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"},
		"remote": {"url", "fetch"}, "branch": {"remote", "merge", "rebase"}, "user": {"name", "email"}, "init": {"defaultbranch"},
		"extensions": {"objectformat", "refstorage"},
	}
	var keys []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case strings.HasSuffix(line, `\`):
			return false
		case line[0] == '[':
			name, rest, ok := strings.Cut(line[1:], "]")
			section, _, _ := strings.Cut(name, " ")
			if keys = plain[strings.ToLower(section)]; !ok || rest != "" || keys == nil {
				return false
			}
		default:
			key, value, _ := strings.Cut(line, "=")
			key = strings.ToLower(strings.TrimSpace(key))
			if !slices.Contains(keys, key) || key == "url" && strings.Contains(value, "::") {
				return false
			}
		}
	}
	return true
}

// Quarantined is what was moved away.
type Quarantined struct {
	ID        string    `json:"id"`
	Path      string    `json:"path"` // where it was
	Workspace string    `json:"workspace"`
	Reason    string    `json:"reason"`
	When      time.Time `json:"when"`
}

func quarantineDir(state string) string { return filepath.Join(state, "quarantine") }

// move takes a name out of the workspace. The way to it may lead through links
// that the command made: it is gone through an os.Root, which stays inside.
func (w *watchman) move(path, reason string) (string, error) {
	top := w.where.Workspace
	for _, g := range w.where.GitDirs {
		if within(path, g) {
			top = g
		}
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", err
	}
	defer root.Close()
	rel, err := filepath.Rel(top, path)
	if err != nil {
		return "", err
	}
	parent, err := root.Open(filepath.Dir(rel))
	if err != nil {
		return "", err
	}
	defer parent.Close()

	q := Quarantined{ID: token(), Path: path, Workspace: w.where.Workspace, Reason: reason, When: time.Now().UTC()}
	dir := filepath.Join(quarantineDir(w.where.StateDir), q.ID)
	if err := ownDir(w.where.StateDir, dir); err != nil {
		return "", err
	}
	text, err := json.Marshal(q)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "record.json"), text, 0o600)
	}
	if err != nil {
		return "", err
	}
	to, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer to.Close()
	err = unix.Renameat(int(parent.Fd()), filepath.Base(rel), int(to.Fd()), "item")
	if errors.Is(err, unix.EXDEV) {
		if err = copyTree(root, rel, filepath.Join(dir, "item")); err == nil {
			err = root.RemoveAll(rel)
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return q.ID, nil
}

// copyTree copies regular files and directories; anything else, or too much of
// it, is an error.
func copyTree(root *os.Root, name, to string) error {
	entries, size := 0, int64(0)
	return fs.WalkDir(root.FS(), name, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxQuarantined {
			return errors.New("more than 1,000 files")
		}
		dst := to + strings.TrimPrefix(p, name)
		if e.IsDir() {
			return os.Mkdir(dst, 0o700)
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", p)
		}
		in, err := root.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		n, err := io.Copy(out, io.LimitReader(in, maxQuarantinedBytes-size+1))
		if size += n; err == nil && size > maxQuarantinedBytes {
			err = errors.New("more than 16 MiB")
		}
		return errors.Join(err, out.Close())
	})
}

// Quarantine lists what was moved away, the oldest first.
func Quarantine() ([]Quarantined, error) {
	home, _ := homes(nil)
	dir := quarantineDir(xdgDir("XDG_STATE_HOME", home, ".local/state"))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Quarantined
	for _, e := range entries {
		text, err := readSmall(filepath.Join(dir, e.Name(), "record.json"), 1<<20)
		if err != nil {
			continue
		}
		var q Quarantined
		if json.Unmarshal(text, &q) == nil && q.ID == e.Name() {
			out = append(out, q)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].When.Before(out[j].When) })
	return out, nil
}

// Restore puts back what was moved away. It replaces nothing.
func Restore(id string) (Quarantined, error) {
	all, err := Quarantine()
	if err != nil {
		return Quarantined{}, err
	}
	for _, q := range all {
		if q.ID != id {
			continue
		}
		home, _ := homes(nil)
		dir := filepath.Join(quarantineDir(xdgDir("XDG_STATE_HOME", home, ".local/state")), id)
		if _, err := os.Lstat(q.Path); !errors.Is(err, os.ErrNotExist) {
			return q, &CommandError{Field: "quarantine", Value: id, Err: fmt.Errorf("%s is there again", q.Path), Hint: "move it away first"}
		}
		if err := os.Rename(filepath.Join(dir, "item"), q.Path); err != nil {
			return q, err
		}
		return q, os.RemoveAll(dir)
	}
	return Quarantined{}, &CommandError{Field: "quarantine", Value: id, Err: errors.New("no such entry"), Hint: "see: sandbox-exec quarantine list"}
}

func token() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// committed says whether all that lies at path was in the repository before
// the run began: then git has put it there, as a checkout does.
func (w *watchman) committed(path string, began time.Time) bool {
	stores := append([]string{filepath.Join(w.where.Workspace, ".git")}, w.where.GitDirs...)
	root, err := os.OpenRoot(w.where.Workspace)
	if err != nil {
		return false
	}
	defer root.Close()
	rel, err := filepath.Rel(w.where.Workspace, path)
	if err != nil || !filepath.IsLocal(rel) || rel == ".git" || strings.HasPrefix(rel, ".git/") {
		return false
	}
	files, size := 0, int64(0)
	err = fs.WalkDir(root.FS(), rel, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return nil
		case !e.Type().IsRegular() || files == maxQuarantined:
			return errNew
		}
		files++
		f, err := root.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		content, err := io.ReadAll(io.LimitReader(f, maxQuarantinedBytes-size+1))
		if size += int64(len(content)); err != nil || size > maxQuarantinedBytes {
			return errNew
		}
		name := blobName(content)
		for _, s := range stores {
			if hasObject(filepath.Join(s, "objects"), name, began) {
				return nil
			}
		}
		return errNew
	})
	return err == nil && files > 0
}

var errNew = errors.New("not in the repository")
