package darwin

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A reader and an evaluator of Seatbelt's profile language, as far as profiles
// here and those of public reports use it. What it does not know it refuses.

// groups are the operations by the group that they fall back to. Names that
// macOS 12 does not have make a profile unloadable there; they are not here.
var groups = map[string]string{
	"default": "file* process* process-info* mach* network* ipc* sysctl* iokit* nvram* system* signal pseudo-tty " +
		"dynamic-code-generation user-preference* appleevent-send lsopen job-creation authorization-right-obtain " +
		"distributed-notification-post generic-issue-extension hid-control device* " +
		"user-preference-read user-preference-write",
	"file*": "file-read* file-write* file-test-existence file-map-executable file-ioctl file-link file-mknod file-mount " +
		"file-unmount file-chroot file-revoke file-search file-issue-extension",
	"file-read*": "file-read-data file-read-metadata file-read-xattr",
	"file-write*": "file-write-acl file-write-create file-write-data file-write-flags file-write-mode file-write-owner " +
		"file-write-setugid file-write-times file-write-unlink file-write-xattr",
	"process*":       "process-exec* process-fork",
	"process-exec*":  "process-exec-interpreter",
	"process-info*":  "process-info-pidinfo process-info-listpids process-info-rusage process-info-setcontrol",
	"mach*":          "mach-lookup mach-register mach-bootstrap mach-task-name mach-priv*",
	"network*":       "network-outbound network-inbound network-bind",
	"ipc*":           "ipc-posix* ipc-sysv*",
	"ipc-posix*":     "ipc-posix-sem ipc-posix-shm*",
	"ipc-posix-shm*": "ipc-posix-shm-read* ipc-posix-shm-write*",
	"ipc-sysv*":      "ipc-sysv-sem ipc-sysv-shm ipc-sysv-msg",
	"sysctl*":        "sysctl-read sysctl-write",
	"iokit*":         "iokit-open iokit-get-properties iokit-set-properties",
	"nvram*":         "nvram-get nvram-set nvram-delete",
	"system*":        "system-socket system-fsctl",
	"device*":        "device-camera device-microphone",
}

// soft are the operations that (deny default) leaves open.
var soft = []string{"process-info*", "nvram*", "iokit-get-properties", "file-map-executable", "dynamic-code-generation"}

// aliases are older names of operations.
var aliases = map[string]string{"process-exec": "process-exec*"}

var parents = func() map[string]string {
	out := map[string]string{"default": ""}
	for group, ops := range groups {
		for op := range strings.FieldsSeq(ops) {
			out[op] = group
		}
	}
	return out
}()

// sbpl is a profile that was read.
type sbpl struct {
	rules []sbplRule
	byOp  map[string][]sbplRule
	paths []string // of literal and subpath
	folds bool     // literal and subpath compare as a volume that takes A and a for one
	below bool     // subpath is about what lies below a path, not the path itself
	last  bool     // the last rule that matches wins, whatever it names
}

type sbplRule struct {
	allow   bool
	op      string
	filters []filter // any of them; none = whatever it is
	text    string
}

type filter func(p *sbpl, r request) bool

// request is one operation that the kernel asks the sandbox about.
type request struct {
	op        string
	path      string // canonical
	kind      string // vnode-type
	target    string // self, child, other
	name      string // of a service, a sysctl, shared memory, a preference domain, a socket's domain
	transport string // tcp, udp or unix
	host      string
	port      string
	extension string // that the process holds for path
}

var errSBPL = errors.New("sbpl")

func sbplErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errSBPL, fmt.Sprintf(format, args...))
}

// maxRule is what a rule may be long; above 64 KiB the compiler of macOS fails.
const maxRule = 16 << 10

