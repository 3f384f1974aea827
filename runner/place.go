package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// place finds where c runs. It makes nothing.
func place(c *Command) (profiles.Place, []Notice, error) {
	var notices []Notice
	where := profiles.Place{
		OS:         runtime.GOOS,
		UID:        os.Getuid(),
		RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"),
		Environ:    os.Environ(),
	}
	where.Home, where.MoreHomes = homes(c.Env)

	var err error
	if where.Cwd, err = resolveDir("working directory", c.Dir); err != nil {
		return where, nil, err
	}
	if c.Workspace != "" {
		where.Workspace, err = resolveDir("workspace", c.Workspace)
		if err != nil {
			return where, nil, err
		}
	} else if where.Workspace = gitTop(where.Cwd, where.Home); where.Workspace == "" {
		where.Workspace = where.Cwd
	}
	if where.Workspace == "/" {
		return where, nil, errWholeDisk
	}

	common, gitDir, err := worktreeDirs(where.Workspace, where.Home)
	switch {
	case err != nil:
		notices = append(notices, Notice{
			Kind: NoticeWorktree,
			Path: filepath.Join(where.Workspace, ".git"),
			Text: fmt.Sprintf("git can read but not commit in this worktree: %v", err),
		})
	case common != "":
		where.GitDirs = []string{common, gitDir}
	}

	id := workspaceID(where.Workspace)
	where.ConfigDir, where.StateDir = ownDirs(where.Home)
	where.TmpDir = filepath.Join(where.StateDir, "tmp", id, "tmp")
	where.CacheDir = filepath.Join(xdgDir("XDG_CACHE_HOME", where.Home, ".cache"), id)
	return where, notices, nil
}

// imagine makes a place of what is given as text.
func imagine(at Where) (profiles.Place, error) {
	for _, dir := range []string{at.Dir, at.Workspace, at.Home} {
		if dir != "" && (!filepath.IsAbs(dir) || filepath.Clean(dir) != dir) {
			return profiles.Place{}, &CommandError{Field: "place", Value: dir, Err: errors.New("want an absolute path, and no dots between slashes")}
		}
	}
	home, _ := homes(nil)
	where := profiles.Place{
		OS: runtime.GOOS, UID: os.Getuid(), Environ: os.Environ(),
		Home: cmp.Or(at.Home, home), Cwd: at.Dir, Workspace: at.Workspace,
	}
	if where.Cwd == "" && where.Workspace == "" {
		var err error
		if where.Cwd, err = resolveDir("working directory", ""); err != nil {
			return where, err
		}
	}
	where.Cwd = cmp.Or(where.Cwd, where.Workspace)
	where.Workspace = cmp.Or(where.Workspace, gitTop(where.Cwd, where.Home), where.Cwd)
	if where.Workspace == "/" {
		return where, errWholeDisk
	}
	return where, nil
}

var errWholeDisk = &CommandError{
	Field: "workspace", Value: "/",
	Err:  errors.New("the whole file system cannot be a workspace"),
	Hint: "go to the project's directory, or name it with --workspace DIR",
}

// resolveDir returns dir, "" being the current directory, as an absolute path
// without symbolic links.
func resolveDir(field, dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return "", &CommandError{Field: field, Value: dir, Err: err, Hint: "name a directory that exists"}
	}
	return path, nil
}

// workspaceID names a workspace's directories in ours.
func workspaceID(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:8])
}

// xdgDir returns our own directory of a kind (XDG Base Directory
// Specification: a relative path is invalid and must be ignored).
func xdgDir(name, home, fallback string) string {
	base := os.Getenv(name)
	if !filepath.IsAbs(base) {
		base = filepath.Join(home, fallback)
	}
	return filepath.Join(base, "sandbox-exec")
}

// ownDirs are the directories of our configuration and state, where they really
// are: people keep ~/.config in a repository and link to it, and what is hidden
// and guarded must be what is read.
func ownDirs(home string) (config, state string) {
	config, state = xdgDir("XDG_CONFIG_HOME", home, ".config"), xdgDir("XDG_STATE_HOME", home, ".local/state")
	for _, dir := range []*string{&config, &state} {
		if real, err := (resolver{}).Resolve(*dir); err == nil {
			*dir = real
		}
	}
	return config, state
}

