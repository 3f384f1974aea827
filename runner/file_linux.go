package runner

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// identity is different after any change to the file that info describes.
func identity(info os.FileInfo) string {
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(s.Dev, s.Ino, s.Mode, s.Size, s.Ctim)
}

// changed is the change time, which no process can set.
func changed(info os.FileInfo) time.Time {
	c := info.Sys().(*syscall.Stat_t).Ctim
	return time.Unix(c.Unix())
}

// renameNew is renameat(2) that replaces nothing: EEXIST.
func renameNew(from int, name string, to int, as string) error {
	err := unix.Renameat2(from, name, to, as, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS { // a file system that cannot
		return linkNew(from, name, to, as)
	}
	return err
}
