package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// TestSessionTmpIsNoLink: a link in the place of the session's /tmp would give
// a command whatever it leads to, and its mode would be changed.
func TestSessionTmpIsNoLink(t *testing.T) {
	dir := tempDir(t)
	secret := mkdir(t, dir, "secret")
	if err := os.Chmod(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	where := &profiles.Place{StateDir: filepath.Join(dir, "state"), TmpDir: filepath.Join(dir, "state/tmp/id/tmp")}
	if err := sessionTmp(where); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(where.TmpDir); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	os.Remove(where.TmpDir)
	if err := os.Symlink(secret, where.TmpDir); err != nil {
		t.Fatal(err)
	}
	if err := sessionTmp(where); err == nil {
		t.Error("a link was taken for the session's /tmp")
	}
	if info, _ := os.Stat(secret); info.Mode().Perm() != 0o700 {
		t.Errorf("what it leads to has mode %v now", info.Mode())
	}
}

// TestCacheOutOfReach: no cache is kept where a command can change the way to it.
func TestCacheOutOfReach(t *testing.T) {
	dir := tempDir(t)
	where := &profiles.Place{
		Home: dir, Workspace: filepath.Join(dir, "ws"),
		CacheDir: filepath.Join(dir, "ws/.cache/sandbox-exec/id"),
	}
	if notices := keep(where, &profiles.Profile{}); where.CacheDir != "" || len(notices) != 1 {
		t.Errorf("cache %q, notices %v", where.CacheDir, notices)
	}
}
