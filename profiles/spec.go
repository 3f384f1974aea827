package profiles

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Policy returns what the judge decides by.
func (p *Profile) Policy() *policy.Policy {
	names := make([]string, len(disposableRows))
	for i, row := range disposableRows {
		names[i] = row.Name
	}
	return &policy.Policy{Mode: p.Mode, Rules: slices.Concat(p.Rules, p.deniedHosts()), Disposable: names}
}

// deniedHosts are DenyHosts as rules, so that what the sandbox refuses anyway is
// told before. The hosts of a set are known to the sandbox alone.
func (p *Profile) deniedHosts() []policy.Rule {
	var rules []policy.Rule
	for _, host := range p.DenyHosts {
		if !strings.HasPrefix(host, "@") {
			rules = append(rules, policy.Rule{Action: policy.NetworkTo, Verdict: policy.Deny, Pattern: host, Source: "deny-hosts"})
		}
	}
	return rules
}

// Scope returns what the judge has to know of the place: it takes as readable
// and writable what Spec makes so. User, Shell and Resolver are the caller's.
func (p *Profile) Scope(place Place) policy.Scope {
	rules, _ := p.fileRules(&place) // a pattern that cannot be expanded stops Spec; the judge needs less
	scope := policy.Scope{
		Cwd:       place.cwd(),
		Workspace: place.Workspace,
		Home:      place.Home,
		Write:     []string{place.tmp()},
		Hidden:    make([]string, 0, len(rules)),
	}
	for _, r := range rules {
		switch r.Access {
		case sandbox.None:
			scope.Hidden = append(scope.Hidden, r.Path)
		case sandbox.ReadOnly:
			scope.Read = append(scope.Read, r.Path)
		case sandbox.ReadWrite:
			scope.Read = append(scope.Read, r.Path)
			scope.Write = append(scope.Write, r.Path)
		}
	}
	names, _ := p.protected(&place) // a name that cannot be left out stops Spec
	for _, n := range names {
		if n.Guard == sandbox.Block {
			scope.Protected = append(scope.Protected, n.Path)
		}
	}
	return scope
}

// Spec returns what the sandbox enforces. The error is a *sandbox.SpecError.
func (p *Profile) Spec(place Place) (sandbox.Spec, error) {
	if err := place.check(); err != nil {
		return sandbox.Spec{}, err
	}
	if p.Workspace == sandbox.ReadWrite {
		if err := place.checkWritable(); err != nil {
			return sandbox.Spec{}, err
		}
	}
	rules, err := p.fileRules(&place)
	if err != nil {
		return sandbox.Spec{}, err
	}
	if err := p.reachable(rules, &place); err != nil {
		return sandbox.Spec{}, err
	}
	spec := sandbox.Spec{
		Workspace:    place.Workspace,
		Home:         place.Home,
		Files:        rules,
		Network:      p.Network,
		Limits:       p.Limits,
		Require:      p.Require,
		AllowMissing: p.AllowMissing,
	}
	if p.Network == sandbox.NetworkAllow {
		if spec.Hosts, err = p.hosts(&place); err != nil {
			return sandbox.Spec{}, err
		}
	}
	if p.Workspace == sandbox.ReadWrite {
		if spec.Protect, err = p.protected(&place); err != nil {
			return sandbox.Spec{}, err
		}
	}
	for _, s := range p.Sockets {
		spec.Sockets = append(spec.Sockets, place.expand(s))
	}
	sockets, _ := p.signing(&place)
	spec.Sockets = append(spec.Sockets, sockets...)
	if p.Tmp == "session" {
		if place.TmpDir == "" {
			return sandbox.Spec{}, &sandbox.SpecError{
				Field: "tmp", Value: p.Tmp, Err: errors.New("there is no directory to keep it in"), Hint: "use --tmp private",
			}
		}
		spec.Tmp = place.TmpDir
	}
	if spec.Limits.Memory == 0 && p.MemoryShare > 0 {
		memory := place.Memory
		if memory == 0 {
			if memory, err = machineMemory(); err != nil {
				return sandbox.Spec{}, &sandbox.SpecError{
					Field: "memory", Value: fmt.Sprintf("%v%%", p.MemoryShare*100), Err: err, Hint: "give a size, such as --memory 4G",
				}
			}
		}
		spec.Limits.Memory = int64(float64(memory) * p.MemoryShare)
	}
	return spec, nil
}

