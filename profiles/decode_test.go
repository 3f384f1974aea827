package profiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct {
		name, text   string
		line, column int
		message      string
	}{
		{"unknown key", "mode = 'ask'\nmoed = 'plan'\n", 2, 1, `unknown key "moed"`},
		{"unknown key in a table", "[limits]\npids = 5\nmemry = '1GiB'\n", 3, 1, `unknown key "limits.memry"`},
		{"unknown table", "\n[limit]\npids = 5\n", 2, 2, `unknown key "limit"`},
		{"unknown key in a rule", "[[rule]]\nverdict = 'deny'\npatern = 'x'\n", 3, 1, `unknown key "rule.patern"`},
		{"no TOML", "mode = \n", 1, 8, "unexpected character"},
		{"a key twice", "mode = 'ask'\nmode = 'plan'\n", 2, 1, "already defined"},
		{"a table twice", "[limits]\npids = 5\n[limits]\n", 3, 2, "already exists"},
		{"not a string", "mode = 5\n", 1, 8, "want a string, not a whole number"},
		{"not a number", "[limits]\npids = 'many'\n", 2, 8, "want a whole number, not a string"},
		{"not a list", "require = 'seccomp'\n", 1, 11, "want a list of strings, not a string"},
		{"not a table", "limits = 5\n", 1, 10, "want a table, not a whole number"},
		{"mode", "# comment\nmode = 'yolo'\n", 2, 1, `unknown mode "yolo"`},
		{"ask", "ask = 'maybe'\n", 1, 1, `unknown value "maybe"`},
		{"stdin", "stdin = 'tty'\n", 1, 1, `unknown value "tty"`},
		{"network", "network = 'on'\n", 1, 1, `unknown value "on"`},
		{"access", "[files]\nworkspace = 'rw'\n", 2, 1, `unknown value "rw"`},
		{"access, dotted", "files.workspace = 'rw'\n", 1, 1, `unknown value "rw"`},
		{"access, inline", "description = 'x'\nfiles = { workspace = 'rw' }\n", 2, 1, `unknown value "rw"`},
		{"tmp", "[files]\n\ntmp = 'shared'\n", 3, 1, `unknown value "shared"`},
		{"layer", "allow-missing = ['namespaces', 'secomp']\n", 1, 1, `unknown layer "secomp"`},
		{"a layer of the past", "require = ['environment']\n", 1, 1, `unknown layer "environment"`},
		{"a layer of no backend", "require = ['hypervisor']\n", 1, 1, `unknown layer "hypervisor"`},
		{"relative path", "[files]\nread = ['/a', 'b']\n", 2, 1, `"b": want an absolute path`},
		{"unclean path", "[files]\nwrite = ['/a/../b']\n", 2, 1, "want an absolute path"},
		{"somebody's home", "[files]\nhide = ['~x/b']\n", 2, 1, "want an absolute path"},
		{"a path to hide", "[files]\nhide = ['a/b']\n", 2, 1, `"a/b": want a name`},
		{"a bad pattern", "[files]\nhide = ['[a']\n", 2, 1, `"[a": want a name`},
		{"protected name", "[files]\nunprotect = ['.vscod']\n", 2, 1, `".vscod" is no protected name`},
		{"variable", "[environment]\npass = ['A=B']\n", 2, 1, `"A=B" is no name`},
		{"everything", "[environment]\npass = ['*']\n", 2, 1, `"" is no name`},
		{"variable to set", "[environment.set]\n'A*' = 'x'\n", 2, 1, `"A*" is no name`},
		{"memory", "[limits]\nmemory = 'lots'\n", 2, 1, `"lots" is no size`},
		{"memory unit", "[limits]\nmemory = '5GB'\n", 2, 1, `"5GB" is no size`},
		{"memory in units of nothing", "[limits]\nmemory = '5iB5'\n", 2, 1, "is no size"},
		{"memory without a number", "[limits]\nmemory = 'G'\n", 2, 1, "is no size"},
		{"negative memory", "[limits]\nmemory = '-1GiB'\n", 2, 1, "is no size"},
		{"memory overflow", "[limits]\nmemory = '99999999999TiB'\n", 2, 1, "is no size"},
		{"tiny memory", "[limits]\nmemory = '5KiB'\n", 2, 1, "too little memory"},
		{"share", "[limits]\nmemory = '150%'\n", 2, 1, "is no part of the memory"},
		{"no share", "[limits]\nmemory = '0%'\n", 2, 1, "is no part of the memory"},
		{"share of nothing", "[limits]\nmemory = 'nan%'\n", 2, 1, "is no part of the memory"},
		{"pids", "[limits]\npids = -5\n", 2, 1, "-5 is out of range"},
		{"one process", "[limits]\npids = 1\n", 2, 1, "1 is out of range"},
		{"too many processes", "[limits]\npids = 4194305\n", 2, 1, "4194305 is out of range"},
		{"open files", "[limits]\nopen-files = 3\n", 2, 1, "3 is out of range"},
		{"cpus", "[limits]\ncpus = -0.5\n", 2, 1, "-0.5 processors"},
		{"no cpu", "[limits]\ncpus = nan\n", 2, 1, "NaN processors"},
		{"time", "[tool-call]\ntimeout = '90'\n", 2, 1, `"90" is no time`},
		{"negative time", "[tool-call]\ngrace = '-1s'\n", 2, 1, `"-1s" is no time`},
		{"time above its cap", "[tool-call]\ntimeout = '2h'\nmax-timeout = '1h'\n", 2, 1, "above max-timeout, 1h0m0s"},
		{"time above the default cap", "[tool-call]\ntimeout = '2h'\n", 2, 1, "above max-timeout, 5m0s"},
		{"no time-out below a cap", "[tool-call]\ntimeout = 'none'\n", 2, 1, "above max-timeout, 5m0s"},
		{"no time", "[tool-call]\nmax-timeout = '0s'\n", 2, 1, `"0s" is no time`},
		{"verdict", "[[rule]]\nverdict = 'deny'\npattern = 'x'\n\n[[rule]]\npattern = 'y'\nverdict = 'never'\n", 7, 1, `unknown verdict "never"`},
		{"no verdict", "[[rule]]\npattern = 'y'\n", 1, 3, `unknown verdict ""`},
		{"no pattern", "[[rule]]\nverdict = 'deny'\npattern = ''\n", 3, 1, "without a pattern"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := Parse("my.toml", []byte(test.text))
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("got %v and %+v, want an Error", err, p)
			}
			if p != nil {
				t.Error("there is a profile beside the error")
			}
			if bad.Line != test.line || bad.Column != test.column {
				t.Errorf("at %d:%d, want %d:%d: %v", bad.Line, bad.Column, test.line, test.column, err)
			}
			if !strings.Contains(bad.Error(), test.message) {
				t.Errorf("message %q, want %q in it", bad, test.message)
			}
			if line := strings.Split(test.text, "\n")[test.line-1]; bad.Text != line {
				t.Errorf("text %q, want %q", bad.Text, line)
			}
		})
	}
}

