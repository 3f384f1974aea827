package darwin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// models are the ways in which Seatbelt may decide that are not excluded: by the
// model of the verdicts, whether literal and subpath compare bytes or as the
// volume does, and by the plain rule that the last match wins. What is promised
// must hold by each.
func models(t *testing.T, p Profile) map[string]*sbpl {
	t.Helper()
	out := map[string]*sbpl{}
	for _, name := range []string{"narrow before wide", "folding", "below", "last match"} {
		s, err := readSBPL(p.Text, p.Params)
		if err != nil {
			t.Fatalf("%v in\n%s", err, p.Text)
		}
		s.folds, s.below, s.last = name == "folding", name == "below", name == "last match"
		out[name] = s
	}
	return out
}

// What a rule gives is what the system gives: for random rules and paths the
// verdicts on reading and writing are those of sandbox.AccessOf.
func TestMostSpecificPathWins(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	name := func() string { return string("abc"[rnd.IntN(3)]) }
	somewhere := func() string {
		p := ""
		for range 1 + rnd.IntN(4) {
			p += "/" + name()
		}
		return p
	}
	for i := range 150 {
		rules := []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}}
		for range rnd.IntN(8) {
			rules = append(rules, sandbox.FileRule{Path: somewhere(), Access: sandbox.Access(rnd.IntN(3)), Sort: sandbox.Sort(rnd.IntN(3))})
		}
		spec := sandbox.Spec{Files: rules}
		for range rnd.IntN(3) {
			n := sandbox.Name{Path: somewhere(), Guard: sandbox.Guard(rnd.IntN(2))}
			spec.Protect = append(spec.Protect, n)
			if n.Guard == sandbox.Block && sandbox.AccessOf(rules, n.Path) == sandbox.ReadWrite {
				rules = append(rules, sandbox.FileRule{Path: n.Path, Access: sandbox.ReadOnly})
			}
		}
		// The generator adds these; none covers a path of the test.
		p, err := Compile(spec, Host{Tmp: "/tmp-of-run", Self: "/self"})
		if err != nil {
			continue // the root is not read-only
		}
		for model, s := range models(t, p) {
			w := newWorld(s)
			for range 40 {
				file := somewhere()
				access := sandbox.AccessOf(rules, file)
				for call, want := range map[string]bool{
					"read": access > sandbox.None, "exec": access > sandbox.None, "file-read-xattr": access > sandbox.None,
					"write": access == sandbox.ReadWrite, "create": access == sandbox.ReadWrite, "chmod": access == sandbox.ReadWrite,
					"file-link": false,
				} {
					if got, why, _ := w.allows([]string{call, file}); got != want {
						t.Fatalf("%d, %s: %s %s: %v, want %v by %v: %s\n%v", i, model, call, file, got, want, access, why, spec.Files)
					}
				}
				// What is shown of what is hidden are the directories above of what is open.
				if got, _, _ := w.allows([]string{"stat", file}); got != (access > sandbox.None || opens(rules, file)) {
					t.Fatalf("%d, %s: stat %s: %v\n%v", i, model, file, got, rules)
				}
				// Nothing is moved together with what is closed in it, nor a writable root.
				if got, _, _ := w.allows([]string{"remove", file}); got != (access == sandbox.ReadWrite && !holdsClosed(rules, file) && !isRoot(rules, file)) {
					t.Fatalf("%d, %s: remove %s: %v\n%v", i, model, file, got, rules)
				}
			}
		}
	}
}

func opens(rules []sandbox.FileRule, dir string) bool {
	return slices.ContainsFunc(rules, func(r sandbox.FileRule) bool {
		return sandbox.Covers(dir, r.Path) && sandbox.AccessOf(rules, r.Path) > sandbox.None
	})
}

