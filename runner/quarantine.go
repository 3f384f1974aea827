package runner

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
// mounted over it without a placeholder on the host. One that is a symbolic
// link cannot either: what is mounted lies over the link's target. What appears
// under such a name is moved out of the workspace after the run, into a
// directory of ours, where nothing runs it, and a link is put back.
//
// That is done when no run is left in the workspace: a process that still runs
// could follow, through a directory that it holds open, what is moved into
// ours. Until then a run that ends leaves its record for the last one.

// maxQuarantined bounds what is read or copied of one name: entries and bytes.
const (
	maxQuarantined      = 1000
	maxQuarantinedBytes = 16 << 20
)

// maxRecord bounds a record, which only we write, in bytes.
const maxRecord = 16 << 20

// NoticeQuarantined is a protected name that appeared and was moved away.
const NoticeQuarantined = "quarantined"

// record is what is kept of a run while it lasts, and until the last run that
// overlaps with it has ended. If we are killed, the next run looks after the
// names.
type record struct {
	Workspace string            `json:"workspace"`
	Began     time.Time         `json:"began"`
	Absent    []string          `json:"absent"`                // protected names that were not there
	Links     map[string]string `json:"links,omitempty"`       // those that were, or lay below, symbolic links, and what these held
	Free      []string          `json:"unprotected,omitempty"` // names that the run was allowed to make
	Checked   map[string]string `json:"checked,omitempty"`     // git configurations that the run may write, and what they held
}

// add joins r with the record of an overlapping run.
func (r *record) add(o record) {
	// What the first of them found no run had written yet.
	first, later := o.Checked, r.Checked
	if r.Began.Before(o.Began) {
		first, later = later, first
	}
	r.Checked = maps.Clone(later)
	if r.Checked == nil {
		r.Checked = map[string]string{}
	}
	maps.Copy(r.Checked, first)
	if o.Began.Before(r.Began) {
		r.Began = o.Began
	}
	r.Absent = union(r.Absent, o.Absent)
	r.Free = union(r.Free, o.Free)
	r.Links = maps.Clone(r.Links)
	if r.Links == nil {
		r.Links = map[string]string{}
	}
	for path, text := range o.Links {
		if _, known := r.Links[path]; !known {
			r.Links[path] = text
		}
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// free says whether a run was allowed to make path.
func (r *record) free(path string) bool {
	return slices.ContainsFunc(r.Free, func(name string) bool { return strings.HasSuffix(path, "/"+name) })
}

// watchman looks after the protected names of one run that cannot be mounted
// over.
type watchman struct {
	where  profiles.Place
	dir    string   // of the records of this workspace
	file   *os.File // our record, locked as long as the run lasts
	record record
}

// startWatch notes what the names are and writes the record of a run. unprotect
// are the names that the run may make. Without a record, the names are noted
// all the same.
func startWatch(where profiles.Place, names []sandbox.Name, unprotect []string) ([]guard, *watchman, error) {
	w := &watchman{where: where, dir: filepath.Join(where.StateDir, "runs", workspaceID(where.Workspace))}
	w.record = record{Workspace: where.Workspace, Began: time.Now(), Free: unprotect}
	all, err := w.lockRecords()
	if err != nil {
		return watchNames(names), nil, err
	}
	defer all.Close()
	// Looked at while no other run can move anything away.
	guards := watchNames(names)
	w.record.Links, w.record.Checked = map[string]string{}, map[string]string{}
	for _, g := range guards {
		switch {
		case g.name.Guard == sandbox.Checked:
			text, err := readSmall(g.name.Path, maxGitConfig)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return guards, nil, err
			}
			w.record.Checked[g.name.Path] = string(text)
			continue
		case g.name.Guard != sandbox.Block:
			continue
		case g.before == "":
			w.record.Absent = append(w.record.Absent, g.name.Path)
			continue
		case g.link != "":
			w.record.Links[g.name.Path] = g.link
		}
		w.linksOn(g.name.Path)
	}
	text, err := json.Marshal(w.record)
	if err != nil {
		return guards, nil, err
	}
	w.file, err = os.OpenFile(filepath.Join(w.dir, token()+".json"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return guards, nil, err
	}
	if err = lock(w.file); err == nil {
		_, err = w.file.Write(text)
	}
	if err != nil {
		w.stop()
		return guards, nil, err
	}
	return guards, w, nil
}

// linksOn notes the links by which a name is reached, and those on the way to
// where these lead: who replaces one of them replaces the name.
func (w *watchman) linksOn(path string) {
	const most = 40 // links that the kernel follows (path_resolution(7))
	at := w.top(path)
	rest, err := filepath.Rel(at, path)
	for links := 0; err == nil && rest != "" && links < most; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		at = filepath.Join(at, name) // of what is no link: ".." is what it says
		text, err := os.Readlink(at)
		if err != nil {
			continue
		}
		links++
		if within(at, w.top(at)) {
			w.record.Links[at] = text
		}
		if at = filepath.Dir(at); filepath.IsAbs(text) {
			at = "/"
		}
		rest = text + "/" + rest
	}
}

// lockRecords takes the lock under which records are made, read and removed,
// so that none is seen before it is written and locked, and of two runs that
// end at once one is the last.
func (w *watchman) lockRecords() (*os.File, error) { return lockIn(w.where.StateDir, w.dir) }

// others says whether another run is on in the workspace, and returns the
// records of those that ended, with their files.
func (w *watchman) others() (on bool, left []record, files []string) {
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
			if text, err := io.ReadAll(io.LimitReader(f, maxRecord)); err == nil && json.Unmarshal(text, &r) == nil {
				left = append(left, r)
			}
			files = append(files, name)
		}
		f.Close()
	}
	return on, left, files
}

