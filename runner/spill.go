package runner

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// spillAge is how long captured output that outgrew memory is kept after
	// the last write to it.
	spillAge = 24 * time.Hour
	// spillTotal is how much of it is kept, in bytes; the oldest goes first.
	spillTotal = 8 << 30
)

// spills is where captured output goes that outgrows memory.
type spills struct {
	root string // directory of our state; "" where there is none
	dir  string // in it, or the caller's own
	kept bool   // dir is the caller's: files are written there from the first byte on, and stay
}

// create makes a file that nobody else can read.
func (s spills) create(name string) (*os.File, error) {
	if s.kept {
		return os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	}
	if s.dir == "" {
		return nil, errors.New("there is no directory for it")
	}
	if err := ownDir(s.root, s.dir); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.dir, name+"-*") // 0600, new
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil { // so that no other run takes it for an old one
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// tidy removes what is older than spillAge, or more than spillTotal. What
// cannot be removed is left for the next.
func (s spills) tidy(now time.Time) {
	if s.kept || s.dir == "" {
		return
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // mostly: there is none
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	total := int64(0)
	for _, info := range files {
		total += info.Size()
		if now.Sub(info.ModTime()) < spillAge && total <= spillTotal {
			continue
		}
		if s.remove(info.Name()) {
			total -= info.Size()
		}
	}
}

// remove removes a file that no run writes to.
func (s spills) remove(name string) bool {
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return lock(f) == nil && os.Remove(path) == nil
}
