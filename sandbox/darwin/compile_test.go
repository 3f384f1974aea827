package darwin

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

var update = flag.Bool("update", false, "write the golden files")

// mac is a person's Mac: a home with a repository in it, compiled as if it stood
// in /Users/u. More holds changes to the profile.
func mac(t *testing.T, name string, more func(*profiles.Profile)) (sandbox.Spec, Host) {
	t.Helper()
	home, err := os.MkdirTemp("/var/tmp", "mac")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"work/.git/hooks", "work/src", "state/tmp/0123"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"work/.git/config", "work/.env", "work/package.json"} {
		if err := os.WriteFile(filepath.Join(home, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := profiles.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if more != nil {
		more(p)
	}
	spec, err := p.Spec(profiles.Place{
		OS: "darwin", Workspace: home + "/work", Home: home, UID: 501, Memory: 16 << 30,
		StateDir: home + "/.local/state/sandbox-exec", ConfigDir: home + "/.config/sandbox-exec",
		CacheDir: home + "/.cache/sandbox-exec/0123", TmpDir: home + "/.local/state/sandbox-exec/tmp/0123/tmp",
	})
	if err != nil {
		t.Fatal(err)
	}
	h := Host{
		Files: map[string]File{}, Self: "/opt/homebrew/bin/sandbox-exec", Tmp: "/Users/u/.local/state/sandbox-exec/tmp/0123/tmp",
		UserTmp: "/private/var/folders/ab/cd/T", Terminal: "/dev/ttys003", Tag: "run-0123",
	}
	for _, p := range Paths(spec) {
		_, err := os.Lstat(p)
		inHome := strings.HasPrefix(p, home)
		f := File{Path: p, Absent: err != nil && inHome}
		if inHome {
			f.Path = "/Users/u" + p[len(home):]
		}
		for _, link := range []string{"/tmp", "/var", "/etc"} {
			if !inHome && sandbox.Covers(link, p) {
				f.Path, f.Links = "/private"+p, []string{link}
			}
		}
		h.Files[p] = f
	}
	h.Files[home+"/.cache/sandbox-exec/0123"] = File{Path: "/Users/u/.cache/sandbox-exec/0123"}
	return spec, h
}

// expressible are the built-in profiles but those with a network that macOS cannot
// give, which Compile refuses.
func expressible(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range profiles.Names() {
		spec, h := mac(t, name, nil)
		switch _, err := Compile(spec, h); spec.Network {
		case sandbox.NetworkOff, sandbox.NetworkHost:
			names = append(names, name)
		default:
			var refused *sandbox.SpecError
			if !errors.As(err, &refused) || refused.Field != "network" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	return names
}

func compileOrFail(t *testing.T, spec sandbox.Spec, h Host) Profile {
	t.Helper()
	p, err := Compile(spec, h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lists are the long parts of every profile. A golden file has a few lines of
// each, so that it holds what a reviewer reads; the rest is that of the tables in
// profiles, line by line.
var lists = []struct {
	line *regexp.Regexp
	from string
}{
	{regexp.MustCompile(`^\(protected `), "profiles/protected.toml"},
	{regexp.MustCompile(`^\(hidden .*\(secret\)\n$`), "profiles/secrets.toml and sockets.toml"},
}

func TestGolden(t *testing.T) {
	for _, name := range expressible(t) {
		spec, h := mac(t, name, nil)
		golden(t, name+".sb", brief(compileOrFail(t, spec, h)))
	}
	spec, h := mac(t, "workspace", func(p *profiles.Profile) {
		p.Network = sandbox.NetworkHost
		p.Read = []string{"~/.npmrc", "~/.ssh/known_hosts"}
		p.Write = []string{"/private/tmp/ü", `/opt/a"b`}
		p.Sockets = []string{"/var/run/docker.sock"}
	})
	h.Streams = []string{"/private/tmp/out.log"}
	golden(t, "every-part.sb", brief(compileOrFail(t, spec, h)))
}

// brief is a profile with three lines of each list, and its parameters.
func brief(p Profile) string {
	var b strings.Builder
	seen := make([]int, len(lists))
	for line := range strings.Lines(p.Text) {
		i := slices.IndexFunc(lists, func(l struct {
			line *regexp.Regexp
			from string
		},
		) bool {
			return l.line.MatchString(line)
		})
		switch {
		case i < 0:
			b.WriteString(line)
			continue
		case seen[i] < 3:
			b.WriteString(line)
		case seen[i] == 3:
			fmt.Fprintf(&b, "; ... and so on, from %s\n", lists[i].from)
		}
		seen[i]++
	}
	for _, param := range p.Params {
		fmt.Fprintf(&b, "; -D %s=%s\n", param.Key, param.Value)
	}
	return b.String()
}

// Every rule of a built-in profile's Spec has its effect.
func TestEveryRule(t *testing.T) {
	for _, name := range expressible(t) {
		spec, h := mac(t, name, nil)
		for model, s := range models(t, compileOrFail(t, spec, h)) {
			n := 0
			for _, r := range spec.Files {
				if r.Access != sandbox.None || sandbox.Covers(h.Files[r.Path].Path, h.Tmp) {
					continue
				}
				for _, path := range []string{h.Files[r.Path].Path, h.Files[r.Path].Path + "/x"} {
					for _, op := range []string{"file-read-data", "file-read-metadata", "file-write-create"} {
						if ok, why := s.allows(request{op: op, path: path}); ok {
							t.Errorf("%s, %s: %s %s: %s", name, model, op, path, why)
						}
					}
				}
				n++
			}
			for _, p := range spec.Protect {
				path := h.Files[p.Path].Path
				if p.Guard == sandbox.Notice {
					continue
				}
				for _, path := range []string{path, path + "/x", "/Users/u/work" + strings.ToUpper(path[len("/Users/u/work"):])} {
					if !h.Files[p.Path].Absent && path != h.Files[p.Path].Path {
						continue // the kernel uses the name that is stored
					}
					for _, op := range []string{"file-write-data", "file-write-create", "file-write-unlink"} {
						if ok, why := s.allows(request{op: op, path: path}); ok {
							t.Errorf("%s, %s: %s %s: %s", name, model, op, path, why)
						}
					}
				}
				n++
			}
			if n < 300 {
				t.Errorf("%s: %d rules", name, n)
			}
		}
	}
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text == string(want) {
		return
	}
	t.Errorf("%s differs; go test ./sandbox/darwin -update writes it", file)
	have, wanted := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for _, line := range have {
		if !slices.Contains(wanted, line) {
			t.Logf("+ %.150s", line)
		}
	}
	for _, line := range wanted {
		if !slices.Contains(have, line) {
			t.Logf("- %.150s", line)
		}
	}
}

func TestRefused(t *testing.T) {
	base := []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}, {Path: "/w", Access: sandbox.ReadWrite}}
	with := func(r ...sandbox.FileRule) sandbox.Spec { return sandbox.Spec{Files: append(base, r...)} }
	host := Host{Tmp: "/t"}
	for _, test := range []struct {
		name string
		spec sandbox.Spec
		host Host
	}{
		{"nothing is readable", sandbox.Spec{}, host},
		{"a root that can be written to", sandbox.Spec{Files: []sandbox.FileRule{{Path: "/", Access: sandbox.ReadWrite}}}, host},
		{"no directory for temporary files", with(), Host{}},
		{"a writable path that is not there", with(sandbox.FileRule{Path: "/x", Access: sandbox.ReadWrite}), Host{Tmp: "/t", Files: map[string]File{"/x": {Path: "/x", Absent: true}}}},
		{"a newline", with(sandbox.FileRule{Path: "/x\n(allow default)"}), host},
		{"no UTF-8", with(sandbox.FileRule{Path: "/x\xff"}), host},
		{"two slashes", with(sandbox.FileRule{Path: "/x//y"}), host},
		{"dots", with(sandbox.FileRule{Path: "/x/../y"}), host},
		{"a slash at the end", with(sandbox.FileRule{Path: "/x/"}), host},
		{"a name as long as no path", with(sandbox.FileRule{Path: "/" + strings.Repeat("x", 1024)}), host},
		{"a tag that ends its string", with(), Host{Tmp: "/t", Tag: `a")`}},
		{"a loopback of its own", sandbox.Spec{Files: base, Network: sandbox.NetworkLocalhost}, host},
		{"hosts by name", sandbox.Spec{Files: base, Network: sandbox.NetworkAllow}, host},
		{"an unknown network", sandbox.Spec{Files: base, Network: 250}, host},
	} {
		p, err := Compile(test.spec, test.host)
		var spec *sandbox.SpecError
		if !errors.As(err, &spec) || p.Text != "" {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if _, err := Compile(with(), host); err != nil {
		t.Errorf("as it should be: %v", err)
	}
}
