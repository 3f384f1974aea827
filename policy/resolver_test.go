package policy

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"
)

// fakeFS is a Resolver over links and files that a test lists.
type fakeFS struct {
	links map[string]string
	files map[string]string
}

func (f fakeFS) Resolve(p string) (string, error) {
	out := "/"
	for i, name := range strings.Split(p, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			out = path.Dir(out)
			continue
		}
		out = path.Join(out, name)
		if to, ok := f.links[out]; ok {
			if !path.IsAbs(to) {
				to = path.Join(path.Dir(out), to)
			}
			if i > 100 {
				return "", errors.New("too many links")
			}
			out = to
		}
	}
	return out, nil
}

func (f fakeFS) ReadFile(p string, max int) ([]byte, error) {
	p, err := f.Resolve(p)
	if err != nil {
		return nil, err
	}
	text, ok := f.files[p]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text[:min(len(text), max)]), nil
}

func TestLinks(t *testing.T) {
	s := corpusScope()
	s.Resolver = fakeFS{links: map[string]string{
		"/w/keys": "/home/dev/.ssh", "/w/out": "/etc", "/w/in": "src", "/w/hook": "/w/.git/hooks/pre-commit",
		"/w/top": "/", "/w/home": "/home", "/w/null": "/dev/null", "/w/disk": "/dev/sda",
	}}
	for _, tt := range []struct {
		mode Mode
		cmd  string
		want Verdict
	}{
		{ModeAsk, "cat a", Allow},
		{ModeAsk, "cat in/a", Allow},
		{ModeAsk, "cat keys/id_rsa", Ask},
		{ModeAsk, "cat < keys/id_rsa", Ask},
		{ModeAsk, "grep -r x keys", Ask},
		{ModeAsk, "cd keys && cat id_rsa", Ask},
		{ModeAsk, "cat in/../a", Allow},
		{ModeAsk, "cat keys/../.netrc", Ask}, // the kernel goes up from where the link leads
		{ModeAllow, "echo x > a", Allow},
		{ModeAllow, "echo x > in/a", Allow},
		{ModeAllow, "echo x > out/a", Ask},
		{ModeAllow, "echo x > hook", Ask},
		{ModeAllow, "echo x > null", Allow},
		{ModeAllow, "echo x > disk", Ask},
		{ModeAllow, "cp a out/b", Ask},
		{ModeAllow, "cat keys/id_rsa", Ask},
		{ModeAllow, "rm keys", Allow}, // removes the link
		{ModeAllow, "rm keys/id_rsa", Ask},
		{ModeAllow, "rm -rf top/*", Deny},
		{ModeAllow, "rm -rf home/dev", Deny},
		{ModeAllow, "cd top && rm -rf *", Deny},
		{ModeAllow, "rm -rf top/", Deny},
	} {
		p := &Policy{Mode: tt.mode}
		if d := p.Decide(tt.cmd, s); d.Verdict != tt.want {
			t.Errorf("mode %v: %q: %v, want %v: %v", tt.mode, tt.cmd, d.Verdict, tt.want, d.Err())
		}
	}
}

func TestRoots(t *testing.T) {
	s := corpusScope()
	s.Cwd = "/w/sub"
	s.Read = []string{"/"}
	s.Hidden = []string{"/home/dev/.ssh", "/w/sub/.env"}
	s.Write = []string{"/w", "/cache"}
	for _, tt := range []struct {
		mode Mode
		cmd  string
		want Verdict
	}{
		{ModeAsk, "cat /etc/passwd", Allow},
		{ModeAsk, "cat ~/notes", Allow},
		{ModeAsk, "cat ~/.ssh/id_rsa", Ask},
		{ModeAsk, "cat .env", Ask},
		{ModeAsk, "cat ../.env", Allow},
		{ModeAsk, "grep -r x ~", Ask}, // hidden files are below
		{ModeAsk, "rg x ~", Ask},
		{ModeAsk, "ls ~", Allow},
		{ModeAllow, "echo x > /cache/a", Allow},
		{ModeAllow, "echo x > /tmp/a", Ask}, // the scope names its writable roots
		{ModeAllow, "echo x > ../a", Allow},
		{ModeAllow, "echo x > ../../a", Ask},
	} {
		p := &Policy{Mode: tt.mode}
		if d := p.Decide(tt.cmd, s); d.Verdict != tt.want {
			t.Errorf("mode %v: %q: %v, want %v: %v", tt.mode, tt.cmd, d.Verdict, tt.want, d.Err())
		}
	}
	d := (&Policy{Mode: ModeAllow}).Decide("cat ~/.ssh/id_rsa > /etc/x", s)
	if len(d.Sandbox.Read) != 1 || d.Sandbox.Read[0] != "/home/dev/.ssh/id_rsa" || len(d.Sandbox.Write) != 1 || d.Sandbox.Write[0] != "/etc/x" {
		t.Errorf("asks the sandbox for %+v", d.Sandbox)
	}
}

