package runner

import (
	"fmt"
	"os"
	"syscall"
)

// identity is different after any change to the file that info describes.
func identity(info os.FileInfo) string {
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(s.Dev, s.Ino, s.Mode, s.Size, s.Ctim)
}
