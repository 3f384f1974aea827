package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxState bounds a file of our own state, in bytes.
const maxState = 1 << 20

// StateError is a file of our own configuration or state that cannot be used.
// It is never taken for one that is not there.
type StateError struct {
	Path string
	Err  error
	Hint string // what to do, or ""
}

func (e *StateError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }
func (e *StateError) Unwrap() error { return e.Err }

// readState reads a file of our state; nil if it is not there.
func readState(path string) ([]byte, error) {
	data, err := readSmall(path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &StateError{Path: path, Err: cause(err), Hint: "make it a file of yours that you can read; inside a sandbox it is hidden"}
	}
	return data, nil
}

// changeFile gives the content of a file to change and puts what that returns
// in its place, at once and for good: no reader sees a part of it, and of two
// that change it at a time the second sees what the first wrote. nil removes
// the file. Its directory must be there and nobody else's.
func changeFile(path string, change func([]byte) ([]byte, error)) error {
	dir := filepath.Dir(path)
	guard, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &StateError{Path: dir, Err: cause(err)}
	}
	defer guard.Close()
	if err := waitLock(guard); err != nil {
		return &StateError{Path: path, Err: err, Hint: "another sandbox-exec is writing it; try again"}
	}
	before, err := readState(path)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil {
		return err
	}
	if err := replaceFile(path, after); err != nil {
		return &StateError{Path: path, Err: cause(err)}
	}
	return nil
}

func replaceFile(path string, data []byte) error {
	if data == nil {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// lockIn makes a directory of ours and takes its lock, which closing the file
// that is returned gives back.
func lockIn(root, dir string) (*os.File, error) {
	if err := ownDir(root, dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := waitLock(f); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return f, nil
}

// waitLock takes the lock that lock takes, but waits for a while.
func waitLock(f *os.File) error {
	const patience = 5 * time.Second
	pause := time.Millisecond
	for start := time.Now(); ; time.Sleep(pause) {
		pause = min(2*pause, 20*time.Millisecond)
		err := lock(f)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Since(start) > patience {
			return err
		}
	}
}

// cause is what is wrong, without the path and the name of the call.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
