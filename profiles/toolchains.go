package profiles

import (
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// toolchainModes, the strictest first, say what becomes of what a toolchain
// writes into its caches.
var toolchainModes = []string{"read-only", "private", "shared"}

// toolchainMode is the mode of a toolchain; "private" if none is set.
func (p *Profile) toolchainMode(chain string) string {
	if mode := p.Toolchains[chain]; mode != "" {
		return mode
	}
	return "private"
}

type sharedCache struct {
	*homeRow
	dir string
}

// sharedCaches are the folders of home, and of where the caller's environment
// has moved them, in which the toolchains that are shared may write; only what
// is there.
func (p *Profile) sharedCaches(place *Place) (shared []sharedCache, err error) {
	if len(p.Toolchains) == 0 || p.Workspace != sandbox.ReadWrite {
		return shared, nil
	}
	moved := place.movedFolders()
	for i := range homeRows {
		row := &homeRows[i]
		if p.toolchainMode(row.Chain) != "shared" {
			continue
		}
		dir := ""
		if value := place.getenv(row.Env); row.Env != "" && path.IsAbs(value) {
			dir = path.Join(value, row.Below)
		} else if row.Path != "" {
			dir = place.expand(row.Path)
			for _, m := range moved {
				if len(row.Path) > len(m.from) && row.Path[:len(m.from)] == m.from {
					dir = m.to + row.Path[len(m.from):]
				}
			}
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		if place.needs(dir) {
			return nil, &sandbox.SpecError{
				Field: "toolchains." + row.Chain, Value: "shared",
				Err:  fmt.Errorf("%s of %s holds more than a cache", dir, row.Tool),
				Hint: "move the cache, or leave the toolchain private",
			}
		}
		shared = append(shared, sharedCache{row, dir})
	}
	return shared, nil
}

func (c *checker) toolchains(in map[string]string) {
	for name, mode := range in {
		if !slices.ContainsFunc(homeRows, func(r homeRow) bool { return r.Chain == name }) &&
			!slices.ContainsFunc(cacheRows, func(r cacheRow) bool { return r.Chain == name }) {
			c.that(fmt.Errorf("unknown toolchain %q: want one of %q", name, toolchainNames()), "toolchains", name)
		}
		c.choice(mode, toolchainModes, "toolchains", name)
	}
}

func toolchainNames() (names []string) {
	for _, row := range cacheRows {
		names = append(names, row.Chain)
	}
	for _, row := range homeRows {
		names = append(names, row.Chain)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