// fileRules says who may do what with which files.
func (p *Profile) fileRules(place *Place) ([]sandbox.FileRule, error) {
	rules := make([]sandbox.FileRule, 0, len(secretRows)+len(socketRows)+64)
	add := func(path string, access sandbox.Access, sort sandbox.Sort, reason string) {
		rules = append(rules, sandbox.FileRule{Path: path, Access: access, Sort: sort, Reason: reason})
	}
	add("/", sandbox.ReadOnly, sandbox.Normal, "system and home")
	add(place.Workspace, p.Workspace, sandbox.Normal, "the workspace")
	for _, dir := range place.GitDirs {
		add(dir, p.Workspace, sandbox.Normal, "the workspace's repository")
	}
	if place.CacheDir != "" && p.Workspace == sandbox.ReadWrite {
		add(place.CacheDir, sandbox.ReadWrite, sandbox.Normal, "caches of toolchains")
	}
	shared, err := p.sharedCaches(place)
	for _, cache := range shared {
		add(cache.dir, sandbox.ReadWrite, sandbox.Normal, "cache of "+cache.Tool+": "+cache.Reason)
	}
	if err != nil {
		return rules, err
	}
	if place.os() == "linux" {
		// Whoever writes here lifts the limits; programs read them here.
		add("/sys/fs/cgroup", sandbox.ReadOnly, sandbox.Hard, "resource limits")
	}
	for _, dir := range []string{place.StateDir, place.ConfigDir} {
		if dir != "" {
			add(dir, sandbox.None, sandbox.Hard, "what the next command may do")
		}
	}
	rules = appendSecrets(rules, place)
	rules = appendSockets(rules, place)
	rules, err = p.appendHidden(rules, place)
	return p.reopen(rules, place), err
}

// appendSecrets hides the secrets of every home and of the system.
func appendSecrets(rules []sandbox.FileRule, place *Place) []sandbox.FileRule {
	hide := func(path, reason string) {
		rules = append(rules, sandbox.FileRule{Path: path, Sort: sandbox.Secret, Reason: reason})
	}
	var paths joiner
	paths.Grow(32 * len(secretRows))
	homes := []string{place.Home}
	for _, home := range place.MoreHomes {
		if place.UID == 0 && !place.needs(home) {
			hide(home, "another person's home")
		} else {
			homes = append(homes, home)
		}
	}
	moved := place.movedFolders()
	for i := range secretRows {
		row := &secretRows[i]
		switch {
		case row.OS != "" && row.OS != place.os():
		case row.Env != "":
			for _, p := range filepath.SplitList(place.getenv(row.Env)) {
				if p = path.Join(place.resolve(p), row.Path); place.canHide(p) {
					hide(p, row.Reason)
				}
			}
		case row.Path[0] == '~':
			for _, home := range homes {
				hide(paths.join(strings.TrimSuffix(home, "/"), row.Path[1:]), row.Reason)
			}
			for _, m := range moved {
				if rest, ok := strings.CutPrefix(row.Path, m.from); ok {
					hide(paths.join(m.to, rest), row.Reason)
				}
			}
		case !slices.ContainsFunc(homes, func(home string) bool { return sandbox.Covers(row.Path, home) }):
			hide(row.Path, row.Reason)
		}
	}
	return rules
}

// joiner joins many short paths in one allocation.
type joiner struct{ strings.Builder }

func (j *joiner) join(parts ...string) string {
	start := j.Len()
	for _, part := range parts {
		j.WriteString(part)
	}
	return j.String()[start:]
}

// appendSockets hides what leads to programs outside of the sandbox.
func appendSockets(rules []sandbox.FileRule, place *Place) []sandbox.FileRule {
	for i := range socketRows {
		row := &socketRows[i]
		if p := place.socketPath(row.Path, row.Env, row.OS); p != "" {
			rules = append(rules, sandbox.FileRule{Path: p, Sort: sandbox.Secret, Reason: row.Reason})
		}
	}
	return rules
}

