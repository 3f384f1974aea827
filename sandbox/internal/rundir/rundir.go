//go:build unix

// Package rundir makes directories that go with a run, however that ends.
package rundir

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Make makes a directory in base that nobody else can enter; "" is that of
// [os.TempDir]. It is locked for as long as we live: what runs left that were
// killed, of the same prefix, is unlocked and removed first.
func Make(base, prefix string) (*os.File, error) {
	if base == "" {
		base = os.TempDir()
	}
	left, _ := filepath.Glob(filepath.Join(base, prefix+"*"))
	for _, path := range left {
		if f, err := lock(path); err == nil {
			os.RemoveAll(path)
			f.Close()
		}
	}
	for range 100 {
		path, err := os.MkdirTemp(base, prefix+"*") // 0700
		if err != nil {
			return nil, err
		}
		// Until it is locked another start may take it for a leftover.
		f, err := lock(path)
		if err == nil {
			if _, err = os.Lstat(path); err == nil {
				return f, nil
			}
			f.Close()
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
	}
	return nil, unix.EBUSY
}

// lock opens and locks a directory of ours.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || int(st.Uid) != os.Geteuid() {
		f.Close()
		return nil, errors.Join(err, unix.EPERM)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
