package profiles

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

func environ(p *Profile, place Place, parent ...string) (map[string]string, []string) {
	env, removed := p.Environ(parent, place)
	values := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	return values, removed
}

func TestEnviron(t *testing.T) {
	const gone = "\x00"
	for _, test := range []struct{ name, value, want string }{
		{"PATH", "/a:/b", "/a:/b"},
		{"LANG", "de_DE.UTF-8", "de_DE.UTF-8"},
		{"LC_ALL", "C", "C"},
		{"GOFLAGS", "-mod=mod", "-mod=mod"},
		{"GOPRIVATE", "*.corp", "*.corp"},
		{"CGO_CFLAGS", "-O2", "-O2"},
		{"CARGO_HOME", "/c", "/c"},
		{"CARGO_BUILD_JOBS", "4", "4"},
		{"CARGO_REGISTRY_TOKEN", "x", gone},
		{"CARGO_REGISTRIES_CORP_TOKEN", "x", gone},
		{"CARGO_REGISTRIES_CORP_INDEX", "sparse+https://i", "sparse+https://i"},
		{"CARGO_REGISTRIES_CORP_CREDENTIAL_PROVIDER", "x", gone},
		{"NIX_PATH", "p", "p"},
		{"NIX_CONFIG_SECRET", "x", gone},
		{"JAVA_HOME", "/j", "/j"},
		{"EMPTY", "", gone},
		{"TZ", "", ""},

		{"HOME", "/elsewhere", "/h/u"},
		{"TMPDIR", "/var/tmp/x", "/tmp"},
		{"PWD", "/elsewhere", "/h/u/work"},
		{"GOCACHE", "/h/u/.cache/go-build", "/h/u/.cache/sandbox-exec/0123/go-build"},
		{"GOCACHE", "/h/u/work/.cache", "/h/u/work/.cache"},
		{"GOCACHE", "/h/u/work/../.cache", "/h/u/.cache/sandbox-exec/0123/go-build"},
		{"GOCACHE", "off", "/h/u/.cache/sandbox-exec/0123/go-build"},
		{"GRADLE_RO_DEP_CACHE", "", "/h/u/.gradle/caches"},
		{"JULIA_DEPOT_PATH", "", "/h/u/.cache/sandbox-exec/0123/julia:"},

		{"GITHUB_TOKEN", "x", gone},
		{"AWS_SECRET_ACCESS_KEY", "x", gone},
		{"OPENAI_API_KEY", "x", gone},
		{"ACME_DEPLOY_PASSWORD", "x", gone},
		{"DATABASE_URL", "postgres://u:p@h/d", gone},
		{"SSH_AUTH_SOCK", "/s", gone},
		{"DOCKER_HOST", "unix:///run/docker.sock", gone},
		{"DBUS_SESSION_BUS_ADDRESS", "unix:path=/b", gone},
		{"XDG_RUNTIME_DIR", "/run/user/1", gone},
		{"DISPLAY", ":0", gone},
		{"LD_PRELOAD", "/x.so", gone},
		{"LD_LIBRARY_PATH", "/x", gone},
		{"DYLD_INSERT_LIBRARIES", "/x", gone},
		{"BASH_ENV", "/x", gone},
		{"ENV", "/x", gone},
		{"BASH_FUNC_ls%%", "() { x; }", gone},
		{"SHELLOPTS", "xtrace", gone},
		{"PROMPT_COMMAND", "x", gone},
		{"NODE_OPTIONS", "--require x", gone},
		{"GIT_DIR", "/g", gone},
		{"GIT_SSH_COMMAND", "x", gone},
		{"GIT_CONFIG_VALUE_0", "Authorization: x", "false"}, // of commit.gpgSign
		{"GIT_CONFIG_VALUE_2", "Authorization: x", gone},
		{"MAKEFLAGS", "--jobserver-auth=3,4", gone},

		{"HTTPS_PROXY", "http://proxy:3128", gone}, // it cannot be reached
		{"HTTPS_PROXY", "http://u:p@proxy:3128", gone},
		{"https_proxy", "http://token@proxy:3128", gone},
		{"GOPROXY", "https://a,https://u:p@b,direct", gone},
		{"GOPROXY", "https://a/@v,direct", "https://a/@v,direct"},
		{"PIP_INDEX_URL", "https://u:p@i/simple", gone},
		{"DEBUG", "git://git@host/x", "git://git@host/x"},
	} {
		values, removed := environ(load(t, "workspace"), fakePlace(), test.name+"="+test.value)
		got, ok := values[test.name]
		if !ok {
			got = gone
		}
		if got != test.want {
			t.Errorf("%s=%s: got %q, want %q", test.name, test.value, got, test.want)
		}
		if listed := slices.Contains(removed, test.name); listed != (test.want == gone) {
			t.Errorf("%s=%s: listed as left out: %v", test.name, test.value, listed)
		}
	}
}

func TestEnvironOddEntries(t *testing.T) {
	env, removed := load(t, "workspace").Environ([]string{"TZ=a", "=x", "novalue", "TZ=b", "Z_TOKEN=1", "A_TOKEN=2"}, fakePlace())
	if !slices.Contains(env, "TZ=b") || slices.Contains(env, "TZ=a") {
		t.Error("of two entries the last counts")
	}
	if !slices.IsSorted(env) || strings.Join(removed, " ") != "A_TOKEN Z_TOKEN" {
		t.Errorf("env %q, removed %q", env, removed)
	}
	for _, v := range env {
		if strings.HasPrefix(v, "=") || !strings.Contains(v, "=") {
			t.Errorf("entry %q", v)
		}
	}
	if values, _ := environ(load(t, "workspace"), fakePlace()); values["PATH"] != defaultPath {
		t.Errorf("PATH %q", values["PATH"])
	}
}

