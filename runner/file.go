package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readSmall reads a regular file of at most max bytes that a sandboxed command
// may have written. It neither follows a symbolic link at the end of path nor
// waits for the other end of a FIFO.
func readSmall(path string, max int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return readSmallFile(f, max)
}

// readSmallFile reads f as readSmall does, and closes it.
func readSmallFile(f *os.File, max int64) ([]byte, error) {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > max {
		return nil, &os.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("larger than %d bytes", max)}
	}
	return data, nil
}

// owner returns the user that owns what info describes.
func owner(info os.FileInfo) int {
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// linkNew is renameNew where the system or the file system has no such call. A
// directory replaces an empty one at the most (rename(2)).
func linkNew(from int, name string, to int, as string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.Renameat(from, name, to, as)
	}
	if err := unix.Linkat(from, name, to, as, 0); err != nil {
		return err
	}
	return unix.Unlinkat(from, name, 0)
}
