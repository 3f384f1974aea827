package runner

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxGitConfig bounds a repository's configuration, in bytes. Each run keeps a
// copy of it in its record.
const maxGitConfig = 64 << 10

// gitSetting is one line of a git configuration.
type gitSetting struct {
	section    string // in lower case
	subsection string
	named      bool   // there is a subsection, be it an empty one
	key        string // in lower case
	value      string
	bare       bool // "key" alone, which is true (git-config(1), Syntax)
}

func (s gitSetting) name() string {
	if s.named {
		return s.section + "." + s.subsection + "." + s.key
	}
	return s.section + "." + s.key
}

// plainSettings are what git, and what people set with it, writes into a
// repository's configuration, and what makes git run no program and read no
// other file (git-config(1)). A section stands here with a dot where it has
// subsections. Every other key may run something, now or in a later git.
var plainSettings = []struct{ section, keys string }{
	{"core", "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath"},
	{"extensions", "objectformat refstorage"},
	{"remote.", "url pushurl fetch push prune prunetags tagopt mirror skipdefaultupdate gh-resolved"},
	{"branch.", "remote pushremote merge rebase description"},
	{"submodule.", "url active branch"},
	{"submodule", "active"},
	{"user", "name email useconfigonly"},
	{"init", "defaultbranch"},
	{"push", "default autosetupremote followtags"},
	{"pull", "rebase ff"},
	{"fetch", "prune prunetags"},
	{"merge", "ff conflictstyle"},
	{"rebase", "autosquash autostash updaterefs"},
	{"rerere", "enabled autoupdate"},
	{"remote", "pushdefault"},
	{"lfs", "repositoryformatversion"},
	{"gui", "wmstate geometry"},
}

// plain says whether a setting runs nothing.
func (s gitSetting) plain() bool {
	section := s.section
	if s.named {
		section += "."
	}
	for _, row := range plainSettings {
		if row.section == section {
			// "helper::address" starts git-remote-helper (gitremote-helpers(7)).
			return slices.Contains(strings.Fields(row.keys), s.key) && !strings.Contains(s.value, "::")
		}
	}
	return false
}

// directory says whether git takes a setting's value for the path of a directory
// to push to (connect.c, url_is_local_not_ssh), where it runs the hooks of the
// repository that it finds. known are names of remotes, which are none.
func (s gitSetting) directory(known map[string]bool) bool {
	switch {
	case s.section == "remote" && s.named && (s.key == "url" || s.key == "pushurl"):
	case s.section == "branch" && s.named && (s.key == "remote" || s.key == "pushremote"),
		s.section == "remote" && !s.named && s.key == "pushdefault":
		if s.value == "." || known[s.value] { // "." is the repository itself
			return false
		}
	default:
		return false
	}
	colon, slash := strings.IndexByte(s.value, ':'), strings.IndexByte(s.value, '/')
	return strings.HasPrefix(s.value, "file:") || colon < 0 || slash >= 0 && slash < colon
}

// remotes are the names of the remotes that have a URL in a list, a directory's
// or another.
func remotes(list []gitSetting, directory bool) map[string]bool {
	names := map[string]bool{}
	for _, s := range list {
		if s.section == "remote" && s.named && s.key == "url" && s.directory(nil) == directory {
			names[s.subsection] = true
		}
	}
	return names
}

// plainGitConfig says whether a repository's configuration runs nothing.
func plainGitConfig(text string) bool {
	settings, err := parseGitConfig(text)
	return err == nil && !slices.ContainsFunc(settings, func(s gitSetting) bool { return !s.plain() })
}

var errGitConfig = errors.New("not written as git writes it")

// parseGitConfig reads a configuration as git does (config.c, git_parse_source),
// so that no text means one thing here and another to git.
func parseGitConfig(text string) ([]gitSetting, error) {
	if strings.ContainsRune(text, 0) { // where git's own strings end
		return nil, errGitConfig
	}
	p := gitConfigParser{text: strings.TrimPrefix(text, "\ufeff")}
	var settings []gitSetting
	var in gitSetting
	for {
		c := p.next()
		switch {
		case c == '\n':
			if p.end {
				return settings, nil
			}
		case isBlank(c):
		case c == '#' || c == ';':
			for p.next() != '\n' {
			}
			if p.end {
				return settings, nil
			}
		case c == '[':
			var ok bool
			if in, ok = p.section(); !ok {
				return nil, errGitConfig
			}
		case isAlpha(c) && in.section != "":
			s := in
			if !p.setting(&s, c) {
				return nil, errGitConfig
			}
			settings = append(settings, s)
			if p.end {
				return settings, nil
			}
		default:
			return nil, errGitConfig
		}
	}
}