func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

func (w *watchman) stop() {
	os.Remove(w.file.Name())
	w.file.Close()
}

// finish looks at the names again and moves away what appeared, if no other run
// is left.
//
// Where the program had no mounts of its own nothing is moved: there even names
// that exist are told only.
func (w *watchman) finish(names []sandbox.Name, mounts bool) []Notice {
	look := w.record
	stays, on := "", false
	if !mounts {
		stays = "it stays, because without mounts of its own a command's names are told only"
	}
	if all, err := w.lockRecords(); err != nil {
		defer w.file.Close() // the next run looks after what it says
		stays = fmt.Sprintf("it stays, because the records of the runs cannot be read: %v", err)
	} else {
		defer all.Close()
		defer w.file.Close()
		var left []record
		var files []string
		on, left, files = w.others()
		joined := w.record
		for _, r := range left {
			joined.add(r)
		}
		if on {
			stays = "it stays until no other run is left in the workspace, and is looked at then"
			text, err := json.Marshal(joined)
			if err == nil {
				err = replaceFile(w.file.Name(), text)
			}
			if err != nil {
				files = nil // they speak for themselves
			}
		} else {
			look = joined
			files = append(files, w.file.Name())
		}
		defer func() {
			for _, name := range files {
				os.Remove(name)
			}
		}()
	}

	reasons := map[string]string{}
	for _, n := range names {
		reasons[n.Path] = n.Reason
	}
	var out []Notice
	for _, path := range look.Absent {
		if _, err := os.Lstat(path); err == nil && !harmless(path) {
			out = append(out, w.found(&look, path, reasons[path], stays))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(look.Links)) {
		if now, err := os.Readlink(path); err != nil || now != look.Links[path] {
			out = append(out, w.found(&look, path, reasons[path], stays))
		}
	}
	if !on {
		for _, path := range slices.Sorted(maps.Keys(look.Checked)) {
			out = append(out, w.checked(path, look.Checked[path])...)
		}
	}
	return out
}

// checked looks at a git configuration that the runs could write.
func (w *watchman) checked(path, before string) []Notice {
	changed, err := w.restoreGitConfig(path, before)
	if changed == nil && err == nil {
		return nil
	}
	text := path + ": " + strings.Join(changed, ", ")
	if err == nil {
		text += " was set during the run and may run programs; put back as it was"
	} else {
		text += fmt.Sprintf(" may run programs, and is not put back: %v", err)
	}
	return []Notice{{Kind: NoticeProtected, Path: path, Text: text}}
}

// found reports a name that appeared, or that is no longer the link that it
// was, and moves it away unless there is a reason why it stays.
func (w *watchman) found(r *record, path, reason, stays string) Notice {
	n := Notice{Kind: NoticeProtected, Path: path, Text: path + " appeared during the run"}
	link := r.Links[path]
	_, err := os.Lstat(path)
	there := err == nil
	switch {
	case link != "" && there:
		n.Text = fmt.Sprintf("%s, a link to %s, was replaced during the run", path, link)
	case link != "":
		n.Text = fmt.Sprintf("%s, a link to %s, was removed during the run", path, link)
	}
	if reason != "" {
		n.Text += ": " + reason
	}
	switch {
	case stays != "":
	case r.free(path):
		stays = "it stays, because one of the runs at that time was allowed to make it"
	case there && w.committed(path, r.Began):
		// Not that git put it there: a command may have stored it in the
		// repository in an earlier run. So it is told.
		stays = "it stays, because its content was in the repository before"
	}
	if stays != "" {
		if there {
			n.Text += "; " + stays
		}
		return n
	}
	if there {
		id, err := w.move(path, reason)
		if err != nil {
			n.Text += fmt.Sprintf("; it stays, because it could not be moved away: %v", err)
			return n
		}
		n.Kind = NoticeQuarantined
		n.Text += "; moved away, take it back with: sandbox-exec quarantine restore " + id
	}
	if link != "" {
		if err := w.relink(path, link); err != nil {
			n.Text += fmt.Sprintf("; the link could not be put back: %v", err)
		} else {
			n.Text += "; the link is put back"
		}
	}
	return n
}

// harmless knows what git init and git clone make themselves: hooks that are
// samples, which do not run, and a configuration that names no program.
func harmless(path string) bool {
	switch filepath.Base(path) {
	case ".git":
		// A directory is judged by what in it runs; a file or a link sends git
		// to a repository that the command has made elsewhere.
		info, err := os.Lstat(path)
		return err == nil && info.IsDir()
	case "hooks":
		// A link can be turned to others, by way of another link, unseen.
		dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return false
		}
		defer dir.Close()
		entries, err := dir.ReadDir(maxQuarantined) // a command can make millions
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".sample") || !e.Type().IsRegular() {
				return false
			}
		}
		return len(entries) < maxQuarantined && (err == nil || errors.Is(err, io.EOF))
	case "config":
		text, err := readSmall(path, 64<<10)
		return err == nil && plainGitConfig(string(text))
	}
	return false
}

