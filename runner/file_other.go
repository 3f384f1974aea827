//go:build !linux

package runner

import (
	"fmt"
	"os"
	"time"
)

// identity is different after a change to the file that info describes.
func identity(info os.FileInfo) string {
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
}

// changed is the change time, where it is known; else now, so that nothing
// passes for old.
func changed(os.FileInfo) time.Time { return time.Now() }

// renameNew is renameat(2) that replaces nothing: EEXIST.
func renameNew(from int, name string, to int, as string) error { return linkNew(from, name, to, as) }