type gitConfigParser struct {
	text string
	at   int
	end  bool // the last character was the end, which counts as a newline
}

func (p *gitConfigParser) next() byte {
	if p.at == len(p.text) {
		p.end = true
		return '\n'
	}
	c := p.text[p.at]
	p.at++
	if c == '\r' && p.at < len(p.text) && p.text[p.at] == '\n' {
		p.at++
		return '\n'
	}
	return c
}

// section reads what follows "[".
func (p *gitConfigParser) section() (s gitSetting, ok bool) {
	var name []byte
	for {
		c := p.next()
		switch {
		case p.end:
			return s, false
		case c == ']':
			s.section = string(name)
			// "[a.b]" is the old form of [a "b"].
			s.section, s.subsection, s.named = strings.Cut(s.section, ".")
			return s, s.section != ""
		case isBlank(c) || c == '\n':
			if strings.ContainsRune(string(name), '.') {
				return s, false // git takes "[a.b "c"]"; nobody writes it
			}
			s.section, s.named = string(name), true
			var inside bool
			s.subsection, inside = p.subsection(c)
			return s, inside && s.section != ""
		case !isKeyChar(c) && c != '.':
			return s, false
		}
		name = append(name, lower(c))
	}
}

func (p *gitConfigParser) subsection(c byte) (string, bool) {
	for isBlank(c) && c != '\n' {
		c = p.next()
	}
	if c != '"' {
		return "", false
	}
	var name []byte
	for {
		switch c = p.next(); c {
		case '\n':
			return "", false
		case '"':
			return string(name), p.next() == ']'
		case '\\':
			if c = p.next(); c == '\n' {
				return "", false
			}
		}
		name = append(name, c)
	}
}

// setting reads a key that begins with c, and its value.
func (p *gitConfigParser) setting(s *gitSetting, c byte) bool {
	key := []byte{lower(c)}
	for c = p.next(); isKeyChar(c); c = p.next() {
		key = append(key, lower(c))
	}
	s.key = string(key)
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	if c == '\n' {
		s.bare = true
		return true
	}
	if c != '=' {
		return false
	}
	var ok bool
	s.value, ok = p.value()
	return ok
}

func (p *gitConfigParser) value() (string, bool) {
	var value []byte
	quoted, comment, trim := false, false, -1
	for {
		c := p.next()
		switch {
		case c == '\n':
			if trim >= 0 {
				value = value[:trim]
			}
			return string(value), !quoted
		case comment:
			continue
		case isBlank(c) && !quoted:
			if trim < 0 {
				trim = len(value)
			}
			if len(value) > 0 {
				value = append(value, c)
			}
			continue
		case !quoted && (c == ';' || c == '#'):
			comment = true
			continue
		}
		trim = -1
		switch c {
		case '"':
			quoted = !quoted
			continue
		case '\\':
			c = p.next()
			i := strings.IndexByte("tbn\\\"", c)
			switch {
			case c == '\n' && !p.end:
				continue
			case i < 0:
				return "", false
			}
			c = "\t\b\n\\\""[i]
		}
		value = append(value, c)
	}
}

func isAlpha(c byte) bool   { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isKeyChar(c byte) bool { return isAlpha(c) || c >= '0' && c <= '9' || c == '-' }
func isBlank(c byte) bool   { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
func lower(c byte) byte     { return strings.ToLower(string(rune(c)))[0] }

// formatGitConfig writes settings so that parseGitConfig, and git, read them.
func formatGitConfig(settings []gitSetting) string {
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	var last gitSetting
	for _, s := range settings {
		if s.section != last.section || s.subsection != last.subsection || s.named != last.named {
			b.WriteString("[" + s.section)
			if s.named {
				b.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.subsection) + `"`)
			}
			b.WriteString("]\n")
		}
		b.WriteString("\t" + s.key)
		value := s.value
		if value == "" || value != strings.TrimSpace(value) || strings.ContainsAny(value, "\"\\#;\n\r\t\b") {
			value = `"` + escape.Replace(value) + `"`
		}
		if !s.bare {
			b.WriteString(" = " + value)
		}
		b.WriteByte('\n')
		last = s
	}
	return b.String()
}

