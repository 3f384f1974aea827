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

func compileOrFail(t *testing.T, spec sandbox.Spec, h Host) Profile {
	t.Helper()
	p, err := Compile(spec, h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lists are the long parts of every profile. They stand in files of their own, so
// that a golden file holds what a reviewer reads.
var lists = []struct {
	file string
	line *regexp.Regexp
}{
	{"protected.sb", regexp.MustCompile(`^\(protected `)},
	{"hidden.sb", regexp.MustCompile(`^\(hidden .*\(secret\)\n$`)},
}

func TestGolden(t *testing.T) {
	spec, h := mac(t, "workspace", nil)
	text := compileOrFail(t, spec, h).Text
	for _, list := range lists {
		var lines string
		for line := range strings.Lines(text) {
			if list.line.MatchString(line) {
				lines += line
			}
		}
		golden(t, list.file, lines)
	}
	for _, name := range profiles.Names() {
		spec, h := mac(t, name, nil)
		golden(t, name+".sb", brief(t, compileOrFail(t, spec, h)))
	}
	spec, h = mac(t, "workspace", func(p *profiles.Profile) {
		p.Network = sandbox.NetworkHost
		p.Read = []string{"~/.npmrc", "~/.ssh/known_hosts"}
		p.Write = []string{"/private/tmp/ü", `/opt/a"b`}
		p.Sockets = []string{"/var/run/docker.sock"}
	})
	h.Streams = []string{"/private/tmp/out.log"}
	golden(t, "every-part.sb", brief(t, compileOrFail(t, spec, h)))
}

// brief is a profile without the lines of the lists, and its parameters.
func brief(t *testing.T, p Profile) string {
	t.Helper()
	text := p.Text
	for _, list := range lists {
		data, err := os.ReadFile(filepath.Join("testdata", list.file))
		if err != nil {
			t.Fatal(err)
		}
		of := slices.Collect(strings.Lines(string(data)))
		var rest, first string
		n := 0
		for line := range strings.Lines(text) {
			if !slices.Contains(of, line) {
				rest += line
				continue
			}
			if n++; n == 1 {
				first = line
				rest += line
			}
		}
		text = strings.Replace(rest, first, fmt.Sprintf("; ... %d of the %d lines of %s ...\n", n, len(of), list.file), 1)
	}
	for _, param := range p.Params {
		text += fmt.Sprintf("; -D %s=%s\n", param.Key, param.Value)
	}
	return text
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
