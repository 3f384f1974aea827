package runner

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tempDir is a directory for the test, without symbolic links in its path and
// not below /tmp, where the policy asks less.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-exec-test-*")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, text string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	mkdir(t, filepath.Dir(file))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func TestPlaceFindsTheWorkspace(t *testing.T) {
	home := tempDir(t)
	t.Setenv("HOME", home)
	mkdir(t, home, "repo/.git")
	mkdir(t, home, "repo/sub/deep")
	mkdir(t, home, "plain/sub")
	mkdir(t, home, "worktree")
	write(t, "gitdir: /nowhere\n", home, "worktree/.git")
	mkdir(t, home, "linked")
	if err := os.Symlink(filepath.Join(home, "repo/.git"), filepath.Join(home, "linked/.git")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(home, "repo/sub"), filepath.Join(home, "shortcut")); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct{ name, dir, workspace, want string }{
		{"top of a repository", "repo", "", "repo"},
		{"below the top", "repo/sub/deep", "", "repo"},
		{"a .git file", "worktree", "", "worktree"},
		{"no repository", "plain/sub", "", "plain/sub"},
		{"a .git that is a link", "linked", "", "linked"},
		{"through a link", "shortcut/deep", "", "repo"},
		{"named", "plain", "repo", "repo"},
		{"named through a link", "plain", "shortcut", "repo/sub"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Command{Dir: filepath.Join(home, tt.dir)}
			if tt.workspace != "" {
				c.Workspace = filepath.Join(home, tt.workspace)
			}
			where, _, err := place(c)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(home, tt.want); where.Workspace != want {
				t.Errorf("workspace %s, want %s", where.Workspace, want)
			}
		})
	}

	t.Run("home and above are never found", func(t *testing.T) {
		base := home
		home := mkdir(t, base, "people/me")
		t.Setenv("HOME", home)
		mkdir(t, home, "plain/sub")
		mkdir(t, home, ".git")
		mkdir(t, filepath.Dir(home), ".git")
		where, _, err := place(&Command{Dir: filepath.Join(home, "plain/sub")})
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(home, "plain/sub"); where.Workspace != want {
			t.Errorf("workspace %s, want %s", where.Workspace, want)
		}
	})
}

func TestPlaceRefuses(t *testing.T) {
	dir := tempDir(t)
	file := write(t, "", dir, "file")
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	if err := os.Symlink("/", root); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Command{
		"missing workspace":         {Workspace: filepath.Join(dir, "no")},
		"workspace is a file":       {Workspace: file},
		"workspace is a loop":       {Workspace: loop},
		"workspace is /":            {Workspace: "/"},
		"workspace is a link to /":  {Workspace: root},
		"missing working directory": {Dir: filepath.Join(dir, "no")},
		"working directory is /":    {Dir: "/"},
	} {
		_, _, err := place(&c)
		var want *CommandError
		if !errors.As(err, &want) || want.Hint == "" {
			t.Errorf("%s: %v, want a *CommandError with a hint", name, err)
		}
	}
}