// readSBPL reads a profile.
func readSBPL(text string, params []Param) (*sbpl, error) {
	for i := range len(text) {
		if c := text[i]; c > '~' || c < ' ' && c != '\n' && c != '\t' {
			return nil, sbplErrorf("byte %#x", c)
		}
	}
	forms, err := readForms(text)
	if err != nil {
		return nil, err
	}
	if len(forms) == 0 || forms[0].String() != "(version 1)" {
		return nil, sbplErrorf("want (version 1) first")
	}
	e := &evaluation{out: &sbpl{byOp: map[string][]sbplRule{}}, functions: map[string]form{}, params: map[string]string{}}
	for _, p := range params {
		e.params[p.Key] = p.Value
	}
	for _, f := range forms[1:] {
		if err := e.eval(f, nil); err != nil {
			return nil, fmt.Errorf("%w in %s", err, f)
		}
	}
	return e.out, nil
}

// form is an atom, a string or a list.
type form struct {
	atom   string
	text   string
	quoted bool
	list   []form
	isList bool
}

func (f form) String() string {
	switch {
	case f.quoted:
		return strconv.Quote(f.text)
	case !f.isList:
		return f.atom
	}
	parts := make([]string, len(f.list))
	for i, x := range f.list {
		parts[i] = x.String()
	}
	return "(" + strings.Join(parts, " ") + ")"
}

func (f form) head() string {
	if f.isList && len(f.list) > 0 {
		return f.list[0].atom
	}
	return ""
}

func readForms(text string) ([]form, error) {
	stack := [][]form{nil}
	push := func(f form) { stack[len(stack)-1] = append(stack[len(stack)-1], f) }
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\n' || c == '\t':
			i++
		case c == ';':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '(':
			stack = append(stack, nil)
			i++
		case c == ')':
			if len(stack) == 1 {
				return nil, sbplErrorf("a ) too many")
			}
			list := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			push(form{list: list, isList: true})
			i++
		case c == '#' && strings.HasPrefix(text[i:], `#"`):
			end := strings.IndexByte(text[i+2:], '"')
			if end < 0 {
				return nil, sbplErrorf("a string without end")
			}
			push(form{text: text[i+2 : i+2+end], quoted: true})
			i += 2 + end + 1
		case c == '"':
			var b strings.Builder
			for i++; ; i++ {
				if i >= len(text) {
					return nil, sbplErrorf("a string without end")
				}
				if text[i] == '"' {
					break
				}
				if text[i] == '\\' && i+1 < len(text) {
					i++
				}
				b.WriteByte(text[i])
			}
			push(form{text: b.String(), quoted: true})
			i++
		default:
			start := i
			for i < len(text) && !strings.ContainsRune(" \n\t();\"", rune(text[i])) {
				i++
			}
			push(form{atom: text[start:i]})
		}
	}
	if len(stack) != 1 {
		return nil, sbplErrorf("a ) too few")
	}
	return stack[0], nil
}

type evaluation struct {
	out       *sbpl
	functions map[string]form
	params    map[string]string
}

func (e *evaluation) eval(f form, env map[string]string) error {
	switch head := f.head(); head {
	case "allow", "deny":
		return e.rule(f, env)
	case "define":
		if len(f.list) < 3 || f.list[1].head() == "" {
			return sbplErrorf("define")
		}
		name := f.list[1].head()
		if _, taken := e.functions[name]; taken || slices.Contains([]string{"allow", "deny", "define", "version", "literal", "subpath", "regex", "path", "prefix"}, name) {
			return sbplErrorf("%s is defined twice", name)
		}
		e.functions[name] = f
		return nil
	default:
		fn, ok := e.functions[head]
		if !ok {
			return sbplErrorf("unknown form %q", head)
		}
		names := fn.list[1].list[1:]
		if len(names) != len(f.list)-1 {
			return sbplErrorf("%s: %d arguments", head, len(f.list)-1)
		}
		inner := map[string]string{}
		for i, n := range names {
			v, err := e.str(f.list[1+i], env)
			if err != nil {
				return err
			}
			inner[n.atom] = v
		}
		for _, body := range fn.list[2:] {
			if err := e.eval(body, inner); err != nil {
				return err
			}
		}
		return nil
	}
}

