package profiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// fakePlace is a place that exists on no machine.
func fakePlace() Place {
	return Place{
		OS:        "linux",
		Workspace: "/h/u/work",
		Home:      "/h/u",
		UID:       1234,
		StateDir:  "/h/u/.local/state/sandbox-exec",
		ConfigDir: "/h/u/.config/sandbox-exec",
		CacheDir:  "/h/u/.cache/sandbox-exec/0123",
		TmpDir:    "/h/u/.local/state/sandbox-exec/tmp/0123",
		Memory:    16 << 30,
		Environ:   []string{"HOME=/h/u", "PATH=/usr/bin:/bin:/h/u/bin", "LANG=C.UTF-8", "GITHUB_TOKEN=x"},
	}
}

func load(t testing.TB, name string) *Profile {
	t.Helper()
	p, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// golden compares text with testdata/name; with -update it writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
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
	t.Errorf("%s differs; go test ./profiles -update writes it", file)
	have, wanted := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for _, line := range have {
		if !slices.Contains(wanted, line) {
			t.Log("+ " + line)
		}
	}
	for _, line := range wanted {
		if !slices.Contains(have, line) {
			t.Log("- " + line)
		}
	}
}

func printRule(r sandbox.FileRule) string {
	return fmt.Sprintf("%-10v %-6v %s  # %s\n", r.Access, r.Sort, r.Path, r.Reason)
}

// printSpec prints a Spec without the secrets and sockets of every run.
func printSpec(s sandbox.Spec, place Place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "workspace %s\nhome %s\ntmp %q\nnetwork %v\n", s.Workspace, s.Home, s.Tmp, s.Network)
	fmt.Fprintf(&b, "limits %+v\nrequire %q, allow missing %q, sockets %q\n", s.Limits, s.Require, s.AllowMissing, s.Sockets)
	shared := appendSockets(appendSecrets(nil, &place), &place)
	hidden := 0
	b.WriteString("\n")
	for _, r := range s.Files {
		if slices.Contains(shared, r) {
			hidden++
		} else {
			b.WriteString(printRule(r))
		}
	}
	fmt.Fprintf(&b, "and %d of %d secrets and sockets\n", hidden, len(shared))
	if len(s.Protect) > 0 {
		b.WriteString("\n")
	}
	for _, n := range s.Protect {
		fmt.Fprintf(&b, "%-6v %s  # %s\n", n.Guard, n.Path, n.Reason)
	}
	return b.String()
}

func TestSpecGolden(t *testing.T) {
	for _, test := range []struct {
		name, profile string
		change        func(*Profile, *Place)
	}{
		{"workspace", "workspace", nil},
		{"readonly", "readonly", nil},
		{"ci", "ci", nil},
		{"subdirectory", "workspace", func(p *Profile, w *Place) { w.Cwd = "/h/u/work/a/b" }},
		{"worktree", "workspace", func(p *Profile, w *Place) { w.GitDirs = []string{"/h/u/main/.git", "/h/u/main/.git/worktrees/w"} }},
		{"grants", "workspace", func(p *Profile, w *Place) {
			p.Read = []string{"~/.npmrc", "~/.ssh/known_hosts", "/srv/data", "~"}
			p.Write = []string{"~/notes", "~/.aws"}
			p.Hide = []string{"~/private", "keys"}
			p.Sockets = []string{"/run/docker.sock", "/run/user/1234/bus"}
			p.Unprotect = []string{".vscode", ".git/hooks"}
			p.Network = sandbox.NetworkHost
			p.Tmp = "private"
			p.Limits.Memory = sandbox.Unlimited
		}},
		{"darwin", "workspace", func(p *Profile, w *Place) { w.OS = "darwin" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, place := load(t, test.profile), fakePlace()
			if test.change != nil {
				test.change(p, &place)
			}
			spec, err := p.Spec(place)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, test.name+".golden", printSpec(spec, place))
		})
	}
}

// What is hidden in every run, by system.
func TestHiddenGolden(t *testing.T) {
	for _, os := range []string{"linux", "darwin"} {
		place := fakePlace()
		place.OS = os
		var b strings.Builder
		for _, r := range appendSockets(appendSecrets(nil, &place), &place) {
			if r.Access != sandbox.None || r.Sort != sandbox.Secret {
				t.Errorf("%s is %v, %v", r.Path, r.Access, r.Sort)
			}
			b.WriteString(r.Path + "\n")
		}
		golden(t, "hidden-"+os+".golden", b.String())
	}
}

