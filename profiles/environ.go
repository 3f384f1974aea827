package profiles

import (
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
	expand := strings.NewReplacer("{cache}", cache, "{home}", strings.TrimSuffix(place.Home, "/"))
	for _, row := range cacheRows {
		// A cache in the workspace can be written to where it is.
		if v := values[row.Name]; path.IsAbs(v) && sandbox.Covers(place.Workspace, path.Clean(v)) {
			set[row.Name] = v
		} else {
			set[row.Name] = expand.Replace(row.Value)
		}
	}
	if _, ok := values["PATH"]; !ok {
		set["PATH"] = defaultPath
	}
	maps.Copy(set, p.Set)

	for name, value := range values {
		if _, ok := set[name]; ok {
			continue
		}
		if p.passes(name, value) {
			set[name] = value
		} else {
			removed = append(removed, name)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	slices.Sort(removed)
	return env, removed
}

// passes says whether the command may have a variable of the caller's.
func (p *Profile) passes(name, value string) bool {
	for _, pattern := range p.Pass { // the person's own word
		if prefix, all := strings.CutSuffix(pattern, "*"); pattern == name || all && strings.HasPrefix(name, prefix) && !secretName(name) {
			return true
		}
	}
	if holdsPassword(value) {
		return false
	}
	for i := range passRows {
		row := passRows[i].Name
		if prefix, all := strings.CutSuffix(row, "*"); row == name || all && strings.HasPrefix(name, prefix) && !secretName(name) {
			return true
		}
	}
	return false
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

// NonInteractive adds to env what keeps programs from waiting for a person:
// for tool calls, not for a command that is only wrapped. What env has stays, but
// TERM, which names the caller's terminal.
func NonInteractive(env []string) []string {
	out := slices.Clone(env)
	for _, row := range toolCallRows {
		i := slices.IndexFunc(out, func(v string) bool { return strings.HasPrefix(v, row.Name+"=") })
		switch {
		case i < 0:
			out = append(out, row.Name+"="+row.Value)
		case row.Name == "TERM":
			out[i] = row.Name + "=" + row.Value
		}
	}
	return out
}
