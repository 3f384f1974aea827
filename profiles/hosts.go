package profiles

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// HostSets are the names of the sets of hosts that AllowHosts and DenyHosts may
// hold, with "@".
func HostSets() []string {
	var names []string
	for _, row := range hostRows {
		if name := "@" + row.Set; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckHost reports what is wrong with an entry of AllowHosts or DenyHosts.
func CheckHost(entry string, allow bool) error {
	if strings.HasPrefix(entry, "@") {
		if !slices.Contains(HostSets(), entry) {
			return fmt.Errorf("no set of hosts %q: want one of %s", entry, strings.Join(HostSets(), ", "))
		}
		return nil
	}
	p, err := policy.ParseHostPattern(entry)
	if err != nil || !allow {
		return err
	}
	if port, named := p.Port(); named && port == 0 {
		return fmt.Errorf("%q: name the port, as in %s:8080", entry, strings.TrimSuffix(entry, ":*"))
	}
	switch a := p.Host().Addr(); {
	case p.Host().Name() == "localhost" || strings.HasSuffix(p.Host().Name(), ".localhost") || a.IsLoopback():
		return fmt.Errorf("%q: inside, that is the command itself; only network = host reaches servers of this machine", entry)
	case a.IsValid() && (a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast()):
		return fmt.Errorf("%q: connections to such an address are always refused", entry)
	}
	return nil
}

// hostRule is a pattern with what a person knows it by.
type hostRule struct {
	policy.HostPattern
	entry string // that it comes from
	text  string
}

// The ports of a pattern that names none.
var webPorts = []uint16{80, 443}

// hosts says what the profile lets the command reach where Network is
// NetworkAllow. A rule that denies wins, whatever order they have.
func (p *Profile) hosts(place *Place) (sandbox.Hosts, error) {
	allow, err := hostRules(p.AllowHosts, place, true)
	if err != nil {
		return sandbox.Hosts{}, err
	}
	deny, err := hostRules(p.DenyHosts, place, false)
	if err != nil {
		return sandbox.Hosts{}, err
	}
	for _, r := range p.Rules {
		if r.Action != policy.NetworkTo || r.Verdict != policy.Deny {
			continue
		}
		pattern, err := policy.ParseHostPattern(r.Pattern)
		if err != nil {
			return sandbox.Hosts{}, &sandbox.SpecError{Field: "rule", Value: r.Pattern, Err: err}
		}
		deny = append(deny, hostRule{pattern, r.Pattern, cmp.Or(r.Source, r.Pattern)})
	}

	out := sandbox.Hosts{ServerName: p.ServerName}
	for _, entry := range p.AllowHosts {
		if !slices.ContainsFunc(allow, func(r hostRule) bool { return r.entry == entry }) {
			out.Rules = append(out.Rules, entry+": no host is set here")
		}
	}
	for _, r := range allow {
		out.Rules = append(out.Rules, r.text)
		ports := webPorts
		if port, named := r.Port(); named {
			ports = []uint16{uint16(port)}
		}
		for _, port := range ports {
			if !slices.Contains(out.Ports, port) {
				out.Ports = append(out.Ports, port)
			}
		}
		if a := r.Host().Addr(); a.IsValid() && !slices.Contains(out.Addresses, a) {
			out.Addresses = append(out.Addresses, a)
		}
	}
	slices.Sort(out.Ports)
	out.Judge = func(host string, port uint16) (bool, string) {
		h, err := policy.ParseHost(host)
		if a, e := netip.ParseAddr(host); e == nil {
			h, err = policy.HostOf(a), nil
		}
		if err != nil {
			return false, ""
		}
		for _, r := range deny {
			if r.Matches(h, int(port)) {
				return false, r.text
			}
		}
		for _, r := range allow {
			if r.Allows(h, int(port)) {
				return true, r.text
			}
		}
		return false, ""
	}
	return out, nil
}

func hostRules(entries []string, place *Place, allow bool) ([]hostRule, error) {
	var rules []hostRule
	for _, entry := range entries {
		if err := CheckHost(entry, allow); err != nil {
			return nil, &sandbox.SpecError{Field: "host", Value: entry, Err: err}
		}
		members := []string{entry}
		if set, ok := strings.CutPrefix(entry, "@"); ok {
			members = place.hostSet(set)
		}
		for _, m := range members {
			pattern, err := policy.ParseHostPattern(m)
			if err != nil {
				continue // of a set: what a tool does not check either
			}
			text := entry
			if m != entry {
				text += ": " + m
			}
			rules = append(rules, hostRule{pattern, entry, text})
		}
	}
	return rules, nil
}

// hostSet returns the hosts that the person's tools are set to fetch from, as
// patterns with ports.
func (w *Place) hostSet(set string) []string {
	var out []string
	add := func(text string, bare bool) {
		for _, host := range hostsIn(text, bare) {
			if CheckHost(host, true) == nil && !slices.Contains(out, host) {
				out = append(out, host)
			}
		}
	}
	for _, row := range hostRows {
		if row.Set != set {
			continue
		}
		if row.Env != "" {
			for _, v := range w.Environ {
				name, _, _ := strings.Cut(v, "=")
				prefix, all := strings.CutSuffix(row.Env, "*")
				if name == row.Env || all && strings.HasPrefix(name, prefix) && !secretName(name) {
					add(w.getenv(name), row.Bare)
				}
			}
			continue
		}
		for _, file := range w.toolFiles(row.File) {
			data, err := readFile(file, 0)
			if err != nil {
				continue
			}
			for value := range valuesOf(string(data), strings.Fields(row.Keys)) {
				add(value, row.Bare)
			}
		}
	}
	return out
}

// toolFiles are the files that a row means here. What the workspace holds is
// not the person's word.
func (w *Place) toolFiles(name string) []string {
	if rest, ok := strings.CutPrefix(name, "{git}"); ok {
		files := []string{path.Join(w.Workspace, ".git", rest)}
		for _, dir := range w.GitDirs {
			files = append(files, path.Join(dir, rest))
		}
		return files
	}
	if variable, ok := strings.CutPrefix(name, "$"); ok {
		variable, rest, _ := strings.Cut(variable, "/")
		value := w.getenv(variable)
		if !path.IsAbs(value) {
			return nil
		}
		name = path.Join(value, rest)
	}
	files := []string{w.expand(name)}
	if strings.Contains(path.Base(name), "*") {
		files, _ = filepath.Glob(files[0])
	}
	return slices.DeleteFunc(files, func(file string) bool {
		real, err := filepath.EvalSymlinks(file)
		return err != nil || sandbox.Covers(w.Workspace, real)
	})
}

// valuesOf yields what stands behind the keys in lines of the forms "key = value",
// "key: value" and "key value", with the lines that go on after them, or all lines
// if no key is given.
func valuesOf(text string, keys []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		wanted := len(keys) == 0
		for line := range strings.Lines(text) {
			trimmed := strings.TrimSpace(line)
			if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
				continue
			}
			value := trimmed
			first, _, _ := strings.Cut(trimmed, " ")
			if len(keys) > 0 && !(line[0] == ' ' && strings.Contains(first, "://")) {
				key := trimmed
				if i := keyEnd(trimmed); i > 0 {
					key, value = trimmed[:i], trimmed[i:]
				}
				key = strings.ToLower(strings.Trim(key, `"'`))
				wanted = slices.ContainsFunc(keys, func(k string) bool {
					if head, ok := strings.CutPrefix(k, "["); ok { // a section that holds the value
						head = strings.TrimSuffix(head, "*")
						return strings.HasPrefix(strings.ToLower(trimmed), "["+head)
					}
					ok, _ := path.Match(k, key)
					return ok
				})
				if strings.HasPrefix(trimmed, "[") {
					value = trimmed
				}
			}
			if wanted && !yield(value) {
				return
			}
		}
	}
}

