package darwin

import (
	"errors"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Profile is a policy for /usr/bin/sandbox-exec: Text goes into the file of -f,
// each Param onto its command line as -D KEY=VALUE.
type Profile struct {
	Text   string
	Params []Param
}

// Param is a path that does not stand in the text, because it is not plain
// ASCII.
type Param struct{ Key, Value string }

// Host is what Compile has to know of the machine and of the one run. All of it
// is looked up beforehand.
type Host struct {
	// Files says what each path of Paths is. A path that is not in it is taken
	// as it is written.
	Files map[string]File
	// Self is our own binary, which runs inside before the program; resolved.
	Self string
	// Tmp is the directory that TMPDIR names, made for this run or kept for the
	// workspace; resolved. Required.
	Tmp string
	// Terminal is the device of the controlling terminal, such as
	// /dev/ttys003; "" = none.
	Terminal string
	// Streams are the files, other than Terminal, that the program's descriptors
	// are open on; resolved. fstat(2) on them is allowed.
	Streams []string
	// Tag stands in the system's log beside each refusal of this run; letters,
	// digits, '-' and '_'. "" = none.
	Tag string
}

// File is what a path of a Spec is on this machine.
type File struct {
	// Path is where the path leads, as the kernel names it: no link in it, with
	// firmlinks, letters of both cases and Unicode as they are stored
	// (fcntl(2), F_GETPATH). Where nothing is there: that of the deepest
	// directory that is, and the rest as it was written.
	Path string
	// Links are the symbolic links on the way, each as the kernel names it.
	Links []string
	// Exists is false where nothing is there.
	Exists bool
	// FoldsCase says that the volume takes A and a for one letter, pathconf(2)
	// _PC_CASE_SENSITIVE = 0, as volumes do by default.
	FoldsCase bool
}

// Paths are the paths that Host.Files has to tell about.
func Paths(spec sandbox.Spec) []string {
	var paths []string
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	for _, r := range spec.Files {
		add(r.Path)
	}
	for _, n := range spec.Protect {
		add(n.Path)
	}
	for _, s := range spec.Sockets {
		add(s)
	}
	return paths
}

// Compile turns what a program may do into a profile. Its errors are
// *sandbox.SpecError: a Spec that a profile cannot express, which nothing is run
// under.
func Compile(spec sandbox.Spec, h Host) (Profile, error) {
	return Profile{}, &sandbox.SpecError{Field: "system", Value: "darwin", Err: errUnfinished}
}

var errUnfinished = errors.New("profiles are not written yet")
