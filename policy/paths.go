package policy

import (
	"path"
	"strings"
)

// systemRoots are readable when the scope names no roots: programs, libraries
// and facts about the system, nothing that belongs to a person.
var systemRoots = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/tmp",
	"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/alpine-release", "/etc/redhat-release", "/etc/issue",
	"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols", "/etc/shells",
	"/etc/timezone", "/etc/localtime", "/etc/mime.types", "/etc/ld.so.conf", "/etc/alternatives",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime", "/proc/stat", "/proc/filesystems", "/proc/mounts", "/proc/partitions",
	"/proc/self/status", "/proc/self/limits", "/proc/self/cgroup", "/proc/self/mountinfo", "/proc/sys/kernel/osrelease",
	"/sys/fs/cgroup", "/sys/class", "/sys/devices/system/cpu",
}

// programDirs hold the system's own programs.
var programDirs = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/usr/libexec"}

// harmlessDevices may be read and written by anybody.
const harmlessDevices = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/stdin /dev/stdout /dev/stderr /dev/tty"

// protectedNames are files and folders below a workspace whose content runs
// later without anyone's doing. A question precedes every write. Where the
// scope has a list of its own, they count at any depth if that list has them
// at the top.
var protectedNames = []string{
	".git/config", ".git/config.worktree", ".git/hooks", ".git/info", ".git/modules", ".git/worktrees", ".git/objects/info",
	".sandbox-exec.toml", ".envrc", ".vscode", ".cursor", ".claude", ".codex", ".gemini", ".idea",
	".husky/_", ".devcontainer",
}

// startupNames are files below home that run at a login or at every start of
// a program.
var startupNames = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".inputrc",
	".ssh", ".gnupg", ".gitconfig", ".config", ".local/bin", ".npmrc", ".cargo/config.toml", ".cargo/bin", "bin", ".vimrc", ".emacs", ".emacs.d", ".pythonrc", ".pypirc", ".netrc", ".aws", ".kube", ".docker",
}

func inside(p, root string) bool {
	return root == "/" && strings.HasPrefix(p, "/") || p == root || len(p) > len(root) && p[len(root)] == '/' && p[:len(root)] == root
}

func insideAny(p string, roots []string) bool {
	for _, r := range roots {
		if inside(p, r) {
			return true
		}
	}
	return false
}

// candidates are the absolute paths that a word can name, as written: not
// cleaned, because a link before ".." leads elsewhere. None when it is unknown.
// They are put into list, which the caller makes with room for maxDirs.
func candidates(w word, st *state, list []string) []string {
	if w.kind == dynamicWord && w.fixed == 0 && !w.below {
		return nil
	}
	if strings.HasPrefix(w.text, "/") {
		return append(list, w.text)
	}
	for _, d := range st.dirs {
		if w.text == "" {
			list = append(list, d)
		} else if d == "/" {
			list = append(list, "/"+w.text)
		} else {
			list = append(list, d+"/"+w.text)
		}
	}
	return list
}

func (j *judge) readable(p string) bool { return j.opens(j.scope.Read, p) }

func (j *judge) writable(p string) bool { return j.opens(j.scope.Write, p) }

// opens reports whether p is inside the roots and not hidden: of all paths that
// cover p the most specific one decides, and a root beats what is hidden at the
// same path.
func (j *judge) opens(roots []string, p string) bool {
	n := covering(roots, p)
	return n > 0 && n >= covering(j.scope.Hidden, p)
}

// covering is the length of the longest path in list that p is inside of.
func covering(list []string, p string) int {
	n := 0
	for _, r := range list {
		if len(r) > n && inside(p, r) {
			n = len(r)
		}
	}
	return n
}

// resolved is where a path leads when its links are followed.
func (j *judge) resolved(raw string) string {
	if j.scope.Resolver == nil {
		return ""
	}
	p, err := j.scope.Resolver.Resolve(raw)
	if err != nil || p == "" {
		return ""
	}
	return path.Clean(p)
}