// socketPath is where a row of sockets.toml leads here; "" if nowhere.
func (w *Place) socketPath(name, env, os string) string {
	switch {
	case os != "" && os != w.os():
		return ""
	case env != "":
		if p := pathIn(w.getenv(env)); p != "" && w.canHide(p) {
			return p
		}
		return ""
	case name[0] == '~':
		return w.expand(name)
	case name[0] == '{':
		run := w.RuntimeDir
		if run == "" {
			run = "/run/user/" + strconv.Itoa(w.UID)
		}
		return run + strings.TrimPrefix(name, "{run}")
	}
	return strings.Replace(name, "{uid}", strconv.Itoa(w.UID), 1)
}

// signing is what git.sign opens, of what is there.
func (p *Profile) signing(place *Place) (sockets, files []string) {
	if p.GitSign != "agent" {
		return nil, nil
	}
	for i := range signingRows {
		row := &signingRows[i]
		path := place.socketPath(row.Path, row.Env, row.OS)
		info, err := os.Lstat(path)
		switch {
		case err != nil || row.Socket != (info.Mode().Type() == os.ModeSocket):
		case row.Socket:
			sockets = append(sockets, path)
		default:
			files = append(files, path)
		}
	}
	return sockets, files
}

// pathIn returns the first absolute path in an address such as
// "unix:path=/run/user/1000/bus,guid=1f".
func pathIn(address string) string {
	i := strings.IndexByte(address, '/')
	if i < 0 {
		return ""
	}
	p := address[i:]
	if i := strings.IndexAny(p, ",;:"); i >= 0 {
		p = p[:i]
	}
	return path.Clean(p)
}