func holdsClosed(rules []sandbox.FileRule, dir string) bool {
	return slices.ContainsFunc(rules, func(r sandbox.FileRule) bool {
		// Without a break: what lies below a closed directory does not move.
		for p := r.Path; p != dir; p = path.Dir(p) {
			if !sandbox.Covers(dir, p) || p != r.Path && sandbox.AccessOf(rules, p) != sandbox.ReadWrite {
				return false
			}
		}
		return r.Path != dir && sandbox.AccessOf(rules, r.Path) != sandbox.ReadWrite
	})
}

func isRoot(rules []sandbox.FileRule, dir string) bool {
	return sandbox.AccessOf(rules, path.Dir(dir)) != sandbox.ReadWrite
}

// No path leaves its string: whatever it holds, the profile has the forms of one
// with a harmless path in its place, and says the same of it.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{
		"a", `a"b`, `a\`, `a\"))(allow default)`, "a\n(allow default)", "ü", "a;b", `a"#`, "a)", "(param \"P1\")", "#|", "|#", "a\x00", "\xff", "..", ".", "a/b", "a//b", "",
		`[`, `^$.*+?()[]{}|\`, "K", "ſ", "a\u2028", "a\r", strings.Repeat("k", 1100),
	} {
		f.Add(seed, uint8(0), uint8(0), "why")
		f.Add(seed, uint8(2), uint8(1), "why; (allow default)\n(allow default)")
	}
	f.Fuzz(func(t *testing.T, name string, access, sort uint8, reason string) {
		spec := func(name string) (sandbox.Spec, Host) {
			r := sandbox.FileRule{Path: "/w/" + name, Access: sandbox.Access(access % 3), Sort: sandbox.Sort(sort % 3), Reason: reason}
			hook := "/w/hooks/" + name
			return sandbox.Spec{
				Files:   []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}, {Path: "/w", Access: sandbox.ReadWrite}, r, {Path: r.Path + "/b", Reason: reason}},
				Protect: []sandbox.Name{{Path: hook, Reason: reason}}, Sockets: []string{r.Path + "/s"},
			}, Host{Tmp: "/t/" + name, Self: "/self/" + name, Files: map[string]File{hook: {Path: hook, Absent: true}}}
		}
		p, err := Compile(spec(name))
		if err != nil {
			var wrong *sandbox.SpecError
			if !errors.As(err, &wrong) {
				t.Fatal(err)
			}
			return
		}
		harmless, err := Compile(spec("zzz" + strings.Repeat("/z", strings.Count(name, "/"))))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := shape(t, p), shape(t, harmless); a != b && !strings.Contains(name, "hooks") {
			t.Fatalf("%q changes the rules:\n%s\n---\n%s", name, a, b)
		}
		for _, wrong := range lint(p) {
			t.Error(wrong)
		}
		s, err := readSBPL(p.Text, p.Params)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]sandbox.Access{
			"/w/" + name: sandbox.Access(access % 3), "/w/" + name + "/b": sandbox.None, "/w/other": sandbox.ReadWrite,
			"/w/hooks/" + name: sandbox.ReadOnly, "/outside": sandbox.ReadOnly,
		} {
			if sandbox.Sort(sort%3) > sandbox.Normal && path == "/w/"+name+"/b" || path == "/w/hooks/"+name && strings.HasPrefix(path, "/w/"+name) {
				continue // overruled by a rule of a higher sort
			}
			for op, ok := range map[string]bool{"file-read-data": want > sandbox.None, "file-write-data": want == sandbox.ReadWrite} {
				if got, why := s.allows(request{op: op, path: path}); got != ok {
					t.Errorf("%s %q: %v: %s", op, path, got, why)
				}
			}
		}
	})
}

// shape is the text with its strings and parameters blotted out.
func shape(t *testing.T, p Profile) string {
	t.Helper()
	forms, err := readForms(p.Text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, p.Text)
	}
	var blot func(f form) string
	blot = func(f form) string {
		switch {
		case f.quoted || f.head() == "param":
			return "S"
		case !f.isList:
			return f.atom
		}
		var parts []string
		for _, x := range f.list {
			parts = append(parts, blot(x))
		}
		return "(" + strings.Join(parts, " ") + ")"
	}
	var b strings.Builder
	for _, f := range forms {
		b.WriteString(blot(f) + "\n")
	}
	return b.String()
}

// bare are the operations that may be allowed without a filter: they have none,
// or nothing outside of the program is reached by them.
var bare = []string{"process-fork", "dynamic-code-generation", "iokit-get-properties", "pseudo-tty", "ipc-posix-sem"}

var paramKey = regexp.MustCompile(`^P[0-9]+$`)

// lint finds what must not be in a generated profile.
func lint(p Profile) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, word := range []string{"import", "no-sandbox", "(allow default", "(allow file* ", "send-signal"} {
		for line := range strings.Lines(p.Text) {
			if code, _, _ := strings.Cut(line, ";"); strings.HasPrefix(code, "(") && strings.Contains(regexp.MustCompile(`#?"[^"]*"`).ReplaceAllString(code, `""`), word) {
				add("%s in %s", word, line)
			}
		}
	}
	for _, param := range p.Params {
		if !paramKey.MatchString(param.Key) || strings.ContainsAny(param.Value, "\n\x00") {
			add("parameter %q", param)
		}
	}
	s, err := readSBPL(p.Text, p.Params) // ASCII, known names, hosts, length of rules
	if err != nil {
		return append(wrong, err.Error())
	}
	for _, op := range append(soft, "file-link") {
		if !slices.ContainsFunc(s.rules, func(r sbplRule) bool { return r.op == op }) {
			add("%s is not named", op)
		}
	}
	for _, path := range s.paths {
		if err := checkPath(path); err != nil {
			add("path %q: %v", path, err)
		}
	}
	hides := map[string]bool{}
	for _, r := range s.rules {
		hides[r.op] = hides[r.op] || !r.allow && len(r.filters) > 0
	}
	for _, r := range s.rules {
		if r.allow && len(r.filters) == 0 && !slices.Contains(bare, r.op) {
			add("no filter: %s", r.text)
		}
		// An allow of a part of a group outlives every deny of the group.
		narrow := strings.HasPrefix(r.op, "file-read-") || strings.HasPrefix(r.op, "file-write-")
		if r.allow && narrow && !strings.Contains(r.text, "(literal") {
			add("a narrow allow for more than one path: %s", r.text)
		}
		if r.allow && strings.HasPrefix(r.op, "file-") && !narrow && r.op != "file-ioctl" && !hides[r.op] {
			add("what is hidden leaves %s open: %s", r.op, r.text)
		}
	}
	return wrong
}