func device(p string) bool {
	return inside(p, "/dev") || inside(p, "/sys") || inside(p, "/proc")
}

func harmlessDevice(p string) bool {
	return listed(harmlessDevices, p) || strings.HasPrefix(p, "/dev/fd/") && isNumber(p[len("/dev/fd/"):])
}

// readPath judges the reading of a path. It adds a target for what is not
// inside the roots.
func (f *frame) readPath(c *command, w word, st *state, redirect bool) risk {
	if w.process || w.number || w.kind == literalWord && w.text == "" {
		return riskSafe
	}
	if w.literal() && f.plainlyInside(w.text, st) {
		return riskSafe
	}
	list := candidates(w, st, make([]string, 0, maxDirs))
	if len(list) == 0 || w.kind == dynamicWord && !w.below {
		return f.addPath(c, FileRead, w, w.text, DynamicPath, "the path is known only when it runs", riskUnproven, filePath{pattern: anyPath})
	}
	worst := riskSafe
	for _, raw := range list {
		lex := path.Clean(raw)
		real := ""
		if w.kind == literalWord {
			real = f.j.resolved(raw)
		}
		at := func() filePath { return filePath{names: bothPaths(lex, real), pattern: patternOf(raw, w)} }
		if w.kind != literalWord && w.fixed > 0 && strings.HasPrefix(w.text, "/") && strings.Count(w.text[:w.fixed], "/") < 2 && lex != "/" {
			lex = "/" // a pattern in the root
		}
		switch {
		case redirect && (inside(lex, "/dev/tcp") || inside(lex, "/dev/udp")):
			worst = max(worst, f.addPath(c, NetworkTo, w, peer(lex), NetworkRedirect, "opens a connection", riskDanger, filePath{}))
		case harmlessDevice(lex):
		case !f.j.readable(lex):
			reason, detail := OutsideRead, "outside the readable roots"
			if insideAny(lex, f.j.scope.Hidden) {
				detail = "hidden from commands"
			}
			worst = max(worst, f.addPath(c, FileRead, w, lex, reason, detail, riskOutside, at()))
		case real != "" && real != lex && !f.j.readable(real) && !harmlessDevice(real):
			worst = max(worst, f.addPath(c, FileRead, w, real, OutsideRead, lex+" is a link to it", riskOutside, at()))
		case f.j.fileRules:
			f.add(c, item{Target: Target{Action: FileRead, Resource: lex, Reason: InsideRoot, Dynamic: w.kind == dynamicWord}, risk: riskSafe, filePath: at()})
		}
	}
	return worst
}

// plainlyInside is a quick answer for the usual relative path.
func (f *frame) plainlyInside(p string, st *state) bool {
	j := f.j
	if j.scope.Resolver != nil || j.fileRules || len(j.scope.Hidden) > 0 || len(st.dirs) != 1 || p == "" || p[0] == '/' || strings.Contains(p, "..") {
		return false
	}
	return j.readable(st.dirs[0])
}

// readGlob reports a pattern that lists a folder outside the readable roots.
func (f *frame) readGlob(c *command, w word, st *state) {
	if strings.HasPrefix(w.text, "/") || strings.Contains(w.text, "..") {
		f.readPath(c, w, st, false)
	}
}

// writePath judges the writing, creation or removal of a path.
func (f *frame) writePath(c *command, w word, st *state) risk {
	if w.process {
		return riskSafe
	}
	list := candidates(w, st, make([]string, 0, maxDirs))
	if len(list) == 0 {
		return f.addPath(c, FileWrite, w, w.text, DynamicPath, "the path is known only when it runs", riskUnproven, filePath{pattern: anyPath})
	}
	if !strings.HasPrefix(w.text, "/") {
		list = list[:min(len(list), max(st.likely, 1))]
	}
	worst := riskSafe
	for _, raw := range list {
		lex := path.Clean(raw)
		if w.kind == dynamicWord {
			// Only the folder is certain.
			k := strings.LastIndexByte(raw[:len(raw)-len(w.text)+w.fixed], '/')
			lex = path.Clean(raw[:max(k, 1)])
			if lex == "/" {
				worst = max(worst, f.addPath(c, FileWrite, w, w.text, DynamicPath, "the path is known only when it runs", riskUnproven, filePath{pattern: anyPath}))
				continue
			}
		}
		worst = max(worst, f.writeTo(c, w, raw, lex, f.j.resolved(raw)))
	}
	return worst
}