func TestRepositoryConfig(t *testing.T) {
	const plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		cmd   string
		want  Verdict
	}{
		{"plain", map[string]string{"/w/.git/config": plain}, "git status", Allow},
		{"none", nil, "git status", Allow},
		{"overridden", map[string]string{"/w/.git/config": plain + "[core]\n\tfsmonitor = ./x\n\thooksPath = ./x\n"}, "git diff", Allow},
		{"external diff", map[string]string{"/w/.git/config": plain + "[diff]\n\texternal = ./x\n"}, "git diff", Ask},
		{"textconv", map[string]string{"/w/.git/config": plain + "[diff \"x\"]\n\ttextconv = ./x\n"}, "git diff", Ask},
		{"upper case", map[string]string{"/w/.git/config": "[DIFF \"x\"]\nTextConv=./x\n"}, "git log -p", Ask},
		{"one line", map[string]string{"/w/.git/config": "[diff \"x\"] command = ./x\n"}, "git diff", Ask},
		{"old form", map[string]string{"/w/.git/config": "[filter.x]\nclean = ./x\n"}, "git status", Ask},
		{"tab", map[string]string{"/w/.git/config": "[filter\t\"x\"]\nsmudge = ./x\n"}, "git status", Ask},
		{"quoted bracket", map[string]string{"/w/.git/config": "[filter \"a]b\"]\nprocess = ./x\n"}, "git status", Ask},
		{"comment that seems to continue", map[string]string{"/w/.git/config": "[a]\nb = c # \\\n[filter \"x\"]\nclean = ./x\n"}, "git status", Ask},
		{"byte order mark", map[string]string{"/w/.git/config": "\ufeff[filter \"x\"]\nclean = ./x\n"}, "git status", Ask},
		{"include", map[string]string{"/w/.git/config": "[include]\n\tpath = /x\n"}, "git status", Ask},
		{"conditional include", map[string]string{"/w/.git/config": "[includeIf \"gitdir:/\"]\n\tpath = /x\n"}, "git status", Ask},
		{"signatures", map[string]string{"/w/.git/config": "[gpg \"ssh\"]\n\tprogram = ./x\n"}, "git log", Ask},
		{"pretty", map[string]string{"/w/.git/config": "[pretty]\n\tx = %GG\n"}, "git log --pretty=x", Ask},
		{"work tree", map[string]string{"/w/.git/config": "[core]\n\tworktree = /\n"}, "git status", Ask},
		{"promisor", map[string]string{"/w/.git/config": "[remote \"o\"]\n\tpromisor = true\n"}, "git log -p", Ask},
		{"not closed", map[string]string{"/w/.git/config": "[core\n"}, "git status", Ask},
		{"worktree config", map[string]string{"/w/.git/config": plain, "/w/.git/config.worktree": "[filter \"x\"]\nclean = ./x\n"}, "git status", Ask},
		{"other repository", map[string]string{"/w/.git/config": plain, "/w/sub/.git/config": "[filter \"x\"]\nclean = ./x\n"}, "git status", Allow},
		{"cd", map[string]string{"/w/.git/config": plain, "/w/sub/.git/config": "[filter \"x\"]\nclean = ./x\n"}, "cd sub && git status", Ask},
		{"-C", map[string]string{"/w/.git/config": plain, "/w/sub/.git/config": "[filter \"x\"]\nclean = ./x\n"}, "git -C sub status", Ask},
		{"linked working tree", map[string]string{"/w/.git": "gitdir: /r/.git/worktrees/w\n", "/r/.git/worktrees/w/commondir": "../..\n", "/r/.git/config": plain}, "git status", Allow},
		{"linked working tree with a filter", map[string]string{"/w/.git": "gitdir: /r/.git/worktrees/w\n", "/r/.git/worktrees/w/commondir": "../..\n", "/r/.git/config": "[filter \"x\"]\nclean = ./x\n"}, "git status", Ask},
		{"bare", map[string]string{"/w/b/HEAD": "ref: x\n", "/w/b/config": "[filter \"x\"]\nclean = ./x\n"}, "cd b && git log", Ask},
		{"submodule", map[string]string{"/w/.git/config": plain, "/w/.gitmodules": "[submodule \"s\"]\n\tpath = s\n", "/w/s/.git": "gitdir: ../.git/modules/s\n", "/w/.git/modules/s/config": plain}, "git status", Allow},
		{"submodule with a monitor", map[string]string{"/w/.git/config": plain, "/w/.gitmodules": "[submodule \"s\"]\n\tpath = s\n", "/w/s/.git": "gitdir: ../.git/modules/s\n", "/w/.git/modules/s/config": "[core]\nfsmonitor = ./x\n"}, "git status", Ask},
		{"go list asks git", map[string]string{"/w/.git/config": "[filter \"x\"]\nclean = ./x\n"}, "go list ./...", Ask},
		{"tool chain", map[string]string{"/w/rust-toolchain.toml": "[toolchain]\npath = \"./x\"\n"}, "cargo --version", Ask},
		{"tool chain by channel", map[string]string{"/w/rust-toolchain.toml": "[toolchain]\nchannel = \"1.80\"\n"}, "cargo --version", Allow},
	} {
		s := corpusScope()
		s.Resolver = fakeFS{files: tt.files}
		d := (&Policy{}).Decide(tt.cmd, s)
		if d.Verdict != tt.want {
			t.Errorf("%s: %v, want %v: %v", tt.name, d.Verdict, tt.want, d.Err())
		}
		if strings.Contains(tt.cmd, "git") && d.Verdict == Allow && len(d.Sandbox.Env) == 0 {
			t.Errorf("%s: allowed without the overrides", tt.name)
		}
	}
}