// Quarantined is what was moved away.
type Quarantined struct {
	ID        string    `json:"id"`
	Path      string    `json:"path"` // where it was
	Workspace string    `json:"workspace"`
	Top       string    `json:"top"` // the workspace, or the git directory that it was in
	Reason    string    `json:"reason"`
	When      time.Time `json:"when"`
}

func quarantineDir(state string) string { return filepath.Join(state, "quarantine") }

// top is the directory beyond whose links nothing is moved or made.
func (w *watchman) top(path string) string {
	for _, g := range w.where.GitDirs {
		if within(path, g) {
			return g // the first is the outermost, which no command can replace
		}
	}
	return w.where.Workspace
}

// spot is where a name is. The way to it may lead through links that a command
// made: it is gone through an os.Root, which stays inside.
type spot struct {
	root   *os.Root
	rel    string // from root
	parent *os.File
}

func openSpot(top, path string) (*spot, error) {
	rel, err := filepath.Rel(top, path)
	if err == nil && !filepath.IsLocal(rel) {
		err = fmt.Errorf("%s is not in %s", path, top)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	parent, err := root.Open(filepath.Dir(rel))
	if err != nil {
		root.Close()
		return nil, err
	}
	return &spot{root, rel, parent}, nil
}

func (s *spot) close() {
	s.parent.Close()
	s.root.Close()
}

func (s *spot) dir() int     { return int(s.parent.Fd()) }
func (s *spot) base() string { return filepath.Base(s.rel) }

// relink puts a link back.
func (w *watchman) relink(path, link string) error {
	s, err := openSpot(w.top(path), path)
	if err != nil {
		return err
	}
	defer s.close()
	return unix.Symlinkat(link, s.dir(), s.base())
}

// move takes a name out of the workspace.
func (w *watchman) move(path, reason string) (string, error) {
	q := Quarantined{
		ID: token(), Path: path, Workspace: w.where.Workspace, Top: w.top(path),
		Reason: reason, When: time.Now().UTC(),
	}
	s, err := openSpot(q.Top, path)
	if err != nil {
		return "", err
	}
	defer s.close()
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
	to, err := openSpot(dir, filepath.Join(dir, "item"))
	if err != nil {
		return "", err
	}
	defer to.close()
	err = unix.Renameat(s.dir(), s.base(), to.dir(), "item")
	if errors.Is(err, unix.EXDEV) {
		if err = copyTree(s.root, s.rel, to.root, "item"); err == nil {
			if err := s.root.RemoveAll(s.rel); err != nil {
				// What is removed already is only in the copy.
				return "", fmt.Errorf("%w; a copy of it all is in %s", err, dir)
			}
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return q.ID, nil
}

// copyTree copies regular files, directories and links; anything else, or too
// much of it, is an error.
func copyTree(from *os.Root, name string, to *os.Root, dst string) error {
	entries, size := 0, int64(0)
	return fs.WalkDir(from.FS(), name, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxQuarantined {
			return errors.New("more than 1,000 files")
		}
		dst := dst + strings.TrimPrefix(p, name)
		switch {
		case e.IsDir():
			return to.Mkdir(dst, 0o700)
		case e.Type() == fs.ModeSymlink:
			text, err := from.Readlink(p)
			if err != nil {
				return err
			}
			return to.Symlink(text, dst)
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", p)
		}
		in, err := from.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer in.Close()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		out, err := to.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
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

// Restore puts back what was moved away. It replaces nothing, and follows no
// link out of the workspace.
func Restore(id string) (Quarantined, error) {
	all, err := Quarantine()
	if err != nil {
		return Quarantined{}, err
	}
	i := slices.IndexFunc(all, func(q Quarantined) bool { return q.ID == id })
	if i < 0 {
		return Quarantined{}, &CommandError{Field: "quarantine", Value: id, Err: errors.New("no such entry"), Hint: "see: sandbox-exec quarantine list"}
	}
	q := all[i]
	home, _ := homes(nil)
	dir := filepath.Join(quarantineDir(xdgDir("XDG_STATE_HOME", home, ".local/state")), id)
	fail := func(err error) (Quarantined, error) {
		hint := "what it holds is in " + filepath.Join(dir, "item")
		if errors.Is(err, fs.ErrExist) {
			err, hint = fmt.Errorf("%s is there again", q.Path), "move it away first"
		}
		return q, &CommandError{Field: "quarantine", Value: id, Err: err, Hint: hint}
	}
	from, err := openSpot(dir, filepath.Join(dir, "item"))
	if err != nil {
		return fail(err)
	}
	defer from.close()
	to, err := openSpot(q.Top, q.Path)
	if err != nil {
		return fail(err)
	}
	defer to.close()
	err = renameNew(from.dir(), "item", to.dir(), to.base())
	if errors.Is(err, unix.EXDEV) {
		part := ".sandbox-exec-" + token()
		path := filepath.Join(filepath.Dir(to.rel), part)
		if err = copyTree(from.root, "item", to.root, path); err == nil {
			err = renameNew(to.dir(), part, to.dir(), to.base())
		}
		if err != nil {
			to.root.RemoveAll(path)
		}
	}
	if err != nil {
		return fail(err)
	}
	return q, os.RemoveAll(dir)
}

func token() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// committed says whether all that lies at path was in the repository before
// the run began, as what a checkout makes was.
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