// peer is the host and port of /dev/tcp/HOST/PORT: Bash manual 3.6.
func peer(p string) string {
	host, port, _ := strings.Cut(strings.TrimPrefix(p[len("/dev/tcp"):], "/"), "/")
	return connection(host, port)
}

// connection is the host and port that a program is given, in the spelling of
// rules; what is no host, or no port, stays as it was written.
func connection(host, port string) string {
	bare := host
	if strings.Count(host, ":") > 1 && host[0] != '[' {
		host = "[" + host + "]"
	}
	h, err := ParseHost(host)
	n, ok := portNumber(port)
	switch {
	case err != nil && port == "":
		return bare
	case err != nil || !ok && port != "":
		return host + ":" + port
	}
	return h.WithPort(n)
}

// writeTo judges a change to lex, written as raw, which really changes real,
// when that is known.
func (f *frame) writeTo(c *command, w word, raw, lex, real string) risk {
	at := filePath{names: bothPaths(lex, real), pattern: patternOf(raw, w)}
	switch {
	case inside(lex, "/dev/tcp"), inside(lex, "/dev/udp"):
		return f.addPath(c, NetworkTo, w, peer(lex), NetworkRedirect, "opens a connection", riskDanger, filePath{})
	case harmlessDevice(lex):
		return riskSafe
	case inside(lex, "/dev/shm") && lex != "/dev/shm":
		return f.addPath(c, FileWrite, w, lex, FileChange, "changes a file in shared memory", riskUnproven, at)
	case device(lex):
		return f.addPath(c, FileWrite, w, lex, Device, "a device or a control file of the kernel", riskDanger, at)
	case f.j.protected(lex):
		return f.addPath(c, FileWrite, w, lex, ProtectedPath, "its content runs later, outside the sandbox", riskDanger, at)
	case !f.j.writable(lex):
		return f.addPath(c, FileWrite, w, lex, OutsideWrite, "outside the writable roots", riskDanger, at)
	}
	if w.kind == literalWord {
		if real != "" && real != lex {
			switch {
			case harmlessDevice(real):
			case f.j.protected(real):
				return f.addPath(c, FileWrite, w, real, ProtectedPath, lex+" is a link to it", riskDanger, at)
			case !f.j.writable(real) || device(real):
				return f.addPath(c, FileWrite, w, real, OutsideWrite, lex+" is a link to it", riskDanger, at)
			}
		}
	}
	f.add(c, item{Target: Target{Action: FileWrite, Resource: lex, Reason: FileChange, Detail: "changes a file", Dynamic: w.kind == dynamicWord}, risk: riskUnproven, filePath: at})
	return riskUnproven
}

// filePath is what rules about files are tried on.
type filePath struct {
	names   []string // the path as written and with its links followed
	pattern string   // what the path matches when it is not certain, else ""
}

// anyPath is the pattern of a path of which nothing is certain.
const anyPath = "/**"

// patternOf is the pattern of the paths that the word can become, written as
// raw. What a variable holds can lead anywhere.
func patternOf(raw string, w word) string {
	switch {
	case w.kind == literalWord:
		return ""
	case w.kind == dynamicWord && !w.below:
		return anyPath
	case w.kind == dynamicWord && strings.ContainsAny(w.text[w.fixed:], "$`…"):
		k := strings.LastIndexByte(raw[:len(raw)-len(w.text)+w.fixed], '/')
		return path.Join(raw[:k+1], "**")
	}
	return path.Clean(raw)
}

// bothPaths are a path as written and where it leads.
func bothPaths(lex, real string) []string {
	if real != "" && real != lex {
		return []string{lex, real}
	}
	return []string{lex}
}