func TestEnvironOfTheProfile(t *testing.T) {
	p := load(t, "workspace")
	p.Pass = []string{"GITHUB_TOKEN", "ACME_*", "HTTPS_PROXY"}
	p.Set = map[string]string{"GOCACHE": "/mine", "NEW": "1", "LANG": "C"}
	values, removed := environ(p, fakePlace(), "GITHUB_TOKEN=t", "ACME_X=1", "ACME_TOKEN=2", "HTTPS_PROXY=http://u:p@h", "LANG=de")
	for name, want := range map[string]string{"GITHUB_TOKEN": "t", "ACME_X": "1", "HTTPS_PROXY": "http://u:p@h", "GOCACHE": "/mine", "NEW": "1", "LANG": "C"} {
		if values[name] != want {
			t.Errorf("%s=%q, want %q", name, values[name], want)
		}
	}
	if strings.Join(removed, " ") != "ACME_TOKEN" {
		t.Errorf("removed %q", removed)
	}
}

// Where the private cache cannot be kept or written to, caches go to /tmp.
func TestEnvironWithoutCache(t *testing.T) {
	place := fakePlace()
	if values, _ := environ(load(t, "readonly"), place); values["GOCACHE"] != "/tmp/cache/go-build" {
		t.Errorf("readonly: GOCACHE=%s", values["GOCACHE"])
	}
	place.CacheDir = ""
	if values, _ := environ(load(t, "workspace"), place); values["GOCACHE"] != "/tmp/cache/go-build" {
		t.Errorf("no cache: GOCACHE=%s", values["GOCACHE"])
	}
	place.OS = "darwin"
	if values, _ := environ(load(t, "workspace"), place); values["TMPDIR"] != place.TmpDir || values["TMPPREFIX"] != place.TmpDir+"/zsh" {
		t.Errorf("macOS: TMPDIR=%s TMPPREFIX=%s", values["TMPDIR"], values["TMPPREFIX"])
	}
}

// Every cache that is named lies where the Spec lets the command write, or is
// meant to be read only.
func TestCachesAreWritable(t *testing.T) {
	p, place := load(t, "workspace"), fakePlace()
	spec, err := p.Spec(place)
	if err != nil {
		t.Fatal(err)
	}
	values, _ := environ(p, place)
	for _, row := range cacheRows {
		want := sandbox.ReadWrite
		if strings.HasPrefix(row.Value, "{home}") {
			want = sandbox.ReadOnly
		}
		if got := sandbox.AccessOf(spec.Files, strings.TrimSuffix(values[row.Name], ":")); got != want {
			t.Errorf("%s=%s is %v, want %v", row.Name, values[row.Name], got, want)
		}
	}
}

func TestNonInteractive(t *testing.T) {
	in := []string{"TERM=xterm", "PAGER=less", "A=b"}
	out := (&Profile{}).NonInteractive(in)
	for _, want := range []string{"TERM=dumb", "PAGER=cat", "A=b", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "AWS_PAGER="} {
		if !slices.Contains(out, want) {
			t.Errorf("%s is missing in %q", want, out)
		}
	}
	if in[0] != "TERM=xterm" || len(in) != 3 {
		t.Errorf("the argument was changed: %q", in)
	}
	out = (&Profile{Pass: []string{"PAGER"}, Set: map[string]string{"TERM": "xterm"}}).NonInteractive(in)
	for _, want := range []string{"TERM=xterm", "PAGER=less"} {
		if !slices.Contains(out, want) {
			t.Errorf("%s, which the person set, is missing in %q", want, out)
		}
	}
}

func TestSecrets(t *testing.T) {
	parent := []string{
		"API_TOKEN=old-value", "API_TOKEN=s3cr3t-value", "SHORT_KEY=1234567", "DISPLAY=localhost:10.0",
		"DATABASE_URL=postgres://u:pass@db/x", "KEPT_SECRET=passed-on-purpose", "EMPTY_TOKEN=",
	}
	env, removed := (&Profile{Pass: []string{"KEPT_SECRET"}}).Environ(parent, Place{Workspace: "/w", Home: "/h"})
	if !slices.Contains(env, "KEPT_SECRET=passed-on-purpose") {
		t.Fatal("not passed")
	}
	got := Secrets(parent, removed)
	want := []Secret{{"API_TOKEN", "s3cr3t-value"}, {"DATABASE_URL", "postgres://u:pass@db/x"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Where the network is off nothing waits for it.
func TestEnvironOffline(t *testing.T) {
	for _, tt := range []struct {
		profile Profile
		want    string
	}{
		{Profile{}, "PIP_RETRIES=0"},
		{Profile{Network: sandbox.NetworkHost}, ""},
		{Profile{Set: map[string]string{"PIP_RETRIES": "2"}}, "PIP_RETRIES=2"},
	} {
		env, _ := tt.profile.Environ(nil, Place{Workspace: "/w", Home: "/h"})
		got := ""
		for _, v := range env {
			if strings.HasPrefix(v, "PIP_RETRIES=") {
				got = v
			}
		}
		if got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.profile, got, tt.want)
		}
	}
}
