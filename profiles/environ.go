package profiles

import (
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// defaultPath is for a caller without PATH; environ(7) and the shells have the
// like.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environ returns the part of the caller's environment that the command gets,
// with TMPDIR and the caches redirected, and the sorted names that were left
// out. Of several entries with one name the last counts; what is no NAME=VALUE
// is dropped.
func (p *Profile) Environ(parent []string, place Place) (env, removed []string) {
	values := make(map[string]string, len(parent))
	for _, v := range parent {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			continue
		}
		values[name] = value
	}

	set := map[string]string{"HOME": place.Home, "PWD": place.cwd(), "TMPDIR": place.tmp()}
	if place.tmp() != "/tmp" {
		set["TMPPREFIX"] = place.tmp() + "/zsh" // here-documents, zshparam(1)
	}
	cache := place.CacheDir
	if cache == "" || p.Workspace != sandbox.ReadWrite {
		cache = place.tmp() + "/cache"
	}
	home := strings.TrimSuffix(place.Home, "/")
	shared, _ := p.sharedCaches(&place) // Spec has refused what is wrong with them
	for _, row := range cacheRows {
		if slices.ContainsFunc(shared, func(s sharedCache) bool { return s.Env == row.Name }) {
			continue // where it is
		}
		v := values[row.Name]
		cache := cache
		if p.toolchainMode(row.Chain) == "read-only" {
			cache = place.tmp() + "/cache"
		}
		// A cache in the workspace can be written to where it is.
		if !path.IsAbs(v) || !sandbox.Covers(place.Workspace, path.Clean(v)) {
			v = strings.ReplaceAll(strings.ReplaceAll(row.Value, "{cache}", cache), "{home}", home)
		}
		set[row.Name] = v
	}
	if _, ok := values["PATH"]; !ok {
		set["PATH"] = defaultPath
	}
	if p.Network <= sandbox.NetworkLocalhost {
		for _, row := range offlineRows {
			set[row.Name] = row.Value
		}
	}
	maps.Copy(set, p.Set)
	if _, own := p.Set["GIT_CONFIG_COUNT"]; !own && !slices.Contains(p.Pass, "GIT_CONFIG_COUNT") && p.GitSign != "agent" {
		for _, row := range unsignedRows {
			set[row.Name] = row.Value
		}
	}

	pass := func(name string) {
		_, ok := set[name]
		if value, there := values[name]; !ok && there {
			set[name] = value
		}
	}
	for _, row := range passRows {
		for name := range named(values, row.Name) {
			// A proxy is reached by its address, which only the host's network has.
			if p.Network != sandbox.NetworkHost && strings.HasSuffix(strings.ToLower(name), "_proxy") {
				continue
			}
			if !holdsPassword(values[name]) {
				pass(name)
			}
		}
	}
	for _, s := range shared {
		pass(s.Env)
	}
	if p.GitSign == "agent" {
		pass("SSH_AUTH_SOCK")
	}
	for _, pattern := range p.Pass { // the person's own word
		for name := range named(values, pattern) {
			pass(name)
		}
	}

	for name, value := range set {
		env = append(env, name+"="+value)
	}
	for name := range values {
		if _, ok := set[name]; !ok {
			removed = append(removed, name)
		}
	}
	slices.Sort(env)
	slices.Sort(removed)
	return env, removed
}

// named yields the variables that have a name, or, for "PREFIX*", a name that
// begins so and is not a secret's.
func named(values map[string]string, pattern string) iter.Seq[string] {
	return func(yield func(string) bool) {
		prefix, all := strings.CutSuffix(pattern, "*")
		if !all {
			if _, ok := values[pattern]; ok {
				yield(pattern)
			}
			return
		}
		for name := range values {
			if strings.HasPrefix(name, prefix) && !secretName(name) && !yield(name) {
				return
			}
		}
	}
}

// secretName says whether a variable's name is that of a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(secretNameRows, func(row patternRow) bool {
		ok, _ := path.Match(row.Pattern, name)
		return ok
	})
}

// holdsPassword says whether a value holds an address with a password, or with
// the user name alone that tokens are given as (RFC 3986, 3.2.1).
func holdsPassword(value string) bool {
	for {
		_, rest, ok := strings.Cut(value, "://")
		if !ok {
			return false
		}
		authority := rest
		if i := strings.IndexAny(rest, "/?# ,"); i >= 0 {
			authority = rest[:i]
		}
		if user, _, ok := strings.Cut(authority, "@"); ok && user != "git" {
			return true
		}
		value = rest
	}
}

// NonInteractive sets in env what keeps programs from waiting for a person: for
// tool calls, not for a command that is only wrapped. What the profile itself
// sets, or passes by its whole name, stays.
func (p *Profile) NonInteractive(env []string) []string {
	out := slices.Clone(env)
	for _, row := range toolCallRows {
		i := slices.IndexFunc(out, func(v string) bool { return strings.HasPrefix(v, row.Name+"=") })
		_, set := p.Set[row.Name]
		switch {
		case i < 0:
			out = append(out, row.Name+"="+row.Value)
		case !set && !slices.Contains(p.Pass, row.Name):
			out[i] = row.Name + "=" + row.Value
		}
	}
	return out
}

// A Secret is a variable whose value must not be seen.
type Secret struct{ Name, Value string }

// leastSecret is the shortest value that is taken for a secret's, in bytes:
// shorter ones stand in any output by chance.
const leastSecret = 8

// Secrets returns the variables of the caller's environment, sorted by name,
// that the command does not get (removed, of [Profile.Environ]) and that hold
// secrets, by their name or because their value is an address with a password.
func Secrets(parent, removed []string) []Secret {
	values := make(map[string]string, len(parent))
	for _, v := range parent {
		if name, value, ok := strings.Cut(v, "="); ok {
			values[name] = value
		}
	}
	var out []Secret
	for _, name := range removed {
		if v := values[name]; len(v) >= leastSecret && (secretName(name) || holdsPassword(v)) {
			out = append(out, Secret{name, v})
		}
	}
	return out
}