func TestAccess(t *testing.T) {
	const none, read, write = sandbox.None, sandbox.ReadOnly, sandbox.ReadWrite
	for _, test := range []struct {
		name   string
		change func(*Profile, *Place)
		want   map[string]sandbox.Access
	}{
		{"as it is", nil, map[string]sandbox.Access{
			"/etc/passwd": read, "/etc/shadow": none, "/root/x": none, "/sys/fs/cgroup/memory": read,
			"/h/u/work/x": write, "/h/u/other/x": read, "/h/u/.gitconfig": read, "/h/u/.bashrc": read,
			"/h/u/.config/tool.toml": read, "/h/u/.ssh/id_ed25519": none, "/h/u/.codex/skills/x": read,
			"/h/u/.cache/sandbox-exec/0123/go-build": write, "/h/u/.cache/sandbox-exec/4567": read,
			"/h/u/.local/state/sandbox-exec/grants": none, "/h/u/.config/sandbox-exec/config.toml": none,
			"/run/docker.sock": none, "/run/user/1234/bus": none, "/run/user/1000/bus": none,
		}},
		{"a grant opens exactly what it names", func(p *Profile, w *Place) {
			p.Read = []string{"~/.npmrc", "~/.ssh/known_hosts"}
			p.Write = []string{"~/.aws", "~/notes"}
		}, map[string]sandbox.Access{
			"/h/u/.npmrc": read, "/h/u/.ssh/known_hosts": read, "/h/u/.ssh/id_ed25519": none,
			"/h/u/.aws/config": write, "/h/u/notes/a": write,
		}},
		{"a grant above secrets opens none", func(p *Profile, w *Place) { p.Write = []string{"~", "/"} }, map[string]sandbox.Access{
			"/h/u/x": write, "/h/u/.ssh/id_ed25519": none, "/etc/shadow": none, "/sys/fs/cgroup/x": read,
			"/h/u/.local/state/sandbox-exec/grants": none, "/run/docker.sock": none,
		}},
		{"a grant takes nothing away", func(p *Profile, w *Place) {
			p.Read = []string{"~/work", "~/work/sub", "/", "~/.aws"}
			p.Write = []string{"~/.aws", "~/work"}
		}, map[string]sandbox.Access{"/h/u/work/x": write, "/h/u/work/sub/x": write, "/etc/passwd": read, "/h/u/.aws/x": write}},
		{"home as the workspace", func(p *Profile, w *Place) { w.Workspace = "/h/u" }, map[string]sandbox.Access{
			"/h/u/x": write, "/h/u/.ssh/id_ed25519": none, "/h/u/.npmrc": none, "/h/u/.config/sandbox-exec": none,
		}},
		{"the workspace in root's home, which is another's", func(p *Profile, w *Place) {
			w.UID, w.MoreHomes, w.Workspace = 0, []string{"/root", "/home/b"}, "/root/work"
		}, map[string]sandbox.Access{
			"/root/work/x": write, "/root/.ssh/id": none, "/root/x": read, "/home/b/x": none, "/h/u/.ssh/id": none,
		}},
		{"programs in another home", func(p *Profile, w *Place) {
			w.UID, w.MoreHomes = 0, []string{"/home/b"}
			w.Environ = []string{"PATH=/usr/bin:/home/b/go/bin"}
		}, map[string]sandbox.Access{"/home/b/go/bin/x": read, "/home/b/.ssh/id": none}},
		{"HOME that is not the user's own", func(p *Profile, w *Place) { w.MoreHomes = []string{"/home/u"} }, map[string]sandbox.Access{
			"/home/u/.ssh/id": none, "/home/u/x": read, "/h/u/.ssh/id": none,
		}},
		{"no home", func(p *Profile, w *Place) { w.Home = "/" }, map[string]sandbox.Access{
			"/.ssh/id": none, "/etc/passwd": read, "/h/u/work/x": write,
		}},
		{"moved", func(p *Profile, w *Place) {
			w.Environ = []string{
				"XDG_CONFIG_HOME=/cfg", "XDG_DATA_HOME=relative", "KUBECONFIG=/k/one:two", "CARGO_HOME=/c",
				"HISTFILE=/dev/null", "DOCKER_CONFIG=/h/u", "AZURE_CONFIG_DIR=/", "NETRC=/h/u/work/netrc",
				"SSH_AUTH_SOCK=/tmp/ssh-x/agent.1", "DBUS_SESSION_BUS_ADDRESS=unix:path=/bus/a,guid=1", "DOCKER_HOST=tcp://10.0.0.1:2375",
				"TMUX=/t/tmux-1/default,123,0",
			}
		}, map[string]sandbox.Access{
			"/cfg/gh/hosts.yml": none, "/h/u/.config/gh/hosts.yml": none, "/cfg/tool": read,
			"/k/one": none, "/h/u/work/two": none, "/c/credentials.toml": none, "/c/bin/x": read,
			"/dev/null": read, "/h/u/x": read, "/h/u/work/x": write, "/h/u/work/netrc": none, "/etc/passwd": read,
			"/tmp/ssh-x/agent.1": none, "/bus/a": none, "/t/tmux-1/default": none,
		}},
		{"a folder of programs is no secret", func(p *Profile, w *Place) {
			w.Environ = []string{"PATH=/usr/bin:/opt/aws/bin", "AZURE_CONFIG_DIR=/opt/aws"}
		}, map[string]sandbox.Access{"/opt/aws/bin/x": read}},
		{"read-only", func(p *Profile, w *Place) { *p = *load(t, "readonly") }, map[string]sandbox.Access{
			"/h/u/work/x": read, "/h/u/work/.env": none, "/h/u/.cache/sandbox-exec/0123": read,
		}},
		{"hidden workspace", func(p *Profile, w *Place) { p.Workspace = none }, map[string]sandbox.Access{"/h/u/work/x": none, "/etc/passwd": read}},
		{"the zero profile", func(p *Profile, w *Place) { *p = Profile{} }, map[string]sandbox.Access{"/h/u/work/x": none, "/h/u/.ssh/x": none}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, place := load(t, "workspace"), fakePlace()
			if test.change != nil {
				test.change(p, &place)
			}
			spec, err := p.Spec(place)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range test.want {
				if got := sandbox.AccessOf(spec.Files, path); got != want {
					t.Errorf("%s: %v, want %v", path, got, want)
				}
			}
		})
	}
}

