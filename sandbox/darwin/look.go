package darwin

import (
	"os"
	"path"
	"strings"
)

// maxLinks bounds how many symbolic links one path is followed through:
// MAXSYMLINKS in sys/param.h.
const maxLinks = 32

// Look finds out what paths are on this machine. They must be absolute and
// clean. What cannot be looked at counts as absent.
//
// On another system it speaks of a Mac with the same files: the links that every
// Mac has are taken to be there.
func Look(paths []string) map[string]File {
	files := make(map[string]File, len(paths))
	l := looker{dirs: map[string]File{"/": {Path: "/"}}}
	for _, p := range paths {
		files[p] = l.look(p, maxLinks)
	}
	return files
}

type looker struct{ dirs map[string]File } // by the path as it is written

// look follows the links in file. What was found of a directory is kept: most
// paths share theirs with others.
func (l *looker) look(file string, hops int) File {
	f, ok := l.dirs[file]
	if !ok {
		f = l.step(l.look(path.Dir(file), hops), path.Base(file), hops)
		l.dirs[file] = f
	}
	return f
}

// step goes from a directory to a name in it.
func (l *looker) step(dir File, name string, hops int) File {
	f := File{Path: path.Join(dir.Path, name), Links: dir.Links[:len(dir.Links):len(dir.Links)], Absent: dir.Absent}
	if f.Absent {
		return f
	}
	target, isLink, err := lookAt(f.Path)
	if err != nil || isLink && hops == 0 {
		f.Absent = true
		return f
	}
	f.Path = stored(f.Path)
	if !isLink {
		return f
	}
	f.Links = append(f.Links, f.Path)
	f.Path = path.Dir(f.Path)
	if path.IsAbs(target) {
		f.Path = "/"
	}
	// Part by part: what ".." is depends on where the part before it led.
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			f.Path = path.Dir(f.Path)
		default:
			f = l.step(f, part, hops-1)
		}
	}
	return f
}

func readlink(file string) (target string, isLink bool, err error) {
	info, err := os.Lstat(file)
	if err != nil || info.Mode().Type() != os.ModeSymlink {
		return "", false, err
	}
	target, err = os.Readlink(file)
	return target, true, err
}
