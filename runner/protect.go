package runner

import (
	"fmt"
	"os"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// maxEntries bounds how much of a protected directory is looked at.
const maxEntries = 1000

// guard is a protected name and what it was before the run.
type guard struct {
	name   sandbox.Name
	before string
}

// watchNames notes what the names that run code by themselves are now. It
// looks at each and, for a directory, at its entries; at nothing deeper.
func watchNames(names []sandbox.Name) []guard {
	var guards []guard
	for _, name := range names {
		if name.Guard == sandbox.Block {
			guards = append(guards, guard{name, fingerprint(name.Path)})
		}
	}
	return guards
}

// changes tells which of the guarded names are not what they were. What
// appeared is the watchman's, if there is one.
func changes(guards []guard, watched bool) []Notice {
	var notices []Notice
	for _, g := range guards {
		if watched && g.before == "" {
			continue
		}
		after := fingerprint(g.name.Path)
		if after == g.before {
			continue
		}
		what := "was changed"
		switch "" {
		case g.before:
			what = "appeared"
		case after:
			what = "was removed"
		}
		notices = append(notices, Notice{
			Kind: NoticeProtected,
			Path: g.name.Path,
			Text: fmt.Sprintf("%s %s during the run: %s", g.name.Path, what, g.name.Reason),
		})
	}
	return notices
}

// fingerprint is different after any change to the file, or to the entries of
// the directory, at path; "" if there is nothing. A process cannot set the
// change time and the inode that stat(2) gives.
func fingerprint(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	print := identity(info)
	if !info.IsDir() {
		return print
	}
	dir, err := os.Open(path)
	if err != nil {
		return print
	}
	defer dir.Close()
	entries, _ := dir.Readdir(maxEntries)
	for _, entry := range entries {
		print += "\x00" + entry.Name() + identity(entry)
	}
	return print
}
