package profiles

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig("config.toml", []byte(`
profile = "readonly"
mode = "ask"
[files]
read = ["~/.npmrc"]
write = ["/srv/data"]
hide = ["*.pem"]
[environment]
pass = ["GOPROXY"]
set = { A = "b" }
[auto]
reviewer = ["review", "--strict"]
timeout = "20s"
[[rule]]
verdict = "deny"
pattern = "git push"
reason = "ask me to push"
match = ["git push", "git -C x push origin"]
not-match = ["git pull"]
`))
	if err != nil {
		t.Fatal(err)
	}
	mode := policy.ModeAsk
	want := &Config{
		File: "config.toml", Profile: "readonly", Mode: &mode,
		Rules: []policy.Rule{{
			Verdict: policy.Deny, Pattern: "git push", Reason: "ask me to push",
			Match: []string{"git push", "git -C x push origin"}, NotMatch: []string{"git pull"}, Source: "config.toml:14",
		}},
		Read: []string{"~/.npmrc"}, Write: []string{"/srv/data"}, Hide: []string{"*.pem"},
		Pass: []string{"GOPROXY"}, Set: map[string]string{"A": "b"},
		Reviewer: []string{"review", "--strict"}, ReviewTimeout: 20 * time.Second,
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestConfigNamesAProfileBesideIt(t *testing.T) {
	for text, want := range map[string]string{
		"profile = 'ci'": "ci", "profile = 'mine.toml'": "/c/mine.toml", "profile = './x/mine'": "/c/x/mine", "profile = '/y.toml'": "/y.toml",
	} {
		if c, err := ParseConfig("/c/config.toml", []byte(text)); err != nil || c.Profile != want {
			t.Errorf("%s: %+v, %v; want %s", text, c, err, want)
		}
	}
}

func TestConfigurationRefuses(t *testing.T) {
	config := func(text string) error { _, err := ParseConfig("f.toml", []byte(text)); return err }
	project := func(text string) error { _, err := ParseProject("f.toml", []byte(text)); return err }
	for _, test := range []struct {
		name         string
		parse        func(string) error
		text         string
		line, column int
		message      string
	}{
		{"unknown key", config, "mode = 'ask'\nmoed = 'plan'\n", 2, 1, `unknown key "moed"`},
		{"a key of profiles", config, "network = 'host'\n", 1, 1, `unknown key "network"`},
		{"no TOML", config, "mode = \n", 1, 8, "unexpected character"},
		{"mode", config, "mode = 'yolo'\n", 1, 1, `unknown mode "yolo"`},
		{"relative path", config, "[files]\nread = ['x']\n", 2, 1, "want an absolute path"},
		{"relative reviewer", config, "[auto]\nreviewer = ['./review']\n", 2, 1, "want a program's name"},
		{"variable", config, "[environment]\npass = ['A=B']\n", 2, 1, "is no name"},
		{"example", config, "[[rule]]\nverdict = 'deny'\npattern = 'git push'\nmatch = ['git pull']\n", 3, 1, `its example "git pull" does not match`},
		{"counter-example", config, "[[rule]]\nverdict = 'deny'\npattern = 'git push'\nnot-match = ['git push -f']\n", 3, 1, `its counter-example "git push -f" matches`},
		{"allow everything", config, "[[rule]]\nverdict = 'allow'\npattern = 'bash *'\n", 3, 1, "runs any code"},

		{"unknown key", project, "\n[files]\nreda = ['/x']\n", 3, 1, `unknown key "files.reda"`},
		{"a key of the person", project, "[auto]\nreviewer = ['true']\n", 1, 2, `unknown key "auto"`},
		{"a profile of its own", project, "profile = './x.toml'\n", 1, 1, `unknown key "profile"`},
		{"network", project, "network = 'on'\n", 1, 1, `unknown value "on"`},
		{"protect outside", project, "[files]\nprotect = ['../x']\n", 2, 1, "want a path below the workspace"},
		{"protect all", project, "[files]\nprotect = ['.']\n", 2, 1, "want a path below the workspace"},
		{"protect unclean", project, "[files]\nprotect = ['a//b']\n", 2, 1, "want a path below the workspace"},
		{"unprotect", project, "[files]\nunprotect = ['x']\n", 2, 1, "no protected name"},
		{"pids", project, "[limits]\npids = 1\n", 2, 1, "out of range"},
		{"a bad rule that would be left out", project, "[[rule]]\nverdict = 'allow'\npattern = '*'\n", 3, 1, "must name its program"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.parse(test.text)
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want an Error", err)
			}
			if bad.Line != test.line || bad.Column != test.column || !strings.Contains(bad.Error(), test.message) {
				t.Errorf("got %v, want %d:%d and %q", bad, test.line, test.column, test.message)
			}
			if n := strings.Count(bad.Error(), "f.toml"); n != 1 {
				t.Errorf("the file is named %d times: %v", n, bad)
			}
		})
	}
}

func TestLoadConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	if c, err := LoadConfig(file); err != nil || !reflect.DeepEqual(c, &Config{}) {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(file); err == nil {
		t.Error("a FIFO was taken for a configuration")
	}
	if _, err := LoadConfig(dir); err == nil {
		t.Error("a directory was taken for a configuration")
	}
}

// What a sandboxed command can put in the place of the project's file is
// neither followed nor waited for.
func TestLoadProjectDistrusts(t *testing.T) {
	good := "mode = 'plan'\n"
	for name, put := range map[string]func(file string) error{
		"link": func(file string) error {
			other := file + ".other"
			return errors.Join(os.WriteFile(other, []byte(good), 0o644), os.Symlink(other, file))
		},
		"link to nothing": func(file string) error { return os.Symlink("nowhere", file) },
		"fifo":            func(file string) error { return syscall.Mkfifo(file, 0o644) },
		"directory":       func(file string) error { return os.Mkdir(file, 0o755) },
		"too large": func(file string) error {
			return os.WriteFile(file, append([]byte(good), make([]byte, maxSize)...), 0o644)
		},
		"malformed": func(file string) error { return os.WriteFile(file, []byte("mode ="), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, ProjectFile)); err != nil {
				t.Fatal(err)
			}
			p, err := LoadProject(dir)
			var bad *Error
			if !errors.As(err, &bad) || p != nil {
				t.Errorf("got %+v and %v, want an Error", p, err)
			}
		})
	}
	if p, err := LoadProject(t.TempDir()); p != nil || err != nil {
		t.Errorf("without a file: %+v, %v", p, err)
	}
}