// homes returns the home directory of whoever runs us and others whose secrets
// we could read: the user database's where HOME names another, the one that the
// command is to be given, and, for root, those of the people on the machine.
func homes(env []string) (home string, more []string) {
	uid := os.Getuid()
	var listed []string
	passwd, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(passwd)) {
		// name:password:UID:GID:GECOS:directory:shell, passwd(5)
		fields := strings.Split(line, ":")
		if len(fields) < 7 {
			continue
		}
		id, err := strconv.Atoi(fields[2])
		if err != nil {
			continue
		}
		const firstPerson, nobody = 1000, 65534
		if id == uid || uid == 0 && id >= firstPerson && id != nobody {
			if id == uid {
				listed = append([]string{fields[5]}, listed...)
			} else {
				listed = append(listed, fields[5])
			}
		}
	}
	if h := os.Getenv("HOME"); filepath.IsAbs(h) {
		listed = append([]string{h}, listed...)
	}
	for _, v := range env {
		if h, ok := strings.CutPrefix(v, "HOME="); ok && filepath.IsAbs(h) {
			listed = append(listed, h)
		}
	}

	seen := map[string]bool{}
	for _, h := range listed {
		h = filepath.Clean(h)
		if real, err := filepath.EvalSymlinks(h); err == nil {
			h = real
		} else if home != "" {
			continue // no such directory, nothing in it to hide
		}
		if seen[h] {
			continue
		}
		seen[h] = true
		if home == "" {
			home = h
		} else {
			more = append(more, h)
		}
	}
	if home == "" {
		home = "/"
	}
	return home, more
}

// keep makes the directories that outlive a run: the session's /tmp and the
// private cache. Where it cannot, the command gets ones that go with it.
func keep(where *profiles.Place, p *profiles.Profile) []Notice {
	var notices []Notice
	if p.Tmp == "session" {
		if err := sessionTmp(where); err != nil {
			p.Tmp = "private"
			where.TmpDir = ""
			notices = append(notices, Notice{
				Kind: NoticeState, Path: where.StateDir,
				Text: fmt.Sprintf("/tmp is not kept between runs: %v", err),
			})
		}
	}
	err := error(nil)
	if within(where.CacheDir, where.Workspace) && !within(where.Home, where.Workspace) {
		err = errors.New("a command can write to the way there; XDG_CACHE_HOME leads into the workspace")
	} else {
		err = ownDir(filepath.Dir(where.CacheDir), where.CacheDir)
	}
	if err != nil {
		notices = append(notices, Notice{
			Kind: NoticeState, Path: where.CacheDir,
			Text: fmt.Sprintf("caches are not kept between runs: %v", err),
		})
		where.CacheDir = ""
	}
	return notices
}

// kept is keep for a run that does not take place: it makes nothing, and leaves
// out what is not there.
func kept(where *profiles.Place, p *profiles.Profile) []Notice {
	var notices []Notice
	missing := func(dir, what string) bool {
		_, err := os.Lstat(dir)
		if err != nil {
			notices = append(notices, Notice{
				Kind: NoticeState, Path: dir,
				Text: fmt.Sprintf("%s, for %s, is not there yet: a run makes it, the steps here do without", dir, what),
			})
		}
		return err != nil
	}
	if p.Tmp == "session" && missing(where.TmpDir, "a /tmp that is kept") {
		p.Tmp = "private"
	}
	if missing(where.CacheDir, "caches") {
		where.CacheDir = ""
	}
	return notices
}

// sessionTmp makes a directory that is a /tmp for whoever is in the sandbox,
// below one that nobody outside but us can enter.
func sessionTmp(where *profiles.Place) error {
	if err := ownDir(where.StateDir, filepath.Dir(where.TmpDir)); err != nil {
		return err
	}
	if err := os.Mkdir(where.TmpDir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	// Nothing here is followed: a command that once could write to the way here
	// may have put a link to somewhere else.
	dir, err := os.OpenFile(where.TmpDir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if owner(info) != os.Geteuid() {
		return &os.PathError{Op: "use", Path: where.TmpDir, Err: errors.New("not a directory of ours")}
	}
	return dir.Chmod(os.ModeSticky | 0o777)
}

// ownDir makes dir below root, and root, which nobody but us can enter. What
// is there already must be a directory of ours: these hold what an unconfined
// process writes to.
func ownDir(root, dir string) error {
	if err := os.MkdirAll(filepath.Dir(root), 0o700); err != nil {
		return err
	}
	// Every directory below root is made and checked, so that none of them can
	// be somebody else's link.
	rest, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	for path, names := root, strings.Split(rest, "/"); ; names = names[1:] {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() || owner(info) != os.Geteuid() {
			return &os.PathError{Op: "use", Path: path, Err: errors.New("not a directory of ours")}
		}
		if info.Mode().Perm() != 0o700 {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
		}
		if len(names) == 0 || names[0] == "." {
			return nil
		}
		path = filepath.Join(path, names[0])
	}
}