func TestGitTopPassesOverStrangers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a stranger's files")
	}
	shared := tempDir(t)
	mine := mkdir(t, shared, "mine")
	stranger := mkdir(t, shared, ".git")
	if err := os.Lchown(stranger, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if got := gitTop(mine, "/nowhere"); got != "" {
		t.Errorf("the .git of a stranger made %s the workspace", got)
	}

	// The whole tree is somebody's: root works in a checkout of a user.
	for _, dir := range []string{shared, mine} {
		if err := os.Lchown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	if got := gitTop(mine, "/nowhere"); got != shared {
		t.Errorf("got %q, want %s", got, shared)
	}
}

func TestWorktreeDirs(t *testing.T) {
	base := tempDir(t)
	home := mkdir(t, base, "home")
	main := mkdir(t, home, "main")
	git(t, main, "init", "-q")
	git(t, main, "commit", "-q", "--allow-empty", "-m", "one")
	tree := filepath.Join(home, "tree")
	git(t, main, "worktree", "add", "-q", tree)
	common := filepath.Join(main, ".git")
	gitDir := filepath.Join(common, "worktrees/tree")

	check := func(t *testing.T, workspace, wantCommon, wantGit string, wantErr bool) {
		t.Helper()
		gotCommon, gotGit, err := worktreeDirs(workspace, home)
		if gotCommon != wantCommon || gotGit != wantGit || (err != nil) != wantErr {
			t.Errorf("got %q, %q, %v", gotCommon, gotGit, err)
		}
	}
	t.Run("linked worktree", func(t *testing.T) { check(t, tree, common, gitDir, false) })
	t.Run("main worktree", func(t *testing.T) { check(t, main, "", "", false) })
	t.Run("no repository", func(t *testing.T) { check(t, home, "", "", false) })

	// What a sandboxed command can plant in its workspace.
	plant := func(t *testing.T) string { return mkdir(t, home, strings.ReplaceAll(t.Name(), "/", "_")) }
	t.Run("names another worktree's directory", func(t *testing.T) {
		ws := plant(t)
		write(t, "gitdir: "+gitDir+"\n", ws, ".git")
		check(t, ws, "", "", true)
	})
	t.Run("whole chain in the workspace", func(t *testing.T) {
		ws := plant(t)
		own := mkdir(t, ws, "c/worktrees/x")
		write(t, "gitdir: "+own+"\n", ws, ".git")
		write(t, "../..\n", own, "commondir")
		write(t, filepath.Join(ws, ".git")+"\n", own, "gitdir")
		check(t, ws, "", "", true)
	})
	t.Run("commondir names a secret directory", func(t *testing.T) {
		ws := plant(t)
		secret := mkdir(t, home, ".ssh")
		own := mkdir(t, ws, "c/worktrees/x")
		write(t, "gitdir: "+own+"\n", ws, ".git")
		write(t, secret+"\n", own, "commondir")
		write(t, filepath.Join(ws, ".git")+"\n", own, "gitdir")
		check(t, ws, "", "", true)
	})
	t.Run("worktrees is a link out of a repository", func(t *testing.T) {
		ws := plant(t)
		own := mkdir(t, ws, "x")
		write(t, "../..\n", own, "commondir")
		write(t, filepath.Join(ws, ".git")+"\n", own, "gitdir")
		other := mkdir(t, home, "other-common")
		if err := os.Symlink(ws, filepath.Join(other, "worktrees")); err != nil {
			t.Fatal(err)
		}
		write(t, "gitdir: "+filepath.Join(other, "worktrees/x")+"\n", ws, ".git")
		check(t, ws, "", "", true)
	})
	t.Run("common directory holds home", func(t *testing.T) {
		ws := plant(t)
		own := mkdir(t, base, "worktrees/x")
		write(t, "gitdir: "+own+"\n", ws, ".git")
		write(t, "../..\n", own, "commondir")
		write(t, filepath.Join(ws, ".git")+"\n", own, "gitdir")
		check(t, ws, "", "", true)
	})
	t.Run("pointer is a FIFO", func(t *testing.T) {
		ws := plant(t)
		if err := syscall.Mkfifo(filepath.Join(ws, ".git"), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, ws, "", "", false)
	})
	t.Run("commondir is a FIFO", func(t *testing.T) {
		ws := plant(t)
		own := mkdir(t, home, "fifo/worktrees/x")
		write(t, "gitdir: "+own+"\n", ws, ".git")
		if err := syscall.Mkfifo(filepath.Join(own, "commondir"), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, ws, "", "", true)
	})
	t.Run("pointer is a link", func(t *testing.T) {
		ws := plant(t)
		if err := os.Symlink(filepath.Join(tree, ".git"), filepath.Join(ws, ".git")); err != nil {
			t.Fatal(err)
		}
		check(t, ws, "", "", false)
	})
	t.Run("pointer is too large", func(t *testing.T) {
		ws := plant(t)
		write(t, "gitdir: "+gitDir+strings.Repeat("/", maxPointer)+"\n", ws, ".git")
		check(t, ws, "", "", true)
	})
	t.Run("submodule", func(t *testing.T) {
		ws := plant(t)
		mkdir(t, common, "modules/x")
		write(t, "gitdir: "+filepath.Join(common, "modules/x")+"\n", ws, ".git")
		check(t, ws, "", "", false)
	})
}

func TestOwnDir(t *testing.T) {
	base := tempDir(t)
	root := filepath.Join(base, ".local/state/sandbox-exec")
	dir := filepath.Join(root, "tmp/id")
	for range 2 {
		if err := ownDir(root, dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{root, filepath.Join(root, "tmp"), dir} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want a directory with mode 0700", path, info.Mode(), err)
		}
	}
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(root, dir); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(root); info.Mode().Perm() != 0o700 {
		t.Errorf("a directory that others can write to was not closed: %v", info.Mode())
	}

	for name, make := range map[string]func(path string) error{
		"a link": func(path string) error { return os.Symlink(base, path) },
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		root := filepath.Join(base, name)
		mkdir(t, root)
		if err := make(filepath.Join(root, "tmp")); err != nil {
			t.Fatal(err)
		}
		if err := ownDir(root, filepath.Join(root, "tmp/id")); err == nil {
			t.Errorf("%s in place of a directory was taken", name)
		}
	}
}

func TestPlaceMakesNothing(t *testing.T) {
	home := tempDir(t)
	t.Setenv("HOME", home)
	ws := mkdir(t, home, "ws")
	if _, _, err := place(&Command{Dir: ws}); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(home)
	if len(entries) != 1 {
		t.Errorf("home holds %v", entries)
	}
}