// appendHidden hides what the profile itself names.
func (p *Profile) appendHidden(rules []sandbox.FileRule, place *Place) ([]sandbox.FileRule, error) {
	dirs := []string{place.Workspace}
	if cwd := place.cwd(); cwd != place.Workspace && sandbox.Covers(place.Workspace, cwd) {
		dirs = append(dirs, cwd)
	}
	var patterns []string
	hide := func(path string) {
		if !p.shown(path, place) {
			rules = append(rules, sandbox.FileRule{Path: path, Sort: sandbox.Secret, Reason: "hidden by the profile"})
		}
	}
	for _, name := range p.Hide {
		switch {
		case strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~"):
			hide(place.expand(name))
		case strings.ContainsAny(name, `*?[\`):
			patterns = append(patterns, name)
		default:
			for _, dir := range dirs {
				hide(path.Join(dir, name))
			}
		}
	}
	if len(patterns) == 0 {
		return rules, nil
	}
	for _, dir := range dirs {
		names, err := entries(dir)
		if err != nil {
			return rules, &sandbox.SpecError{
				Field: "hide", Value: strings.Join(patterns, " "), Err: err,
				Hint: "hide exact names, not patterns",
			}
		}
		for _, name := range names {
			if matches(patterns, name) && !slices.Contains(p.Hide, name) {
				hide(path.Join(dir, name))
			}
		}
	}
	return rules, nil
}

// shown says whether the profile excepts a path from what it hides.
func (p *Profile) shown(file string, place *Place) bool {
	return slices.ContainsFunc(p.HideExcept, func(name string) bool {
		if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") {
			return place.expand(name) == file
		}
		return matches([]string{name}, path.Base(file))
	})
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// maxEntries bounds the directory in which names are looked for: what lies in
// the workspace must not decide how long a start takes.
const maxEntries = 10_000

// entries lists the names in a directory; none if it is absent.
func entries(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries + 1)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case len(names) > maxEntries:
		return nil, fmt.Errorf("%s has more than %d entries to look through", dir, maxEntries)
	}
	slices.Sort(names)
	return names, nil
}

// reopen adds the person's own grants. A grant at or below a secret is the
// person's word against the rule that hides it; one above it is not. A grant
// never takes away what there is.
func (p *Profile) reopen(rules []sandbox.FileRule, place *Place) []sandbox.FileRule {
	person := false
	grant := func(name string, access sandbox.Access) {
		g := sandbox.FileRule{Path: place.expand(name), Access: access, Reason: "asked for"}
		if sandbox.AccessOf(rules, g.Path) >= access {
			return
		}
		if _, secret := ofSort(sandbox.Secret, rules, g.Path); secret && !person {
			return // grantable refuses it
		}
		kept := rules[:0]
		for _, r := range rules {
			if r.Sort == sandbox.Secret && sandbox.Covers(r.Path, g.Path) {
				g.Sort = sandbox.Secret
			}
			if r.Path != g.Path || r.Sort == sandbox.Hard {
				kept = append(kept, r)
			}
		}
		rules = append(kept, g)
	}
	for _, name := range p.ProjectRead {
		grant(name, sandbox.ReadOnly)
	}
	for _, name := range p.ProjectWrite {
		grant(name, sandbox.ReadWrite)
	}
	person = true
	sockets, keys := p.signing(place)
	for _, name := range slices.Concat(p.Sockets, sockets, keys) {
		grant(name, sandbox.ReadOnly)
	}
	for _, name := range p.Read {
		grant(name, sandbox.ReadOnly)
	}
	for _, name := range p.Write {
		grant(name, sandbox.ReadWrite)
	}
	return rules
}

// reachable refuses rules under which the command could not get at what it was
// promised.
func (p *Profile) reachable(rules []sandbox.FileRule, place *Place) error {
	promises := []struct {
		field, path string
		access      sandbox.Access
		hint        string
	}{
		{"workspace", place.Workspace, p.Workspace, "work elsewhere, or name another directory with --workspace DIR"},
		{"cache", place.CacheDir, sandbox.ReadOnly, "move XDG_CACHE_HOME out of the hidden directory"},
	}
	for _, dir := range place.GitDirs {
		promises = append(promises, struct {
			field, path string
			access      sandbox.Access
			hint        string
		}{"repository", dir, p.Workspace, "work in the repository itself, not in a linked worktree"})
	}
	for _, promise := range promises {
		if promise.path == "" {
			continue
		}
		if r, hidden := hiddenBy(rules, promise.path); hidden && promise.access > sandbox.None {
			return &sandbox.SpecError{
				Field: promise.field, Value: promise.path, Hint: promise.hint,
				Err: fmt.Errorf("it is in %s, which is hidden: %s", r.Path, r.Reason),
			}
		}
	}
	return p.grantable(rules, place)
}

// grantable refuses a grant of what is never opened.
func (p *Profile) grantable(rules []sandbox.FileRule, place *Place) error {
	for _, name := range slices.Concat(p.ProjectRead, p.ProjectWrite) {
		access := sandbox.ReadOnly
		if slices.Contains(p.ProjectWrite, name) {
			access = sandbox.ReadWrite
		}
		g := place.expand(name)
		if r, secret := ofSort(sandbox.Secret, rules, g); secret && sandbox.AccessOf(rules, g) < access {
			return &sandbox.SpecError{
				Field: "grant", Value: g,
				Err:  fmt.Errorf("%s is a secret, which a project's file does not open: %s", r.Path, r.Reason),
				Hint: "take it out of the project's file, or open it yourself, with --read, --write or your own configuration",
			}
		}
	}
	for _, name := range slices.Concat(p.Read, p.Write, p.Sockets, p.ProjectRead, p.ProjectWrite) {
		for _, r := range rules {
			g := place.expand(name)
			if r.Sort == sandbox.Hard && sandbox.Covers(r.Path, g) && (r.Access == sandbox.None || slices.Contains(p.Write, name) || slices.Contains(p.ProjectWrite, name)) {
				return &sandbox.SpecError{
					Field: "grant", Value: g,
					Err:  fmt.Errorf("%s is never opened: %s", r.Path, r.Reason),
					Hint: "leave the grant out",
				}
			}
		}
	}
	return nil
}

// ofSort returns a rule of a sort that covers path.
func ofSort(sort sandbox.Sort, rules []sandbox.FileRule, path string) (sandbox.FileRule, bool) {
	for _, r := range rules {
		if r.Sort == sort && sandbox.Covers(r.Path, path) {
			return r, true
		}
	}
	return sandbox.FileRule{}, false
}

// hiddenBy returns the rule that hides a path in spite of a grant of another
// sort.
func hiddenBy(rules []sandbox.FileRule, path string) (sandbox.FileRule, bool) {
	if sandbox.AccessOf(rules, path) != sandbox.None {
		return sandbox.FileRule{}, false
	}
	for _, r := range rules {
		if r.Access == sandbox.None && sandbox.Covers(r.Path, path) {
			return r, true
		}
	}
	return sandbox.FileRule{}, false
}

// gitPointer is protected where .git is not a directory, or nothing yet. It is
// no row of the data because only what is found decides.
var gitPointer = protectedRow{Guard: "block", Reason: "names the repository whose hooks and settings git uses"}

// protected names what runs outside of the sandbox later.
func (p *Profile) protected(place *Place) ([]sandbox.Name, error) {
	for _, name := range p.Unprotect {
		if err := protectedName(name); err != nil && !slices.Contains(p.Protect, name) {
			return nil, &sandbox.SpecError{Field: "unprotect", Value: name, Err: err, Hint: "give it as the report does, such as .vscode or .git/hooks"}
		}
	}
	own := protectedRow{Guard: "block", Reason: "protected by the profile"}
	tops, gitDirs := place.tops(), slices.Clone(place.GitDirs)
	names := make([]sandbox.Name, 0, len(tops)*len(protectedRows))
	var paths joiner
	paths.Grow(48 * cap(names))
	add := func(shown, path string, row *protectedRow) {
		if slices.Contains(p.Unprotect, shown) {
			return
		}
		n := sandbox.Name{Path: path, Guard: sandbox.Block, Reason: row.Reason}
		switch {
		case row.Guard == "notice":
			n.Guard = sandbox.Notice
		case p.GitConfig == "checked" && row.In == "git" && (row.Name == "config" || row.Name == "config.worktree"):
			n.Guard = sandbox.Checked
		}
		names = append(names, n)
	}
	for _, name := range p.Protect {
		add(name, path.Join(place.Workspace, name), &own)
	}
	for _, dir := range tops {
		for i := range protectedRows {
			if row := &protectedRows[i]; row.In == "" {
				add(row.Name, paths.join(dir, "/", row.Name), row)
			}
		}
		git := dir + "/.git"
		info, err := os.Lstat(git)
		if err != nil || !info.IsDir() {
			add(".git", git, &gitPointer)
		}
		if err != nil || !info.Mode().IsRegular() {
			gitDirs = append(gitDirs, git)
		}
	}
	for _, dir := range gitDirs {
		for _, inner := range within(dir) {
			if !slices.Contains(gitDirs, inner) {
				gitDirs = append(gitDirs, inner)
			}
		}
	}
	for _, dir := range gitDirs {
		for i := range protectedRows {
			if row := &protectedRows[i]; row.In == "git" {
				add(".git/"+row.Name, paths.join(dir, "/", row.Name), row)
			}
		}
	}
	return names, nil
}

// within are the git directories that lie in another: those of submodules and
// of linked worktrees, which git runs from as well (gitrepository-layout(5)).
// They are a handful; of more the first are taken.
func within(gitDir string) []string {
	const most = 64
	var out []string
	for _, kind := range []string{"/modules", "/worktrees"} {
		f, err := os.OpenFile(gitDir+kind, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0) // no FIFO holds us
		if err != nil {
			continue
		}
		names, _ := f.Readdirnames(most)
		f.Close()
		slices.Sort(names)
		for _, name := range names {
			out = append(out, gitDir+kind+"/"+name)
		}
	}
	return out
}

// tops are the directories whose protected names are looked after: the
// workspace, the current directory, and the tops of repositories in between.
func (w *Place) tops() []string {
	dirs := []string{w.Workspace}
	cwd := w.cwd()
	if !sandbox.Covers(w.Workspace, cwd) {
		return dirs
	}
	for dir := cwd; dir != w.Workspace; dir = path.Dir(dir) {
		if _, err := os.Lstat(dir + "/.git"); err == nil || dir == cwd {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ProtectedName returns the name by which Unprotect takes out what protects a
// file of the workspace, a path relative to its root; "" if nothing does. It
// goes by names alone: a nested directory counts as a repository.
func (p *Profile) ProtectedName(file string) string {
	covers := func(name, file string) bool { return file == name || strings.HasPrefix(file, name+"/") }
	for _, name := range p.Protect {
		if covers(name, file) {
			return name
		}
	}
	for rest, more := file, true; more; _, rest, more = strings.Cut(rest, "/") {
		for i := range protectedRows {
			name := protectedRows[i].Name
			if protectedRows[i].In == "git" {
				name = ".git/" + name
			}
			if covers(name, rest) {
				return name
			}
		}
	}
	return ""
}
