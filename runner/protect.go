package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// maxEntries bounds how much of a protected directory is looked at.
const maxEntries = 1000

// NoticeLater are names that changed and that run when someone builds, tests or
// pushes.
const NoticeLater = "runs-later"

// guard is a protected name and what it was before the run.
type guard struct {
	name   sandbox.Name
	before string
	link   string // what it held, if it was a symbolic link that is to be blocked
}

// watchNames notes what the names that run code are now. It looks at each and,
// for a directory that runs code by itself, at its entries; at nothing deeper.
func watchNames(names []sandbox.Name) []guard {
	guards := make([]guard, 0, len(names))
	for _, name := range names {
		g := guard{name: name, before: fingerprint(name)}
		if name.Guard == sandbox.Block && g.before != "" {
			g.link, _ = os.Readlink(name.Path)
		}
		guards = append(guards, g)
	}
	return guards
}

// changes tells which of the guarded names are not what they were. What
// appeared, and what was a link, is the watchman's, if there is one.
func changes(guards []guard, watched bool, workspace string) []Notice {
	var notices []Notice
	var later []string
	for _, g := range guards {
		if watched && g.name.Guard == sandbox.Block && (g.before == "" || g.link != "") {
			continue
		}
		after := fingerprint(g.name)
		if after == g.before {
			continue
		}
		if g.name.Guard == sandbox.Checked {
			continue // by its settings, not by its bytes
		}
		if g.name.Guard != sandbox.Block {
			name, err := filepath.Rel(workspace, g.name.Path)
			if err != nil || !filepath.IsLocal(name) {
				name = g.name.Path
			}
			later = append(later, name)
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
	if later != nil {
		notices = append(notices, Notice{
			Kind: NoticeLater,
			Text: "changed names that run later, in a build, a test or after a push: " + strings.Join(later, ", "),
		})
	}
	return notices
}

// fingerprint is different after any change to the file, or to the entries of
// the directory, at a name; "" if there is nothing. A process cannot set the
// change time and the inode that stat(2) gives.
func fingerprint(name sandbox.Name) string {
	info, err := os.Lstat(name.Path)
	if err != nil {
		return ""
	}
	print := identity(info)
	if !info.IsDir() || name.Guard != sandbox.Block {
		return print
	}
	dir, err := os.Open(name.Path)
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