// protected reports whether a write to p, or to everything below p, changes
// what runs later.
func (j *judge) protected(p string) bool {
	if insideAny(p, j.scope.Protected) {
		return true
	}
	top, rel := strings.TrimSuffix(j.scope.Workspace, "/"), p
	if inside(p, j.scope.Workspace) {
		rel = p[len(top):]
	}
	for _, name := range protectedNames {
		if holdsNames(rel, name) && (j.scope.Protected == nil || contains(j.scope.Protected, top+"/"+name)) {
			return true
		}
	}
	if inside(p, j.scope.Home) && !inside(j.scope.Workspace, p) {
		for _, name := range startupNames {
			if inside(p, path.Join(j.scope.Home, name)) {
				return !inside(p, j.scope.Workspace)
			}
		}
	}
	return false
}

// holdsNames reports whether the names stand side by side in the path p.
func holdsNames(p, names string) bool {
	for i := 0; ; {
		k := strings.Index(p[i:], names)
		if k < 0 {
			return false
		}
		start, end := i+k, i+k+len(names)
		if (start == 0 || p[start-1] == '/') && (end == len(p) || p[end] == '/') {
			return true
		}
		i = start + 1
	}
}

// top says what would be removed with the clean path p: the root or home.
func (j *judge) top(p string) Reason {
	for strings.Contains(p, "/") && catchAll(path.Base(p)) {
		p = path.Dir(p)
	}
	switch {
	case p == "/":
		return RemovesRoot
	case inside(j.scope.Home, p), j.matchesHome(p):
		return RemovesHome
	}
	return ""
}

// matchesHome reports whether p is a pattern that matches home or a folder
// above it, name by name.
func (j *judge) matchesHome(p string) bool {
	if !strings.ContainsAny(p, "*?[") {
		return false
	}
	names, home := strings.Split(p, "/"), strings.Split(j.scope.Home, "/")
	if len(names) > len(home) {
		return false
	}
	for i, name := range names {
		if ok, err := path.Match(name, home[i]); !ok || err != nil || strings.HasPrefix(home[i], ".") && name[0] != '.' {
			return false
		}
	}
	return true
}

// catchAll reports whether a pattern stands for every entry of a folder, or
// every hidden one.
func catchAll(s string) bool {
	star := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*':
			star = true
		case '?', '.':
		case '[':
			k := strings.IndexByte(s[i:], ']')
			if k < 0 {
				return false
			}
			i += k
		default:
			return false
		}
	}
	return star
}

// systemProgram reports whether a path names a program of the system.
func (j *judge) systemProgram(p string) bool {
	dir := path.Dir(p)
	return path.IsAbs(p) && path.Clean(p) == p && contains(programDirs, dir) && !inside(dir, j.scope.Workspace)
}

// disposable reports whether p is, or is below, a folder inside the workspace
// that can be made again.
func (j *judge) disposable(p string) bool {
	if !inside(p, j.scope.Workspace) || p == j.scope.Workspace {
		return false
	}
	return j.disposableName(p[len(strings.TrimSuffix(j.scope.Workspace, "/"))+1:])
}

// disposableName reports whether a relative path is, or is below, a folder
// that can be made again, wherever it is relative to.
func (j *judge) disposableName(rel string) bool {
	rel = path.Clean(rel)
	if path.IsAbs(rel) || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	for rel != "" {
		name, rest, _ := strings.Cut(rel, "/")
		for _, d := range j.policy.Disposable {
			if name == d {
				return true
			}
			if ok, err := path.Match(d, name); ok && err == nil && !catchAll(d) {
				return true
			}
		}
		rel = rest
	}
	return false
}

// temporary reports whether p is below a temporary folder of the scope and not
// in a workspace there.
func (j *judge) temporary(p string) bool {
	return inside(p, "/tmp") && p != "/tmp" && !catchAll(strings.TrimPrefix(p, "/tmp/")) && j.writable(p) && !inside(j.scope.Workspace, p) && !inside(p, j.scope.Workspace)
}