// .env and its kin are hidden by name, in the workspace's root and the current
// directory, where the profile says so.
func TestHidePatterns(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", ".env.local", ".env.example", ".envrc", "env", "sub/.env.prod", "sub/deep/.env"} {
		file := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	place := fakePlace()
	place.Workspace, place.Cwd = ws, ws+"/sub"
	for profile, hidden := range map[string]string{
		"workspace": "",
		"ci":        ".env .env.local .envrc sub/.env sub/.env.prod sub/.envrc",
		"readonly":  ".env .env.local .envrc sub/.env sub/.env.prod sub/.envrc",
	} {
		spec, err := load(t, profile).Spec(place)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range spec.Files {
			if name, ok := strings.CutPrefix(r.Path, ws+"/"); ok && r.Access == sandbox.None {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != hidden {
			t.Errorf("%s hides %q, want %q", profile, s, hidden)
		}
	}

	p := load(t, "ci")
	p.Read = []string{ws + "/.env"}
	spec, err := p.Spec(place)
	if err != nil {
		t.Fatal(err)
	}
	if got := sandbox.AccessOf(spec.Files, ws+"/.env"); got != sandbox.ReadOnly {
		t.Errorf(".env, asked for, is %v", got)
	}
	if got := sandbox.AccessOf(spec.Files, ws+"/.env.local"); got != sandbox.None {
		t.Errorf(".env.local, not asked for, is %v", got)
	}
}

// What lies in the workspace can stop a start, but not make it slow.
func TestHidePatternsInHugeDirectory(t *testing.T) {
	ws := t.TempDir()
	for i := range maxEntries + 1 {
		if err := os.Symlink("x", fmt.Sprintf("%s/%d", ws, i)); err != nil {
			t.Fatal(err)
		}
	}
	place := fakePlace()
	place.Workspace = ws
	wantSpecError(t, load(t, "ci"), place, "hide")
	if _, err := load(t, "workspace").Spec(place); err != nil {
		t.Error(err)
	}
}

func wantSpecError(t *testing.T, p *Profile, place Place, field string) {
	t.Helper()
	_, err := p.Spec(place)
	var bad *sandbox.SpecError
	if !errors.As(err, &bad) {
		t.Errorf("got %v, want a SpecError about %s", err, field)
		return
	}
	if bad.Field != field || bad.Hint == "" && field != "home" && field != "working directory" {
		t.Errorf("got %q (hint %q), want one about %s with a hint", bad, bad.Hint, field)
	}
}

func TestSpecRefuses(t *testing.T) {
	for _, test := range []struct {
		name, field string
		change      func(*Profile, *Place)
	}{
		{"the file system", "workspace", func(p *Profile, w *Place) { w.Workspace = "/" }},
		{"the folder of homes", "workspace", func(p *Profile, w *Place) { w.Workspace = "/h" }},
		{"a workspace in a secret", "workspace", func(p *Profile, w *Place) { w.Workspace = "/h/u/.ssh/x" }},
		{"a secret as the workspace", "workspace", func(p *Profile, w *Place) { w.Workspace = "/h/u/.aws" }},
		{"our state as the workspace", "workspace", func(p *Profile, w *Place) { w.Workspace = w.StateDir + "/x" }},
		{"a cache in our state", "cache", func(p *Profile, w *Place) { w.CacheDir = w.StateDir + "/cache" }},
		{"a repository in a secret", "repository", func(p *Profile, w *Place) { w.GitDirs = []string{"/h/u/.aws/.git"} }},
		{"a grant of our state", "grant", func(p *Profile, w *Place) { p.Read = []string{"~/.local/state/sandbox-exec/grants"} }},
		{"a grant of our configuration", "grant", func(p *Profile, w *Place) { p.Write = []string{"~/.config/sandbox-exec"} }},
		{"a grant of the limits", "grant", func(p *Profile, w *Place) { p.Write = []string{"/sys/fs/cgroup"} }},
		{"an unknown protected name", "unprotect", func(p *Profile, w *Place) { p.Unprotect = []string{".vscod"} }},
		{"a session without a directory", "tmp", func(p *Profile, w *Place) { w.TmpDir = "" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, place := load(t, "workspace"), fakePlace()
			test.change(p, &place)
			wantSpecError(t, p, place, test.field)
		})
	}
	for _, bad := range []string{"", "relative", "/h/u/work/", "/h/u/../u/work", "."} {
		place := fakePlace()
		place.Workspace, place.Cwd = bad, "/h/u"
		if _, err := load(t, "workspace").Spec(place); err == nil {
			t.Errorf("workspace %q was taken", bad)
		}
		place = fakePlace()
		place.Home = bad
		if _, err := load(t, "workspace").Spec(place); err == nil {
			t.Errorf("home %q was taken", bad)
		}
	}
}

func TestProtectedFollowsWhatGitIs(t *testing.T) {
	for _, test := range []struct {
		name      string
		prepare   func(ws string) error
		has, lack []string
	}{
		{
			"no repository", func(ws string) error { return nil },
			[]string{".git", ".git/hooks", ".git/commondir", ".envrc", "Makefile"}, // one may appear
			nil,
		},
		{
			"a repository", func(ws string) error { return os.Mkdir(ws+"/.git", 0o755) },
			[]string{".git/hooks", ".git/config"},
			[]string{".git"},
		},
		{
			"a repository with others in it", func(ws string) error {
				return errors.Join(os.MkdirAll(ws+"/.git/modules/sub", 0o755), os.MkdirAll(ws+"/.git/worktrees/wt", 0o755))
			},
			[]string{".git/modules/sub/config", ".git/modules/sub/hooks", ".git/worktrees/wt/commondir"},
			[]string{".git/modules/absent/config"},
		},
		{
			"a pointer", func(ws string) error { return os.WriteFile(ws+"/.git", []byte("gitdir: x\n"), 0o644) },
			[]string{".git", ".envrc"},
			[]string{".git/hooks"},
		},
		{
			"a link", func(ws string) error { return os.Symlink("real", ws+"/.git") },
			[]string{".git", ".git/hooks"},
			nil,
		},
		{
			"a repository below", func(ws string) error { return os.MkdirAll(ws+"/a/.git", 0o755) },
			[]string{"a/.git/hooks", "a/b/.git", "a/b/.git/hooks", "a/b/.envrc", "a/.vscode"},
			[]string{"a/.git"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			ws := t.TempDir()
			if err := os.MkdirAll(ws+"/a/b", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := test.prepare(ws); err != nil {
				t.Fatal(err)
			}
			place := fakePlace()
			place.Workspace, place.Cwd = ws, ws+"/a/b"
			spec, err := load(t, "workspace").Spec(place)
			if err != nil {
				t.Fatal(err)
			}
			has := func(name string) bool {
				return slices.ContainsFunc(spec.Protect, func(n sandbox.Name) bool { return n.Path == ws+"/"+name })
			}
			for _, name := range test.has {
				if !has(name) {
					t.Errorf("%s is not protected", name)
				}
			}
			for _, name := range test.lack {
				if has(name) {
					t.Errorf("%s is protected", name)
				}
			}
		})
	}
}

// The judge is told of the same places that the sandbox opens.
func TestScopeAgreesWithSpec(t *testing.T) {
	for _, name := range Names() {
		p, place := load(t, name), fakePlace()
		p.Write = []string{"/srv/out"}
		spec, err := p.Spec(place)
		if err != nil {
			t.Fatal(err)
		}
		scope := p.Scope(place)
		for _, r := range spec.Files {
			list := scope.Read
			switch r.Access {
			case sandbox.None:
				list = scope.Hidden
			case sandbox.ReadWrite:
				list = scope.Write
			}
			if !slices.Contains(list, r.Path) {
				t.Errorf("%s: the judge does not know that %s is %v", name, r.Path, r.Access)
			}
		}
		for _, n := range spec.Protect {
			if got := slices.Contains(scope.Protected, n.Path); got != (n.Guard == sandbox.Block) {
				t.Errorf("%s: %s, guard %v: a write asks: %v", name, n.Path, n.Guard, got)
			}
		}
		if scope.Cwd != place.Workspace || scope.Workspace != place.Workspace || scope.Home != place.Home {
			t.Errorf("%s: scope is of another place: %+v", name, scope)
		}
		if got := slices.Contains(scope.Write, place.Workspace); got != (p.Workspace == sandbox.ReadWrite) {
			t.Errorf("%s: the judge takes the workspace as writable: %v", name, got)
		}
	}
}

// A name that the sandbox leaves open is no question either.
func TestScopeOfUnprotectedNames(t *testing.T) {
	p, place := load(t, "workspace"), fakePlace()
	p.Unprotect = []string{".vscode"}
	scope := p.Scope(place)
	for script, want := range map[string]policy.Verdict{
		"echo x > .vscode/settings.json": policy.Allow,
		"echo x > .mise.toml":            policy.Ask,
		"echo x > .direnv/a":             policy.Ask,
		"echo x > .githooks/pre-commit":  policy.Ask,
		"echo x > .git/hooks/pre-commit": policy.Ask,
	} {
		if d := p.Policy().Decide(script, scope); d.Verdict != want {
			t.Errorf("%q: %v, want %v", script, d.Verdict, want)
		}
	}
}

func TestMemoryShareOfThisMachine(t *testing.T) {
	place := fakePlace()
	place.Memory = 0
	spec, err := load(t, "workspace").Spec(place)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Limits.Memory < 64<<20 || spec.Limits.Memory > 1<<50 {
		t.Errorf("half of the memory is %d bytes", spec.Limits.Memory)
	}
}

func TestProtectedName(t *testing.T) {
	p := &Profile{Protect: []string{"generated"}}
	for _, tt := range []struct{ file, want string }{
		{".git/hooks/pre-commit", ".git/hooks"},
		{".git/config", ".git/config"},
		{"sub/.git/hooks", ".git/hooks"},
		{".vscode/settings.json", ".vscode"},
		{"a/.envrc", ".envrc"},
		{"generated/api.go", "generated"},
		{"a/generated", ""},
		{"hooks/x", ""},
		{".vscodes", ""},
		{"main.go", ""},
	} {
		if got := p.ProtectedName(tt.file); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.file, got, tt.want)
		}
	}
}

// What belongs to the system is no workspace, but may be looked at.
func TestSystemDirectories(t *testing.T) {
	for _, tt := range []struct {
		workspace string
		refused   bool
	}{
		{"/etc", true},
		{"/etc/cron.d", true},
		{"/usr", true},
		{"/usr/lib/go", true},
		{"/usr/src/linux", false},
		{"/home", true},
		{"/var", true},
		{"/var/tmp/x", false},
		{"/var/lib/jenkins/workspace", false},
		{"/opt/project", false},
		{"/run/media/u/disk", false},
		{"/proc/1", true},
		{"/srv/git", false},
	} {
		place := Place{OS: "linux", Workspace: tt.workspace, Home: "/root", Memory: 1 << 30, TmpDir: "/root/tmp"}
		var bad *sandbox.SpecError
		_, err := (&Profile{Workspace: sandbox.ReadWrite}).Spec(place)
		if got := errors.As(err, &bad); got != tt.refused || got && (bad.Field != "workspace" || bad.Hint == "") {
			t.Errorf("%s: %v, want refused %v", tt.workspace, err, tt.refused)
		}
		if _, err := (&Profile{Workspace: sandbox.ReadOnly}).Spec(place); err != nil {
			t.Errorf("%s: read-only: %v", tt.workspace, err)
		}
	}
}
