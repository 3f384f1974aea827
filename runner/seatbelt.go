package runner

import (
	"cmp"
	"path/filepath"

	"github.com/sandbox-exec/sandbox-exec/sandbox/darwin"
)

// Seatbelt returns the profile that confines a command with c's permissions on
// macOS, on any system. c needs no script and no arguments. Where a run would
// have its own directory for temporary files, it names one that is not there.
func Seatbelt(c Command) (darwin.Profile, error) {
	if err := c.load(); err != nil {
		return darwin.Profile{}, err
	}
	where, _, err := place(&c)
	if err != nil {
		return darwin.Profile{}, err
	}
	where.OS = "darwin"
	spec, err := c.Profile.Spec(where)
	if err != nil {
		return darwin.Profile{}, err
	}
	if err := guardOwn(&where, spec.Files); err != nil {
		return darwin.Profile{}, err
	}
	tmp := cmp.Or(spec.Tmp, filepath.Join(where.StateDir, "run", "tmp"))
	files := darwin.Look(append(darwin.Paths(spec), tmp))
	if cache, ok := files[where.CacheDir]; ok {
		cache.Absent = false // a run makes it
		files[where.CacheDir] = cache
	}
	return darwin.Compile(spec, darwin.Host{Files: files, Tmp: files[tmp].Path})
}