// str is the value of a string, a parameter or an argument.
func (e *evaluation) str(f form, env map[string]string) (string, error) {
	switch {
	case f.quoted:
		return f.text, nil
	case f.head() == "param" && len(f.list) == 2:
		if v, ok := e.params[f.list[1].text]; ok {
			return v, nil
		}
		return "", sbplErrorf("invalid data type of path filter; expected pattern, got boolean: %s", f)
	case !f.isList:
		if v, ok := env[f.atom]; ok {
			return v, nil
		}
	}
	return "", sbplErrorf("no string: %s", f)
}

func (e *evaluation) rule(f form, env map[string]string) error {
	if n := len(f.String()); n > maxRule {
		return sbplErrorf("rule of %d bytes", n)
	}
	var ops []string
	var filters []filter
	for _, x := range f.list[1:] {
		if !x.isList {
			op := x.atom
			if long, ok := aliases[op]; ok {
				op = long
			}
			if _, known := parents[op]; !known {
				return sbplErrorf("unknown operation %q", x.atom)
			}
			ops = append(ops, op)
			continue
		}
		if x.head() == "with" {
			if len(x.list) != 3 || x.list[1].atom != "message" || !x.list[2].quoted {
				return sbplErrorf("modifier %s", x)
			}
			continue
		}
		flt, err := e.filter(x, env)
		if err != nil {
			return err
		}
		filters = append(filters, flt)
	}
	if len(ops) == 0 {
		return sbplErrorf("a rule for nothing")
	}
	for _, op := range ops {
		rule := sbplRule{f.head() == "allow", op, filters, f.String()}
		e.out.rules = append(e.out.rules, rule)
		e.out.byOp[op] = append(e.out.byOp[op], rule)
	}
	return nil
}

var hostPort = regexp.MustCompile(`^(\*|localhost):(\*|[1-9][0-9]{0,4})$`)

func (e *evaluation) filter(f form, env map[string]string) (filter, error) {
	args := f.list[1:]
	one := func() (string, error) {
		if len(args) != 1 {
			return "", sbplErrorf("filter %s", f)
		}
		return e.str(args[0], env)
	}
	switch head := f.head(); head {
	case "literal", "path":
		want, err := one()
		e.out.paths = append(e.out.paths, want)
		return func(p *sbpl, r request) bool { return p.same(r.path, want) }, err
	case "subpath":
		want, err := one()
		e.out.paths = append(e.out.paths, want)
		return func(p *sbpl, r request) bool {
			n := len(want)
			if want == "/" {
				n = 0
			}
			if p.below && len(r.path) == n {
				return false
			}
			return len(r.path) >= n && p.same(r.path[:n], want[:n]) && (len(r.path) == n || r.path[n] == '/')
		}, err
	case "prefix":
		want, err := one()
		return func(p *sbpl, r request) bool { return strings.HasPrefix(r.path, want) }, err
	case "regex":
		want, err := one()
		if err != nil {
			return nil, err
		}
		re, err := regexp.Compile(want)
		if err != nil {
			return nil, sbplErrorf("%v", err)
		}
		return func(p *sbpl, r request) bool { return r.path != "" && re.MatchString(r.path) }, nil
	case "vnode-type":
		return func(p *sbpl, r request) bool { return r.kind == args[0].atom }, nil
	case "extension":
		want, err := one()
		return func(p *sbpl, r request) bool { return r.extension == want }, err
	case "target":
		if len(args) != 1 || !slices.Contains([]string{"self", "others", "same-sandbox", "children"}, args[0].atom) {
			return nil, sbplErrorf("filter %s", f)
		}
		return func(p *sbpl, r request) bool {
			switch args[0].atom {
			case "self":
				return r.target == "self"
			case "same-sandbox":
				return r.target == "self" || r.target == "child"
			case "children":
				return r.target == "child"
			}
			return r.target == "other"
		}, nil
	case "global-name", "sysctl-name", "ipc-posix-name", "preference-domain":
		want, err := one()
		return func(p *sbpl, r request) bool { return r.name == want }, err
	case "global-name-prefix", "sysctl-name-prefix", "ipc-posix-name-prefix":
		want, err := one()
		return func(p *sbpl, r request) bool { return r.name != "" && strings.HasPrefix(r.name, want) }, err
	case "socket-domain":
		if len(args) != 1 || !strings.HasPrefix(args[0].atom, "AF_") {
			return nil, sbplErrorf("filter %s", f)
		}
		return func(p *sbpl, r request) bool { return r.name == args[0].atom }, nil
	case "socket-protocol":
		return func(p *sbpl, r request) bool { return r.port == args[0].atom }, nil
	case "remote", "local":
		return e.address(f, env)
	case "require-all", "require-any", "require-not":
		var inner []filter
		for _, x := range args {
			flt, err := e.filter(x, env)
			if err != nil {
				return nil, err
			}
			inner = append(inner, flt)
		}
		any := func(p *sbpl, r request) bool {
			return slices.ContainsFunc(inner, func(f filter) bool { return f(p, r) })
		}
		switch head {
		case "require-any":
			return any, nil
		case "require-not":
			return func(p *sbpl, r request) bool { return !any(p, r) }, nil
		}
		return func(p *sbpl, r request) bool {
			return !slices.ContainsFunc(inner, func(f filter) bool { return !f(p, r) })
		}, nil
	}
	return nil, sbplErrorf("unknown filter %s", f)
}

