package profiles

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// toolHome is a place in a home with files.
func toolHome(t *testing.T, files map[string]string) Place {
	t.Helper()
	home := t.TempDir()
	place := Place{Home: home, Workspace: home + "/ws"}
	for name, text := range files {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return place
}

// TestBuiltinHosts: what a command could write in the workspace says nothing about
// the hosts of a built-in profile.
func TestBuiltinHosts(t *testing.T) {
	place := toolHome(t, map[string]string{"ws/.git/config": "[remote \"o\"]\n\turl = https://planted.example/x\n"})
	for _, name := range Names() {
		p, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts, err := p.hosts(&place)
		if err != nil {
			t.Fatal(err)
		}
		if allow, rule := hosts.Judge("planted.example", 443); allow {
			t.Errorf("%s: a remote of the workspace's repository is reached, by %s", name, rule)
		}
	}
}

func TestHostSet(t *testing.T) {
	place := toolHome(t, map[string]string{
		".npmrc": "; https://comment.example\nregistry=https://npm.example/path/\n@corp:registry = http://scoped.example:4873\n" +
			"//other.example/:_authToken=x\nhomepage=https://no.example/\nregistry=https://${HOST}/\n",
		".config/pip/pip.conf": "[global]\nindex-url = https://user:secret@pip.example/simple\nextra-index-url =\n  https://one.example/simple\n  https://two.example/simple\n" +
			"proxy = https://no.example\n",
		".cargo/config.toml":  "[source.mirror]\nregistry = \"sparse+https://crates.example/index/\"\n[registries.own]\nindex = \"git+ssh://git@crates2.example/x\"\n[http]\nproxy = \"https://no.example\"\n",
		".config/go/env":      "GOPROXY=https://go1.example|https://go2.example,direct\nGOSUMDB=sum.example+abc https://sum2.example/x\nGOFLAGS=https://no.example\n",
		"ws/.git/config":      "[remote \"origin\"]\n\turl = git@forge.example:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[remote \"two\"]\n\turl = https://forge2.example/x\n\tpushurl = ssh://git@forge3.example:2222/x\n[remote \"disk\"]\n\turl = /srv/x\n\turl = ../y:z\n",
		".gitconfig":          "[url \"https://mirror.example/\"]\n\tinsteadOf = https://no.example/\n",
		"ws/.npmrc":           "registry=https://no.example/\n",
		"ws/pip.conf":         "[global]\nindex-url = https://no.example/\n",
		"elsewhere/go/go.env": "GOPROXY=https://goroot.example\n",
	})
	place.Environ = []string{
		"npm_config_registry=https://env.example:8443/", "PIP_CONFIG_FILE=" + place.Workspace + "/pip.conf",
		"CARGO_REGISTRIES_CORP_INDEX=sparse+https://corp.example/", "CARGO_REGISTRIES_CORP_TOKEN=https://no.example/",
		"GOROOT=" + place.Home + "/elsewhere/go", "GOPROXY=off",
	}
	for set, want := range map[string]string{
		"npm":   "npm.example:443 scoped.example:4873 env.example:8443",
		"pip":   "pip.example:443 one.example:443 two.example:443",
		"cargo": "crates.example:443 crates2.example:22 corp.example:443",
		"git":   "forge.example:22 forge2.example:443 forge3.example:2222 mirror.example:443",
	} {
		if got := strings.Join(place.hostSet(set), " "); got != want {
			t.Errorf("@%s: got %s, want %s", set, got, want)
		}
	}
	// The machine's own toolchain may add to these.
	if got := strings.Join(place.hostSet("go"), " "); !strings.HasPrefix(got, "go1.example:443 go2.example:443 sum.example:443 sum2.example:443 goroot.example:443") {
		t.Errorf("@go: %s", got)
	}
}

// A workspace that is the home, or a link into it, says nothing.
func TestHostSetIsNotTheWorkspaces(t *testing.T) {
	place := toolHome(t, map[string]string{"ws/x": "registry=https://no.example/\n"})
	if err := os.Symlink("ws/x", place.Home+"/.npmrc"); err != nil {
		t.Fatal(err)
	}
	if got := place.hostSet("npm"); len(got) > 0 {
		t.Errorf("by a link: %s", got)
	}
	place = toolHome(t, map[string]string{".npmrc": "registry=https://no.example/\n"})
	place.Workspace = place.Home
	if got := place.hostSet("npm"); len(got) > 0 {
		t.Errorf("in the workspace: %s", got)
	}
}

func TestHostsIn(t *testing.T) {
	for _, c := range []struct {
		text string
		bare bool
		want string
	}{
		{"deb [signed-by=/usr/share/x.gpg arch=amd64] http://deb.example/debian stable main", false, "deb.example:80"},
		{"deb https://a.example/ x https://b.example:8/", false, "a.example:443 b.example:8"},
		{"cdrom:[Debian]/ x", false, ""},
		{"ftp://a.example/", false, ""},
		{"file:///srv", false, ""},
		{"HTTPS://A.Example", false, "a.example:443"},
		{"https://user:p@ss@a.example/", false, "a.example:443"},
		{"https://evil.example#.good.example/", false, ""},
		{"https://a.example\x00.good.example/", false, ""},
		{"me@a.example:x/y", false, "a.example:22"},
		{"./me@a.example:x", false, ""},
		{"sum.example", false, ""},
		{"sum.example", true, "sum.example:443"},
		{"off", true, ""},
	} {
		if got := strings.Join(hostsIn(c.text, c.bare), " "); got != c.want {
			t.Errorf("%q: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestHostsJudge(t *testing.T) {
	place := toolHome(t, map[string]string{".npmrc": "registry=https://npm.example:4873/"})
	p := &Profile{
		AllowHosts: []string{"good.example", "*.wide.example", "ssh.example:22", "10.1.2.3:5432", "[2001:db8::1]", "@npm"},
		DenyHosts:  []string{"bad.wide.example", "*.deep.wide.example:443"},
		Rules: []policy.Rule{
			{Action: policy.NetworkTo, Verdict: policy.Deny, Pattern: "told.wide.example", Source: "mine.toml:3"},
			{Action: policy.NetworkTo, Verdict: policy.Allow, Pattern: "asked.example"},
		},
	}
	hosts, err := p.hosts(&place)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host string
		port uint16
		want string
	}{
		{"good.example", 443, "true good.example"},
		{"good.example", 80, "true good.example"},
		{"good.example", 22, "false "},
		{"x.good.example", 443, "false "},
		{"a.wide.example", 443, "true *.wide.example"},
		{"wide.example", 443, "false "},
		{"bad.wide.example", 443, "false bad.wide.example"},
		{"x.deep.wide.example", 443, "false *.deep.wide.example:443"},
		{"x.deep.wide.example", 80, "true *.wide.example"},
		{"told.wide.example", 80, "false mine.toml:3"},
		{"asked.example", 443, "false "}, // a rule that answers a question opens nothing
		{"ssh.example", 22, "true ssh.example:22"},
		{"ssh.example", 443, "false "},
		{"10.1.2.3", 5432, "true 10.1.2.3:5432"},
		{"10.1.2.3", 80, "false "},
		{"2001:db8::1", 443, "true [2001:db8::1]"},
		{"npm.example", 4873, "true @npm: npm.example:4873"},
		{"npm.example", 443, "false "},
		{"evil\x00.wide.example", 443, "false "},
	} {
		allow, rule := hosts.Judge(c.host, c.port)
		if got := fmt.Sprint(allow, " ", rule); got != c.want {
			t.Errorf("%q:%d: got %s, want %s", c.host, c.port, got, c.want)
		}
	}
	if got := fmt.Sprint(hosts.Ports, hosts.Addresses); got != "[22 80 443 4873 5432] [10.1.2.3 2001:db8::1]" {
		t.Error(got)
	}
}

func TestCheckHost(t *testing.T) {
	for _, c := range []struct {
		entry       string
		allow, deny bool
	}{
		{"x.example", true, true},
		{"*", true, true},
		{"*:8080", true, true},
		{"@npm", true, true},
		{"@nothing", false, false},
		{"x.example:*", false, true},
		{"localhost", false, true},
		{"app.localhost:80", false, true},
		{"127.0.0.1", false, true},
		{"[::1]", false, true},
		{"0.0.0.0", false, true},
		{"169.254.169.254", false, true},
		{"224.0.0.1", false, true},
		{"2130706433", false, false},
		{"", false, false},
		{"a b", false, false},
	} {
		if got := CheckHost(c.entry, true) == nil; got != c.allow {
			t.Errorf("allow %q: %v", c.entry, CheckHost(c.entry, true))
		}
		if got := CheckHost(c.entry, false) == nil; got != c.deny {
			t.Errorf("deny %q: %v", c.entry, CheckHost(c.entry, false))
		}
	}
}

// A project's file tightens: it denies hosts, and allows some only when trusted.
func TestProjectHosts(t *testing.T) {
	project, err := ParseProject("p.toml", []byte("network = \"allow\"\nallow-hosts = [\"a.example\"]\ndeny-hosts = [\"b.example\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		have    sandbox.Network
		trusted bool
		want    string
		left    string
	}{
		{sandbox.NetworkOff, false, "off [] [b.example]", `[network = "allow" allow-hosts a.example]`},
		{sandbox.NetworkHost, false, "allow [] [b.example]", "[allow-hosts a.example]"},
		{sandbox.NetworkOff, true, "allow [a.example] [b.example]", "[]"},
	} {
		p := &Profile{Network: c.have}
		left, err := project.Apply(p, c.trusted)
		if got := fmt.Sprint(p.Network, " ", p.AllowHosts, " ", p.DenyHosts); got != c.want || fmt.Sprint(left) != c.left || err != nil {
			t.Errorf("%v, trusted %v: %s, left out %s, %v", c.have, c.trusted, got, left, err)
		}
	}
}
