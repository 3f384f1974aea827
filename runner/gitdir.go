package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxPointer bounds the files by which git points from one directory to
// another: each holds one path.
const maxPointer = 4 << 10

// gitTop returns the nearest directory at or above dir that holds a ".git"
// directory or file, or "". It never returns "/", home or a directory that
// holds home.
//
// Like git (safe.directory in git-config(1)) it passes over a ".git" of a
// stranger: who can write to /tmp must not turn all of /tmp into a workspace.
func gitTop(dir, home string) string {
	start, err := os.Lstat(dir)
	if err != nil {
		return ""
	}
	for ; dir != "/" && !within(home, dir); dir = filepath.Dir(dir) {
		git, err := os.Lstat(filepath.Join(dir, ".git"))
		if err != nil || !git.IsDir() && !git.Mode().IsRegular() {
			continue
		}
		top, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		uid := owner(git)
		if uid == os.Geteuid() || uid == owner(top) && uid == owner(start) {
			return dir
		}
	}
	return ""
}

// worktreeDirs returns the directories outside of workspace that git writes to
// when workspace is a linked worktree (git-worktree(1)): the common directory
// of the repository, which holds the worktree's own. Both are empty when
// workspace is none.
//
// All that is read here may have been written by a sandboxed command, so that
// the pointers are believed only as a closed chain: workspace/.git names
// COMMON/worktrees/ID, its commondir names COMMON, and its gitdir names
// workspace/.git back. No file in the workspace can close it.
func worktreeDirs(workspace, home string) (common, gitDir string, err error) {
	dotGit := filepath.Join(workspace, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil || !info.Mode().IsRegular() {
		return "", "", nil
	}
	gitDir, err = readPointer(dotGit, "gitdir: ")
	if err != nil {
		return "", "", err
	}
	if gitDir, err = resolveFrom(workspace, gitDir); err != nil {
		return "", "", err
	}
	if _, err := os.Lstat(filepath.Join(gitDir, "commondir")); errors.Is(err, os.ErrNotExist) {
		return "", "", nil // a submodule or a separate git directory
	}

	common, err = readPointer(filepath.Join(gitDir, "commondir"), "")
	if err != nil {
		return "", "", err
	}
	if common, err = resolveFrom(gitDir, common); err != nil {
		return "", "", err
	}
	if filepath.Dir(gitDir) != filepath.Join(common, "worktrees") {
		return "", "", fmt.Errorf("%s is not in %s/worktrees", gitDir, common)
	}
	if within(common, workspace) || within(workspace, common) || within(home, common) {
		return "", "", fmt.Errorf("%s is no place for a repository's common directory", common)
	}

	back, err := readPointer(filepath.Join(gitDir, "gitdir"), "")
	if err != nil {
		return "", "", err
	}
	// Only the directory is resolved: the last name is that of the file that
	// was opened above, which was no symbolic link.
	if !filepath.IsAbs(back) {
		back = filepath.Join(gitDir, back)
	}
	top, err := filepath.EvalSymlinks(filepath.Dir(back))
	if err != nil {
		return "", "", err
	}
	if top != workspace || filepath.Base(back) != ".git" {
		return "", "", fmt.Errorf("%s/gitdir names another worktree, %s", gitDir, back)
	}
	for _, dir := range []string{common, gitDir} {
		if err := sameOwner(dir, workspace); err != nil {
			return "", "", err
		}
	}
	return common, gitDir, nil
}

// readPointer reads a file that holds prefix, one path and a newline.
func readPointer(file, prefix string) (string, error) {
	data, err := readSmall(file, maxPointer)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || path == "" || strings.ContainsAny(path, "\x00\n") {
		return "", fmt.Errorf("%s does not hold %q and one path", file, prefix)
	}
	return path, nil
}

// resolveFrom returns path, taken from dir if it is relative, with symbolic
// links followed.
func resolveFrom(dir, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Clean(path), nil
}

func sameOwner(dir, other string) error {
	a, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	b, err := os.Lstat(other)
	if err != nil {
		return err
	}
	if uid := owner(a); uid != os.Geteuid() && uid != owner(b) {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	return nil
}

// within reports whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
