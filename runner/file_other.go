//go:build !linux

package runner

import (
	"fmt"
	"os"
)

// identity is different after a change to the file that info describes.
func identity(info os.FileInfo) string {
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
}
