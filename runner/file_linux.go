package runner

import (
	"fmt"
	"os"
	"syscall"
	"time"
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