func TestUnknownKeyNamesTheKnownOnes(t *testing.T) {
	_, err := Parse("my.toml", []byte("[limits]\nmemry = '1GiB'\n"))
	var bad *Error
	if !errors.As(err, &bad) || bad.Hint != "known here: memory, pids, cpus, open-files, file-size, tmp" {
		t.Errorf("hint %q", bad.Hint)
	}
}

func TestParse(t *testing.T) {
	p, err := Parse("dir/mine.toml", []byte(`
description = "x"
mode = "auto"
ask = "allow"
stdin = "inherit"
network = "host"
require = ["seccomp"]
allow-missing = ["cgroup"]
[files]
workspace = "read-only"
tmp = "session"
read = ["~", "~/.npmrc"]
write = ["/a"]
hide = ["*.pem", "~/x", "/y"]
unprotect = [".git/hooks", ".git", ".vscode"]
sockets = ["/run/docker.sock"]
[limits]
memory = "2G"
pids = -1
cpus = 1.5
open-files = 100
file-size = "unlimited"
[environment]
pass = ["FOO", "BAR_*"]
set = { A = "b" }
[tool-call]
timeout = "90s"
max-timeout = "1h"
max-background-timeout = "none"
redact = true
grace = "500ms"
output = "1MiB"
[[rule]]
action = "process.exec"
verdict = "deny"
pattern = "git push"
reason = "ask first"
`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "mine" || p.File != "dir/mine.toml" || p.Mode != policy.ModeAuto || p.Workspace != sandbox.ReadOnly || p.Network != sandbox.NetworkHost {
		t.Errorf("%+v", p)
	}
	want := sandbox.Limits{Memory: 2 << 30, PIDs: -1, CPUs: 1.5, OpenFiles: 100, FileSize: -1}
	if p.Limits != want || p.MemoryShare != 0 {
		t.Errorf("limits %+v, share %v, want %+v", p.Limits, p.MemoryShare, want)
	}
	if p.ToolCall != (ToolCall{Timeout: 90 * time.Second, MaxTimeout: time.Hour, BackgroundTimeout: 10 * time.Minute, MaxBackgroundTimeout: sandbox.Unlimited, Grace: time.Second / 2, Output: 1 << 20, Redact: true}) {
		t.Errorf("%+v", p.ToolCall)
	}
	if len(p.Rules) != 1 || p.Rules[0].Source != "dir/mine.toml:33" || p.Rules[0].Verdict != policy.Deny {
		t.Errorf("%+v", p.Rules)
	}
}

// An empty profile is the strictest, with limits.
func TestParseNothing(t *testing.T) {
	p, err := Parse("empty.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode != policy.ModeAsk || p.Workspace != sandbox.None || p.Network != sandbox.NetworkOff || p.AllowMissing != nil || p.Tmp == "session" {
		t.Errorf("%+v", p)
	}
	if p.Limits != (sandbox.Limits{PIDs: defaultPIDs, OpenFiles: defaultOpenFiles}) || p.MemoryShare != 0.5 {
		t.Errorf("limits %+v, share %v", p.Limits, p.MemoryShare)
	}
}

func TestLoad(t *testing.T) {
	if got := strings.Join(Names(), " "); got != "ci readonly workspace-net workspace" {
		t.Errorf("names %q", got)
	}
	for _, name := range Names() {
		p := load(t, name)
		if p.Name != name || p.Description == "" {
			t.Errorf("%+v", p)
		}
		p.Mode, p.Name = policy.ModeAuto, "changed"
		if again := load(t, name); again.Name != name {
			t.Errorf("%s: a change of what was loaded changes what is loaded next", name)
		}
	}
	_, err := Load("worksapce")
	var bad *Error
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &bad) || !strings.Contains(bad.Hint, "ci, readonly, workspace") {
		t.Errorf("unknown name: %v", err)
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("good.toml", "mode = 'plan'\n")
	if p, err := Load(good); err != nil || p.Name != "good" || p.Mode != policy.ModePlan {
		t.Errorf("%+v, %v", p, err)
	}
	fifo := filepath.Join(dir, "fifo.toml")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for file, message := range map[string]string{
		filepath.Join(dir, "absent.toml"): "no such file",
		dir + "/":                         "not a regular file",
		fifo:                              "not a regular file",
		"/dev/zero":                       "not a regular file",
		write("big.toml", strings.Repeat("#\n", maxSize)):                    "larger than",
		write("bad.toml", "mode = 'plan'\nnetwork = 'maybe'\n"):              "bad.toml:2:1: unknown value",
		write("bytes.toml", "description = '\xff'\n"):                        "bytes.toml:1:",
		write("nul.toml", "[files]\nread = [\"/a\\u0000b\"]\n") /* a NUL */ : "want an absolute path",
	} {
		_, err := Load(file)
		var bad *Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %q", file, err, message)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("*/*.toml")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds: ", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("[[rule]]\nverdict = 'deny'\npattern = 'a b'\nmatch = ['a b c']\n"))
	f.Add([]byte("files = { hide = ['[' ] }\nlimits.cpus = inf\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("fuzz.toml", data)
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) || p != nil {
				t.Fatalf("%T, %+v", err, p)
			}
			if lines := strings.Count(string(data), "\n") + 1; bad.Line < 0 || bad.Line > lines || bad.Line > 0 && bad.Column < 1 {
				t.Fatalf("position %d:%d in %d lines", bad.Line, bad.Column, lines)
			}
			return
		}
		spec, err := p.Spec(fakePlace())
		if err != nil {
			return
		}
		for _, path := range []string{"/h/u/.local/state/sandbox-exec/x", "/h/u/.config/sandbox-exec/x"} {
			if sandbox.AccessOf(spec.Files, path) != sandbox.None {
				t.Fatalf("%s is reachable", path)
			}
		}
		if sandbox.AccessOf(spec.Files, "/sys/fs/cgroup/x") > sandbox.ReadOnly {
			t.Fatal("the limits are writable")
		}
	})
}

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64 // 0 = an error
	}{
		{"1", 1},
		{"512M", 512 << 20},
		{"512m", 512 << 20},
		{"4GiB", 4 << 30},
		{"1T", 1 << 40},
		{"unlimited", sandbox.Unlimited},
		{"", 0},
		{"0", 0},
		{"-1", 0},
		{"4GB", 0},
		{"G", 0},
		{"iB", 0},
		{"1.5G", 0},
		{"8388608T", 0},
	} {
		got, err := ParseSize(tt.text)
		if got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("%q: got %d, %v, want %d", tt.text, got, err, tt.want)
		}
	}
}