// address is a filter for an end of a connection.
func (e *evaluation) address(f form, env map[string]string) (filter, error) {
	if len(f.list) != 3 {
		return nil, sbplErrorf("filter %s", f)
	}
	end, kind := f.head(), f.list[1].atom
	if kind == "unix-socket" {
		inner, err := e.filter(f.list[2], env)
		return func(p *sbpl, r request) bool { return r.transport == "unix" && inner(p, r) }, err
	}
	want, err := e.str(f.list[2], env)
	if err != nil {
		return nil, err
	}
	m := hostPort.FindStringSubmatch(want)
	if m == nil || !slices.Contains([]string{"ip", "tcp", "udp"}, kind) {
		return nil, sbplErrorf("host must be * or localhost in network address: %s", f)
	}
	return func(p *sbpl, r request) bool {
		if r.transport != kind && (kind != "ip" || r.transport != "tcp" && r.transport != "udp") {
			return false
		}
		if end == "local" && r.op == "network-outbound" {
			return m[1] == "*" && m[2] == "*" // every connection has some local end
		}
		return (m[1] == "*" || slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, r.host)) && (m[2] == "*" || m[2] == r.port)
	}, nil
}

func (p *sbpl) same(path, want string) bool {
	return path == want || p.folds && strings.EqualFold(path, want)
}

// allows says what the profile says to one operation, and by which rule. For the
// operation, then for each group that it falls back to: of the rules that name
// exactly that, the last that has a filter and matches decides, else the last
// without a filter.
func (p *sbpl) allows(r request) (bool, string) {
	if p.last {
		return p.lastMatch(r)
	}
	for name := r.op; name != ""; name = parents[name] {
		if name == "default" && softly(r.op) {
			return true, "open under (deny default)"
		}
		var filtered, plain *sbplRule
		for i := range p.byOp[name] {
			rule := &p.byOp[name][i]
			switch {
			case len(rule.filters) == 0:
				plain = rule
			case slices.ContainsFunc(rule.filters, func(f filter) bool { return f(p, r) }):
				filtered = rule
			}
		}
		if filtered != nil {
			return filtered.allow, filtered.text
		}
		if plain != nil {
			return plain.allow, plain.text
		}
	}
	return false, "no rule"
}

// lastMatch is what a reader who knows only "the last match wins" expects.
func (p *sbpl) lastMatch(r request) (bool, string) {
	var names []string
	for name := r.op; name != ""; name = parents[name] {
		names = append(names, name)
	}
	for _, rule := range slices.Backward(p.rules) {
		if slices.Contains(names, rule.op) && (len(rule.filters) == 0 || slices.ContainsFunc(rule.filters, func(f filter) bool { return f(p, r) })) {
			return rule.allow, rule.text
		}
	}
	return false, "no rule"
}

func softly(op string) bool {
	for ; op != ""; op = parents[op] {
		if slices.Contains(soft, op) {
			return true
		}
	}
	return false
}