// checkGitConfig compares a configuration with what it was before a command
// could write it. It returns the names of the settings that may run something
// and that are not what they were, and, where there are such, what to write: the
// settings that run something as they were before, all others as they are now.
// A text that is not understood is one such change as a whole.
func checkGitConfig(before, after string) (changed []string, restored string) {
	now, err := parseGitConfig(after)
	if err != nil {
		return []string{"a line that git does not write"}, before
	}
	was, err := parseGitConfig(before)
	if err != nil { // nothing of it was in force
		was = nil
	}
	// A remote that is a directory stays only if it was there, another one only
	// if it is there still.
	known, knew := remotes(now, false), remotes(was, false)
	maps.Copy(known, remotes(was, true))
	maps.Copy(knew, remotes(was, true))
	runs := func(list []gitSetting, known map[string]bool) (out []gitSetting) {
		for _, s := range list {
			if !s.plain() || s.directory(known) {
				out = append(out, s)
			}
		}
		return out
	}
	old, new := runs(was, knew), runs(now, known)
	if slices.Equal(old, new) {
		return nil, ""
	}
	for _, s := range slices.Concat(old, new) {
		count := func(list []gitSetting) (n int) {
			for _, o := range list {
				if o == s {
					n++
				}
			}
			return n
		}
		if count(old) != count(new) && !slices.Contains(changed, s.name()) {
			changed = append(changed, s.name())
		}
	}
	if changed == nil {
		changed = []string{"the order of settings"}
	}
	// What runs something comes first: it is the person's own, which an include
	// may be among, and the repository's plain settings overrule that as before.
	kept := old
	for _, s := range now {
		if s.plain() && !s.directory(known) {
			kept = append(kept, s)
		}
	}
	return changed, formatGitConfig(kept)
}

// restoreGitConfig looks at a configuration that a command could write, and puts
// back what in it runs programs. The file is reached through no link, and one
// that is no file of at most maxGitConfig bytes is replaced as a whole.
func (w *watchman) restoreGitConfig(path, before string) (changed []string, err error) {
	s, err := openSpot(w.top(path), path)
	if errors.Is(err, os.ErrNotExist) {
		if before == "" {
			return nil, nil
		}
		return nil, fmt.Errorf("%s is gone", filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	defer s.close()
	after, err := readSmallAt(s.dir(), s.base())
	var restored string
	switch {
	case errors.Is(err, os.ErrNotExist):
		if before == "" {
			return nil, nil
		}
		changed, restored = []string{"it was removed"}, before
	case err != nil:
		changed, restored = []string{err.Error()}, before
	default:
		if changed, restored = checkGitConfig(before, string(after)); changed == nil {
			return nil, nil
		}
	}
	return changed, replaceAt(s.dir(), s.base(), []byte(restored))
}

// readSmallAt reads a regular file in a directory, through no link.
func readSmallAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			err = errors.New("it is a link")
		}
		return nil, err
	}
	return readSmallFile(os.NewFile(uintptr(fd), name), maxGitConfig)
}

// replaceAt puts a new file, with the owner and the mode of the old one, in the
// place of whatever but a directory has the name.
func replaceAt(dir int, name string, data []byte) error {
	var like unix.Stat_t
	mode := uint32(0o644)
	if err := unix.Fstat(dir, &like); err != nil {
		return err
	}
	var old unix.Stat_t
	if unix.Fstatat(dir, name, &old, unix.AT_SYMLINK_NOFOLLOW) == nil && old.Mode&unix.S_IFMT == unix.S_IFREG {
		mode = uint32(old.Mode & 0o666)
	}
	part := ".sandbox-exec-" + token()
	fd, err := unix.Openat(dir, part, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), part)
	_, err = f.Write(data)
	if os.Geteuid() == 0 {
		err = errors.Join(err, f.Chown(int(like.Uid), int(like.Gid)))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = unix.Renameat(dir, part, dir, name)
	}
	if err != nil {
		unix.Unlinkat(dir, part, 0)
	}
	return err
}