func TestLoadProject(t *testing.T) {
	dir := t.TempDir()
	text := "mode = 'plan'\n[[rule]]\nverdict = 'deny'\npattern = 'npm publish'\n"
	if err := os.WriteFile(filepath.Join(dir, ProjectFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := LoadProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	if p.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("hash %s", p.SHA256)
	}
	if *p.Mode != policy.ModePlan || p.Rules[0].Source != dir+"/"+ProjectFile+":2" {
		t.Errorf("got %+v", p)
	}
}

// Each key on its own: what it does untrusted and trusted.
func TestProjectApply(t *testing.T) {
	base := func() *Profile {
		return &Profile{
			Mode: policy.ModeAsk, Network: sandbox.NetworkOff, Workspace: sandbox.ReadWrite,
			Limits: sandbox.Limits{Memory: 1 << 30, PIDs: 100, OpenFiles: 200, CPUs: 2},
		}
	}
	host := func(p *Profile) { p.Network = sandbox.NetworkHost }
	allow := func(p *Profile) { p.Mode = policy.ModeAllow }
	rule := func(verdict policy.Verdict) policy.Rule {
		return policy.Rule{Verdict: verdict, Pattern: "go vet", Source: "f.toml:1"}
	}
	for _, test := range []struct {
		text   string
		from   func(*Profile)
		change func(*Profile)
		left   string // "" = it tightens, so that trust makes no difference
	}{
		{"mode = 'plan'", nil, func(p *Profile) { p.Mode = policy.ModePlan }, ""},
		{"mode = 'ask'", allow, func(p *Profile) { p.Mode = policy.ModeAsk }, ""},
		{"mode = 'auto'", allow, func(p *Profile) { p.Mode = policy.ModeAuto }, ""},
		{"mode = 'ask'", nil, func(p *Profile) {}, ""},
		{"mode = 'auto'", nil, func(p *Profile) { p.Mode = policy.ModeAuto }, `mode = "auto"`},
		{"mode = 'allow'", nil, allow, `mode = "allow"`},
		{"network = 'off'", host, func(p *Profile) { p.Network = sandbox.NetworkOff }, ""},
		{"network = 'host'", nil, host, `network = "host"`},
		{"network = 'host'", host, func(p *Profile) {}, ""},
		{"[files]\nhide = ['x.key']", nil, func(p *Profile) { p.Hide = []string{"x.key"} }, ""},
		{"[files]\nprotect = ['gen/api']", nil, func(p *Profile) { p.Protect = []string{"gen/api"} }, ""},
		{"[files]\nread = ['~/x']", nil, func(p *Profile) { p.ProjectRead = []string{"~/x"} }, "files.read ~/x"},
		{"[files]\nwrite = ['/x']", nil, func(p *Profile) { p.ProjectWrite = []string{"/x"} }, "files.write /x"},
		{"[files]\nunprotect = ['.vscode']", nil, func(p *Profile) { p.Unprotect = []string{".vscode"} }, "files.unprotect .vscode"},
		{"[environment]\npass = ['X']", nil, func(p *Profile) { p.Pass = []string{"X"} }, "environment.pass X"},
		{"[environment.set]\nX = '1'", nil, func(p *Profile) { p.Set = map[string]string{"X": "1"} }, `environment.set X = "1"`},
		{"[limits]\nmemory = '512M'", nil, func(p *Profile) { p.Limits.Memory = 512 << 20 }, ""},
		{"[limits]\nmemory = '2G'", nil, func(p *Profile) { p.Limits.Memory = 2 << 30 }, "limits.memory"},
		{
			"[limits]\nmemory = '512M'", func(p *Profile) { p.Limits.Memory, p.MemoryShare = 0, 1 },
			func(p *Profile) { p.Limits.Memory, p.MemoryShare = 512<<20, 0 }, "",
		},
		{"[limits]\nmemory = 'unlimited'", nil, func(p *Profile) { p.Limits.Memory = -1 }, "limits.memory"},
		{"[limits]\nmemory = '2G'", func(p *Profile) { p.Limits.Memory = -1 }, func(p *Profile) { p.Limits.Memory = 2 << 30 }, ""},
		{"[limits]\npids = 10", nil, func(p *Profile) { p.Limits.PIDs = 10 }, ""},
		{"[limits]\npids = 101", nil, func(p *Profile) { p.Limits.PIDs = 101 }, "limits.pids = 101"},
		{"[limits]\npids = -1", nil, func(p *Profile) { p.Limits.PIDs = -1 }, "limits.pids = -1"},
		{"[limits]\nopen-files = 20", nil, func(p *Profile) { p.Limits.OpenFiles = 20 }, ""},
		{"[limits]\nopen-files = 201", nil, func(p *Profile) { p.Limits.OpenFiles = 201 }, "limits.open-files = 201"},
		{"[limits]\nfile-size = '1M'", nil, func(p *Profile) { p.Limits.FileSize = 1 << 20 }, ""},
		{"[limits]\nfile-size = '3M'", func(p *Profile) { p.Limits.FileSize = 2 << 20 }, func(p *Profile) { p.Limits.FileSize = 3 << 20 }, "limits.file-size"},
		{"[limits]\ncpus = 1.5", nil, func(p *Profile) { p.Limits.CPUs = 1.5 }, ""},
		{"[limits]\ncpus = 4", nil, func(p *Profile) { p.Limits.CPUs = 4 }, "limits.cpus = 4"},
		{"[[rule]]\nverdict = 'deny'\npattern = 'go vet'", nil, func(p *Profile) { p.Rules = []policy.Rule{rule(policy.Deny)} }, ""},
		{"[[rule]]\nverdict = 'ask'\npattern = 'go vet'", nil, func(p *Profile) { p.Rules = []policy.Rule{rule(policy.Ask)} }, ""},
		{"[[rule]]\nverdict = 'allow'\npattern = 'go vet'", nil, func(p *Profile) { p.Rules = []policy.Rule{rule(policy.Allow)} }, "rule allow go vet"},
	} {
		t.Run(test.text, func(t *testing.T) {
			project, err := ParseProject("f.toml", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			for _, trusted := range []bool{false, true} {
				have, want := base(), base()
				for _, p := range []*Profile{have, want} {
					if test.from != nil {
						test.from(p)
					}
				}
				var wantLeft []string
				if trusted || test.left == "" {
					test.change(want)
				} else {
					wantLeft = []string{test.left}
				}
				left, err := project.Apply(have, trusted)
				if err != nil || !slices.Equal(left, wantLeft) {
					t.Errorf("trusted %v: left out %q, %v; want %q", trusted, left, err, wantLeft)
				}
				if !sameProfile(have, want) {
					t.Errorf("trusted %v: got  %+v\nwant %+v", trusted, have, want)
				}
			}
		})
	}
}

// sameProfile takes an empty list for a list that is not there.
func sameProfile(a, b *Profile) bool {
	va, vb := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for f, value := range va.Fields() {
		other := vb.FieldByIndex(f.Index)
		if value.Kind() == reflect.Slice && value.Len() == 0 && other.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(value.Interface(), other.Interface()) {
			return false
		}
	}
	return true
}

// A built-in profile is shared by all who load it.
func TestConfigurationLeavesTheProfileAlone(t *testing.T) {
	p := load(t, "ci")
	p.Set = map[string]string{"A": "1"}
	p.Hide = append(make([]string, 0, 100), p.Hide...)
	mine := *p
	(&Config{Hide: []string{"x"}, Set: map[string]string{"A": "2"}}).Apply(&mine)
	if _, err := (&Project{Hide: []string{"y"}, Set: map[string]string{"A": "3"}}).Apply(&mine, true); err != nil {
		t.Fatal(err)
	}
	if p.Set["A"] != "1" || slices.Contains(p.Hide[:cap(p.Hide)], "x") || slices.Contains(p.Hide[:cap(p.Hide)], "y") {
		t.Errorf("the loaded profile was changed: %q, %q", p.Hide, p.Set)
	}
	if mine.Set["A"] != "3" || !slices.Contains(mine.Hide, "x") || !slices.Contains(mine.Hide, "y") {
		t.Errorf("nothing was applied: %q, %q", mine.Hide, mine.Set)
	}
}

// Trust of a project's file is not the person's word on a secret.
func TestProjectGrantsOpenNoSecret(t *testing.T) {
	place := fakePlace()
	for _, test := range []struct {
		name   string
		change func(*Profile)
		field  string // of the error; "" = none
		path   string
		access sandbox.Access
	}{
		{"a folder", func(p *Profile) { p.ProjectWrite = []string{"/srv/x"} }, "", "/srv/x/y", sandbox.ReadWrite},
		{"a secret", func(p *Profile) { p.ProjectRead = []string{"~/.npmrc"} }, "grant", "/h/u/.npmrc", sandbox.None},
		{"below a secret", func(p *Profile) { p.ProjectRead = []string{"~/.ssh/config"} }, "grant", "/h/u/.ssh/config", sandbox.None},
		{"above a secret", func(p *Profile) { p.ProjectWrite = []string{"~"} }, "", "/h/u/.ssh/config", sandbox.None},
		{"a secret that the person opened", func(p *Profile) { p.Read, p.ProjectRead = []string{"~/.npmrc"}, []string{"~/.npmrc"} }, "", "/h/u/.npmrc", sandbox.ReadOnly},
		{"our own", func(p *Profile) { p.ProjectWrite = []string{"~/.config/sandbox-exec"} }, "grant", "/h/u/.config/sandbox-exec", sandbox.None},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := *load(t, "workspace")
			test.change(&p)
			spec, err := p.Spec(place)
			var bad *sandbox.SpecError
			if errors.As(err, &bad) != (test.field != "") || bad != nil && bad.Field != test.field {
				t.Fatalf("error %v, want one of %q", err, test.field)
			}
			if err != nil {
				rules, _ := p.fileRules(&place)
				spec.Files = rules
			}
			if got := sandbox.AccessOf(spec.Files, test.path); got != test.access {
				t.Errorf("%s is %v, want %v", test.path, got, test.access)
			}
		})
	}
}

