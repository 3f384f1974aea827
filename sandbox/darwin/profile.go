package darwin

import (
	"fmt"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Profile is a policy for /usr/bin/sandbox-exec: Text goes into the file of -f,
// each Param onto its command line as -D KEY=VALUE.
type Profile struct {
	Text   string
	Params []Param
}

// Param is a path that does not stand in the text, because it is not plain
// ASCII or would need escaping.
type Param struct{ Key, Value string }

// Host is what Compile has to know of the machine and of the one run. All of it
// is looked up beforehand.
type Host struct {
	// Files says what each path of Paths is, as Look does. A path that is not in
	// it is taken as it is written, and as something that is there.
	Files map[string]File
	// Self is our own binary, which runs inside before the program; resolved.
	// "" = there is none, as where a profile is only printed.
	Self string
	// Tmp is the directory that TMPDIR names, made for this run or kept for the
	// workspace; resolved. Required.
	Tmp string
	// UserTmp is the user's temporary directory, confstr(3)
	// _CS_DARWIN_USER_TEMP_DIR; resolved. "" = unknown.
	UserTmp string
	// Terminal is the device of the controlling terminal, such as
	// /dev/ttys003; "" = none.
	Terminal string
	// Streams are the files, other than Terminal, that the program's descriptors
	// are open on; resolved. fstat(2) on them is allowed, nothing more by name.
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
	// Absent says that nothing is there.
	Absent bool
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

// Compile turns what a program may do into a profile. It is a pure function. Its
// errors are *sandbox.SpecError: a Spec that a profile cannot express, under
// which nothing is run.
func Compile(spec sandbox.Spec, h Host) (Profile, error) {
	if err := checkTag(h.Tag); err != nil {
		return Profile{}, err
	}
	if err := checkNetwork(spec.Network); err != nil {
		return Profile{}, err
	}
	t, err := treeOf(spec, h)
	if err != nil {
		return Profile{}, err
	}
	w := writer{tag: h.Tag}
	w.head()
	w.services(always)
	w.sysctls()
	w.files(t)
	w.devices(h)
	w.network(spec.Network, t)
	if w.err != nil {
		return Profile{}, w.err
	}
	return Profile{Text: w.text.String(), Params: w.params}, nil
}

// checkNetwork refuses what Seatbelt has no means for: it tells localhost from
// the rest, not one host from another, and the loopback is the whole machine's.
func checkNetwork(n sandbox.Network) error {
	refused := &sandbox.SpecError{Field: "network", Value: fmt.Sprint(uint8(n)), Err: errNetwork, Hint: "use --net off, or --net host"}
	switch n {
	case sandbox.NetworkOff, sandbox.NetworkHost:
		return nil
	case sandbox.NetworkLocalhost:
		refused.Value, refused.Err = n.String(), errLoopback
	case sandbox.NetworkAllow:
		refused.Value, refused.Err = n.String(), errHosts
	}
	return refused
}

// head is what every profile begins with. Which of several rules Seatbelt goes
// by is not simply the last one: rules for an operation come before rules for
// the group that it belongs to (file-read-data, file-read*, default), and rules
// with a filter before rules without, wherever they stand; among equals the last
// that matches counts. So each rule about files below states both halves, reading
// and writing, by the same groups of operations, and all have a filter: that
// leaves the order of the text alone to decide, which is by depth. Then the most
// specific path wins.
func (w *writer) head() {
	w.line("(version 1)")
	w.line("(deny default%s)", w.message())
	w.comment("Open even under (deny default) unless they are named. Filtered rules below open parts.")
	w.line("(deny nvram* file-map-executable process-info*%s)", w.message())
	w.line("(allow iokit-get-properties)                 ; the hardware's registry, as /sys is readable on Linux")
	w.line("(allow dynamic-code-generation)              ; V8, JVM, LuaJIT")
	w.comment("Hard links: which of the two names a filter is about is not known, so there are none.")
	w.line("(deny file-link%s)", w.message())
	w.comment("Processes: start programs, signal and look at one's own only.")
	w.line("(allow process-fork)")
	w.line("(allow process-info* (target self))")
	w.line("(allow mach-task-name (target self))")
	w.line("(allow signal (target same-sandbox))")
	w.comment("What a path may be used for. A directory's rule holds for itself and for all below it.")
	w.define("writable", "allow "+readOps+" "+writeOps)
	w.define("read-only", "allow "+readOps, "deny "+writeOps)
	w.define("hidden", "deny "+readOps+" "+writeOps)
	w.line("(define (any-case names)                     ; the name in letters of either case")
	w.line("  (deny %s (regex names)%s))", writeOps, w.message())
	w.line("(define (protected it names)")
	w.line("  (read-only it)")
	w.line("  (any-case names))")
	w.line("(define (pinned it)                          ; cannot be renamed or removed, to put another in its place")
	w.line("  (deny file-write-unlink (literal it)%s))", w.message())
	w.line("(define (on-the-way it)                      ; stat(2) and readlink(2), nothing of what is in it")
	w.line("  (allow file-read-metadata file-test-existence (literal it)))")
}

// The operations of each half. An operation that is in neither is allowed to
// nobody, or by name.
const (
	readOps  = "file-read* file-test-existence file-map-executable process-exec*"
	writeOps = "file-write*"
)

func (w *writer) define(name string, rules ...string) {
	w.line("(define (%s it)", name)
	for i, rule := range rules {
		message, end := "", ""
		if strings.HasPrefix(rule, "deny") {
			message = w.message()
		}
		if i == len(rules)-1 {
			end = ")"
		}
		w.line("  (%s (literal it) (subpath it)%s)%s", rule, message, end)
	}
}

func (w *writer) files(t tree) {
	w.comment("Files, shallow before deep: the most specific path wins.")
	for _, r := range t.rules {
		w.rule(t, r)
	}
	if len(t.protected) > 0 {
		w.comment("Files that run outside later, there or not.")
	}
	for _, r := range t.protected {
		w.rule(t, r)
	}
	w.comment("Hidden, there or not.")
	for _, r := range t.hidden {
		w.rule(t, r)
	}
	if len(t.onTheWay) > 0 {
		w.comment("Directories and links above of what is open, in what is hidden.")
	}
	for _, p := range t.onTheWay {
		w.line("(on-the-way %s)", w.path(p))
	}
	if len(t.pinned) > 0 {
		w.comment("Directories that can be written to, down to what is hidden or protected in them.")
	}
	for _, p := range t.pinned {
		w.line("(pinned %s)", w.path(p))
	}
	w.comment("No program with set-user-ID or set-group-ID is left behind.")
	w.line("(deny file-write-setugid%s)", w.message())
}

func (w *writer) rule(t tree, r sandbox.FileRule) {
	names := t.folds[r.Path]
	if names != "" && r.Access == sandbox.ReadOnly {
		w.line("(protected %s %s)%s", w.path(r.Path), w.regex(names, r.Path), reason(r))
		return
	}
	name := [...]string{sandbox.None: "hidden", sandbox.ReadOnly: "read-only", sandbox.ReadWrite: "writable"}[r.Access]
	w.line("(%s %s)%s", name, w.path(r.Path), reason(r))
	if names != "" && r.Access == sandbox.None {
		w.line("(any-case %s)", w.regex(names, r.Path))
	}
}

// reason is why a rule is there, for a comment.
func reason(r sandbox.FileRule) string {
	why := ascii(r.Reason)
	if r.Sort != sandbox.Normal {
		why = strings.TrimSpace(why + " (" + r.Sort.String() + ")")
	}
	return note(why)
}

func (w *writer) devices(h Host) {
	w.services(devices)
	if h.Terminal != "" {
		w.line("(allow file-read* file-test-existence file-write-data file-ioctl (literal %s)) ; the caller's terminal", w.path(h.Terminal))
	}
	for _, p := range h.Streams {
		w.line("(allow file-read-metadata (literal %s)) ; fstat(2) of a descriptor that is handed on", w.path(p))
	}
}

func (w *writer) network(n sandbox.Network, t tree) {
	w.comment("Network: " + n.String())
	w.line("(allow system-socket (socket-domain AF_UNIX))")
	w.line("(allow network-bind network-inbound (local unix-socket (subpath %s))) ; sockets in TMPDIR", w.path(t.tmp))
	w.line("(allow network-outbound (remote unix-socket (subpath %s)))", w.path(t.tmp))
	for _, s := range t.sockets {
		w.line("(allow network-bind network-inbound (local unix-socket (literal %s))) ; asked for", w.path(s))
		w.line("(allow network-outbound (remote unix-socket (literal %s)))", w.path(s))
	}
	if n == sandbox.NetworkHost {
		w.services(online)
	}
}