// keyEnd is where the key of a line ends. A colon is a part of it where another
// character follows, as in "@scope:registry".
func keyEnd(line string) int {
	for i := range len(line) {
		switch c := line[i]; {
		case c == '=' || c == ' ' || c == '\t':
			return i
		case c == ':' && (i+1 == len(line) || line[i+1] == ' '):
			return i
		}
	}
	return -1
}

// schemes are those of addresses, with the port that stands for each.
var schemes = map[string]string{"https": "443", "http": "80", "ssh": "22", "git": "9418"}

// hostsIn finds hosts in a text with addresses (RFC 3986), or, for git, of the
// form user@host:path, as patterns with ports.
func hostsIn(text string, bare bool) []string {
	var out []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n=,|\"'<>[]", r) }) {
		scheme, rest, isURL := strings.Cut(word, "://")
		scheme = strings.ToLower(scheme[strings.LastIndexByte(scheme, '+')+1:]) // sparse+https
		authority, _, _ := strings.Cut(rest, "/")
		port := schemes[scheme]
		switch {
		case isURL && port != "":
		case isURL:
			continue
		case scpLike(word):
			authority, _, _ = strings.Cut(word, ":")
			port = schemes["ssh"]
		case bare && strings.Contains(word, "."):
			authority, _, _ = strings.Cut(word, "+") // sum.example+key
			port = schemes["https"]
		default:
			continue
		}
		if i := strings.LastIndexByte(authority, '@'); i >= 0 {
			authority = authority[i+1:]
		}
		host, given, err := policy.ParseHostPort(authority)
		if err != nil {
			continue
		}
		if given == 0 {
			out = append(out, host.String()+":"+port)
		} else {
			out = append(out, host.WithPort(given))
		}
	}
	return out
}

// scpLike says whether a word is user@host:path (git-clone(1), "GIT URLS").
func scpLike(word string) bool {
	colon, slash, at := strings.IndexByte(word, ':'), strings.IndexByte(word, '/'), strings.IndexByte(word, '@')
	return at > 0 && colon > at && (slash < 0 || slash > colon)
}