func TestLint(t *testing.T) {
	var p Profile
	for _, name := range expressible(t) {
		for _, n := range []sandbox.Network{sandbox.NetworkOff, sandbox.NetworkHost} {
			spec, h := mac(t, name, func(p *profiles.Profile) { p.Network = n })
			p = compileOrFail(t, spec, h)
			for _, wrong := range lint(p) {
				t.Errorf("%s, network %v: %s", name, n, wrong)
			}
		}
	}
	for _, bad := range []string{
		"(allow network-outbound)", "(allow sysctl-read)", `(allow file-read-data (subpath "/x"))`, `(allow file-read* (subpath "/x/"))`, `(allow file-read* (literal "/a/../b"))`,
		`(import "system.sb")`, `(allow process-exec (literal "/bin/ps") (with no-sandbox))`, `(allow network-outbound (remote ip "127.0.0.1:80"))`, "(allow file-clone)",
		`(allow file-ioctl (subpath (param "X")))`, "(allow default)", "(allow mach-lookup)", `(allow file-mknod (subpath "/x"))`, "; \u00e9",
		`(deny file-read* (literal "` + strings.Repeat("x", maxRule) + `"))`,
	} {
		if len(lint(Profile{Text: p.Text + bad + "\n"})) == 0 {
			t.Errorf("no finding: %.80s", bad)
		}
	}
}