func TestProtect(t *testing.T) {
	p := *load(t, "workspace")
	p.Protect = []string{"gen/api", "LICENSE"}
	p.Unprotect = []string{"LICENSE"}
	spec, err := p.Spec(fakePlace())
	if err != nil {
		t.Fatal(err)
	}
	has := func(path string) bool {
		return slices.ContainsFunc(spec.Protect, func(n sandbox.Name) bool { return n.Path == path && n.Guard == sandbox.Block })
	}
	if !has("/h/u/work/gen/api") || has("/h/u/work/LICENSE") {
		t.Errorf("protected: %+v", spec.Protect)
	}
}

// Whatever an untrusted project's file says, nothing gets looser by it.
func FuzzUntrustedProject(f *testing.F) {
	f.Add("mode = 'allow'\nnetwork = 'host'\n[files]\nread = ['/']\nunprotect = ['.git/hooks']\n[limits]\npids = -1\nmemory = '100%'\n")
	f.Add("[[rule]]\nverdict = 'allow'\npattern = 'rm *'\n[[rule]]\nverdict = 'ask'\npattern = '{rm,ls} *'\n[environment.set]\nPATH = '/x'")
	f.Add("mode = 'auto'\n[[rule]]\nverdict = 'ask'\npattern = 'make'\naction = 'process.exec'\n[[rule]]\naction = 'file.read'\nverdict = 'ask'\npattern = '**'")
	commands := []string{"ls", "make", "npm publish", "rm -rf src", "rm -rf ~", "echo x > file", "cat ~/.ssh/id_rsa", "git push", "LD_PRELOAD=x ls"}
	f.Fuzz(func(t *testing.T, text string) {
		project, err := ParseProject("f.toml", []byte(text))
		if err != nil {
			return
		}
		for _, name := range Names() {
			before, after := load(t, name), load(t, name)
			if _, err := project.Apply(after, false); err != nil {
				t.Fatal(err)
			}
			if strictness(after.Mode) < strictness(before.Mode) || after.Network > before.Network || after.Workspace > before.Workspace {
				t.Errorf("%s: mode %v, network %v, workspace %v", name, after.Mode, after.Network, after.Workspace)
			}
			have, _ := bytesOf(before.Limits.Memory, before.MemoryShare)
			got, _ := bytesOf(after.Limits.Memory, after.MemoryShare)
			if raises(have, got) || raises(before.Limits.PIDs, after.Limits.PIDs) || raises(before.Limits.OpenFiles, after.Limits.OpenFiles) ||
				raises(before.Limits.FileSize, after.Limits.FileSize) || raises(before.Limits.CPUs, after.Limits.CPUs) {
				t.Errorf("%s: limits %+v", name, after.Limits)
			}
			place := fakePlace()
			for _, c := range commands {
				was, is := before.Policy().Decide(c, before.Scope(place)), after.Policy().Decide(c, after.Scope(place))
				if is.Verdict < was.Verdict {
					t.Errorf("%s: %q was %v and is %v", name, c, was.Verdict, is.Verdict)
				}
			}
			if !slices.Equal(before.Hide, after.Hide[:len(before.Hide)]) || !slices.Equal(before.Protect, after.Protect[:len(before.Protect)]) {
				t.Errorf("%s: what was hidden and protected is not: %q, %q", name, after.Hide, after.Protect)
			}
			// All else is as it was.
			after.Mode, after.Network, after.Rules, after.Limits, after.MemoryShare = before.Mode, before.Network, before.Rules, before.Limits, before.MemoryShare
			after.Hide, after.Protect = before.Hide, before.Protect
			if !sameProfile(before, after) {
				t.Errorf("%s: got  %+v\nwant %+v", name, after, before)
			}
		}
	})
}
