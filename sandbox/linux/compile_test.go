//go:build linux

package linux

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/linux/internal/helper"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files")

// fakeHost is a machine on which the paths of fakeSpec are there.
func fakeHost() *host {
	h := &host{
		identity: identity{uid: 1000, gid: 1000}, abi: 7, mountSetattr: true,
		files: map[string]file{}, kinds: map[string]kind{},
		aliases:   map[string][]string{"/home/u/.ssh": {"/mnt/home/u/.ssh"}},
		devices:   []string{"null", "tty"},
		sockets:   []string{"/run/docker.sock", "/tmp/x.sock", "/run/agent.sock"},
		filter:    make([]byte, 8*3),
		lacks:     []string{"memory", "pids"},
		canaryDir: "/tmp",
		mounts: []mount{
			{dev: "8:1", root: "/", point: "/"},
			{dev: "0:5", root: "/", point: "/sys", flags: unix.MS_NOSUID | unix.MS_NODEV},
			{dev: "0:6", root: "/", point: "/proc"},
		},
	}
	for p, k := range map[string]kind{
		"/": directory, "/tmp": directory, "/state/tmp": directory, "/mnt/home/u/.ssh": directory,
		"/home/u/ws": directory, "/home/u/.ssh": directory, "/home/u/.netrc": regular, "/home/u/.aws": absent,
		"/home/u/ws/.git/hooks": directory, "/home/u/ws/.git/config": regular, "/home/u/ws/.vscode": absent,
		"/home/u/ws/.env": regular, "/dev/null": other, "/dev/tty": other, "/home/u/cache": directory,
	} {
		h.files[p], h.kinds[p] = file{path: p, kind: k}, k
	}
	for _, s := range h.sockets {
		h.files[s], h.kinds[s] = file{path: s, kind: other}, other
	}
	return h
}

func fakeSpec() sandbox.Spec {
	return sandbox.Spec{
		Workspace: "/home/u/ws", Home: "/home/u",
		Limits: sandbox.Limits{Memory: 1 << 30, PIDs: 100},
		Files: []sandbox.FileRule{
			{Path: "/", Access: sandbox.ReadOnly},
			{Path: "/home/u/ws", Access: sandbox.ReadWrite},
			{Path: "/home/u/cache", Access: sandbox.ReadWrite},
			{Path: "/home/u/.ssh", Sort: sandbox.Secret},
			{Path: "/home/u/.netrc", Sort: sandbox.Secret},
			{Path: "/home/u/.aws", Sort: sandbox.Secret},
		},
		Protect: []sandbox.Name{
			{Path: "/home/u/ws/.git/hooks"}, {Path: "/home/u/ws/.git/config"}, {Path: "/home/u/ws/.vscode"},
		},
		Sockets: []string{"/run/agent.sock"},
	}
}

// TestGolden compares what would be done on several machines with what was
// reviewed. Run with -update after a change that is meant, and read the diff.
func TestGolden(t *testing.T) {
	run := target{path: "/bin/sh", argv: []string{"sh"}, env: []string{"A=1"}, dir: "/home/u/ws", keep: []bool{true, false}}
	for name, c := range map[string]struct {
		host func(*host)
		spec func(*sandbox.Spec)
	}{
		"user": {},
		"root": {host: func(h *host) {
			h.uid, h.gid, h.admin, h.cgroupTasks = 0, 0, true, 2
			h.gidMap = []syscall.SysProcIDMap{{Size: 65536}}
		}},
		"linux-5.10":   {host: func(h *host) { h.abi, h.mountSetattr = 0, false }},
		"linux-7.3":    {host: func(h *host) { h.abi, h.cgroupInto, h.lacks = 11, true, nil }},
		"host-network": {spec: func(s *sandbox.Spec) { s.Network = sandbox.NetworkHost }},
		"allow-list": {spec: func(s *sandbox.Spec) {
			s.Network = sandbox.NetworkAllow
			s.Hosts = sandbox.Hosts{
				Ports:     []uint16{80, 443},
				Addresses: []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("2001:db8::1")},
			}
		}, host: func(h *host) {
			h.files["/etc/resolv.conf"] = file{path: "/run/resolv.conf", kind: regular}
			h.nameFiles = []nameFile{{"/run/resolv.conf", []byte("nameserver x\n")}, {"/etc/hosts", []byte("127.0.0.1 localhost\n")}}
		}},
		"session-tmp": {spec: func(s *sandbox.Spec) { s.Tmp = "/state/tmp" }},
		"hidden-home": {spec: func(s *sandbox.Spec) {
			s.Files = append(s.Files, sandbox.FileRule{Path: "/home/u", Access: sandbox.None}, sandbox.FileRule{Path: "/home/u/ws/.env", Sort: sandbox.Secret})
		}, host: func(h *host) {
			h.files["/home/u"], h.kinds["/home/u"] = file{path: "/home/u", kind: directory}, directory
		}},
		"landlock": {host: func(h *host) {
			h.tier = landlockAlone
			h.grants = []grant{{path: "/usr", rights: rightsRead}, {path: "/home/u/ws", rights: rightsWrite}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := fakeHost(), fakeSpec()
			if c.host != nil {
				c.host(h)
			}
			if c.spec != nil {
				c.spec(&s)
			}
			set, err := compile(s, h, run)
			if err != nil {
				t.Fatal(err)
			}
			again, err := compile(s, h, run)
			if err != nil || set.String() != again.String() {
				t.Fatalf("the same input gave another setup, %v", err)
			}
			golden := filepath.Join("testdata", "setup", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(set.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got := set.String(); got != string(want) {
				t.Errorf("differs from %s:\n%s", golden, got)
			}
			checkBlock(t, set)
		})
	}
}

// checkBlock reads the encoded block as the helper does.
func checkBlock(t *testing.T, s *setup) {
	t.Helper()
	b := s.encode()
	h := (*helper.Header)(unsafe.Pointer(&b[0]))
	if h.Magic != helper.Magic || h.Size != uint64(len(b)) || h.Init != uint64(len(s.init)) || h.Target != uint64(len(s.target)) {
		t.Fatalf("header %+v", h)
	}
	inside := func(off uint64) bool { return off >= headerSize && off < h.Steps }
	for i := range h.Init + h.Target {
		st := (*helper.Step)(unsafe.Pointer(&b[h.Steps+i*stepSize]))
		for j, a := range s.at(int(i)).args {
			switch {
			case a.kind == isAddress && !inside(st.Args[j]-helper.Base), a.kind == isCell && !inside(st.Args[j]):
				t.Errorf("step %d (%s): argument %d is outside of the data", i, s.at(int(i)).what, j)
			}
		}
		if st.Dst != 0 && (!inside(st.Dst) || st.Dst%4 != 0 || !inside(st.Dst+7)) {
			t.Errorf("step %d (%s): the result goes outside of the data", i, s.at(int(i)).what)
		}
		if left := h.Init + h.Target - i - 1; st.Skip > int64(left) {
			t.Errorf("step %d (%s): skips past the end", i, s.at(int(i)).what)
		}
	}
}

// TestRights holds our tables against go-landlock's.
func TestRights(t *testing.T) {
	for abi, c := range map[int]landlock.Config{
		1: landlock.V1, 2: landlock.V2, 3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6,
		7: landlock.V7, 8: landlock.V8, 9: landlock.V9, 10: landlock.V10, 11: landlock.V11,
	} {
		if got := handledFS(abi); got != uint64(c.HandledAccessFS) {
			t.Errorf("ABI %d: file rights %#x, want %#x", abi, got, uint64(c.HandledAccessFS))
		}
		if got := handledNet(abi); got != uint64(c.HandledAccessNet) {
			t.Errorf("ABI %d: net rights %#x, want %#x", abi, got, uint64(c.HandledAccessNet))
		}
	}
	if rightsWrite&handledFS(11)&^uint64(landlock.V11.HandledAccessFS) != 0 {
		t.Error("a right that no ABI has")
	}
}

// TestClosedList: only these errors of these steps lead to the weaker tier.
func TestClosedList(t *testing.T) {
	s, err := compile(fakeSpec(), fakeHost(), target{path: "/bin/sh", dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"loopback up": true, "make / private": true, "mount proc on /proc": true}
	touched := false
	for _, st := range append(s.init, s.target...) {
		if strings.Contains(st.what, "/home/") {
			touched = true
		}
		if len(st.absent) == 0 {
			continue
		}
		if !want[st.what] {
			t.Errorf("%s leads to the weaker tier", st.what)
		}
		if touched {
			t.Errorf("%s comes after a path of the workspace was touched", st.what)
		}
		delete(want, st.what)
		for _, e := range st.absent {
			switch e {
			case unix.EPERM, unix.EACCES, unix.ENOSYS:
			default:
				t.Errorf("%s: %v leads to the weaker tier", st.what, e)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
	for _, e := range []unix.Errno{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.EUSERS} {
		if namespacesRefused(e) {
			t.Errorf("%v from clone leads to the weaker tier", e)
		}
	}
}

func TestReadMounts(t *testing.T) {
	for in, want := range map[string]string{`/a\040b`: "/a b", `/a\134b`: `/a\b`, `/a\`: `/a\`, `/a\9`: `/a\9`, "/": "/"} {
		if got := unescape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	m, err := readMounts()
	if err != nil || len(m) == 0 {
		t.Fatalf("%d mounts, %v", len(m), err)
	}
}

func FuzzUnescape(f *testing.F) {
	f.Add(`/a\040b\134`)
	f.Fuzz(func(t *testing.T, s string) { unescape(s) })
}

// TestEnumerate grants, for Landlock alone, what AccessOf allows, and nothing
// of what it hides.
func TestEnumerate(t *testing.T) {
	root := t.TempDir()
	for _, p := range []string{"a/x", "a/y", "a/z/1", "b", "c/d/e", "c/d/f"} {
		os.MkdirAll(filepath.Join(root, filepath.Dir(p)), 0o755)
		os.WriteFile(filepath.Join(root, p), nil, 0o644)
	}
	os.Symlink("a", root+"/link")
	list := func(dir string) ([]os.DirEntry, error) { return os.ReadDir(root + dir) }
	rules := sandbox.Effective([]sandbox.FileRule{
		{Path: "/", Access: sandbox.ReadOnly},
		{Path: "/a/y"},
		{Path: "/c/d"},
		{Path: "/c/d/f", Access: sandbox.ReadOnly},
		{Path: "/a/z", Access: sandbox.ReadWrite},
	})
	granted := func(p string, right uint64) bool {
		for _, g := range enumerate(rules, list) {
			if sandbox.Covers(g.path, p) && g.rights&right != 0 {
				return true
			}
		}
		return false
	}
	for _, p := range []string{"/a/x", "/a/y", "/a/z/1", "/b", "/c/d/e", "/c/d/f"} {
		a := sandbox.AccessOf(rules, p)
		if got, want := granted(p, unix.LANDLOCK_ACCESS_FS_READ_FILE), a >= sandbox.ReadOnly; got != want {
			t.Errorf("%s: read %v, want %v", p, got, want)
		}
		if got, want := granted(p, unix.LANDLOCK_ACCESS_FS_WRITE_FILE), a == sandbox.ReadWrite; got != want {
			t.Errorf("%s: write %v, want %v", p, got, want)
		}
	}
}

// TestLook finds what is there, in directories long and short, and nothing else.
func TestLook(t *testing.T) {
	for _, entries := range []int{3, 3000} {
		home, err := os.MkdirTemp("/var/tmp", "sandbox-exec-test-*")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(home)
		for i := range entries {
			os.WriteFile(filepath.Join(home, "entry-with-a-long-name-"+strconv.Itoa(i)), nil, 0o600)
		}
		os.Mkdir(home+"/.ssh", 0o700)
		os.Symlink(".ssh", home+"/.link")
		os.Symlink("nowhere", home+"/.dangling")
		os.MkdirAll(home+"/real/deep", 0o700)
		os.WriteFile(home+"/real/deep/id", nil, 0o600)
		os.Symlink("real", home+"/.way")
		spec := sandbox.Spec{}
		for _, name := range []string{".ssh", ".link", ".dangling", ".absent/deep", ".way/deep/id", "entry-with-a-long-name-2/x"} {
			spec.Files = append(spec.Files, sandbox.FileRule{Path: home + "/" + name})
		}
		for i := range 2 * manyNames {
			spec.Files = append(spec.Files, sandbox.FileRule{Path: home + "/.secret" + strconv.Itoa(i)})
		}
		h, err := survey(spec, identity{}, userNamespace)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]file{
			"/.ssh": {path: home + "/.ssh", kind: directory}, "/.link": {path: home + "/.ssh", kind: directory},
			"/.way/deep/id": {path: home + "/real/deep/id", kind: regular},
			"/.dangling":    {}, "/.absent/deep": {}, "/.secret1": {}, "/entry-with-a-long-name-2/x": {},
		} {
			if got := h.files[home+path]; got != want {
				t.Errorf("%d entries, %s: %+v, want %+v", entries, path, got, want)
			}
		}
	}
}

// BenchmarkSurvey looks at a host with a long list of secrets, most of them
// absent, as they are.
func BenchmarkSurvey(b *testing.B) {
	home := b.TempDir()
	os.MkdirAll(home+"/.config", 0o755)
	spec := sandbox.Spec{Files: []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}}}
	for i := range 200 {
		for _, dir := range []string{home, home + "/.config", home + "/.absent"} {
			spec.Files = append(spec.Files, sandbox.FileRule{Path: filepath.Join(dir, ".secret"+strconv.Itoa(i))})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := survey(spec, identity{}, userNamespace); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	h, s := fakeHost(), fakeSpec()
	b.ReportAllocs()
	for b.Loop() {
		set, err := compile(s, h, target{path: "/bin/sh", argv: []string{"sh"}, dir: "/home/u/ws"})
		if err != nil {
			b.Fatal(err)
		}
		set.encode()
	}
}

func TestTmpSize(t *testing.T) {
	for _, c := range []struct {
		memory, tmp int64
		lacks       []string
		want        string
	}{
		{0, 0, nil, ""},
		{1 << 30, 0, nil, ""}, // the cgroup counts it
		{1 << 30, 1 << 20, nil, ",size=1048576"},
		{1 << 30, 0, []string{"memory"}, ",size=1073741824"},
		{1 << 30, 1 << 20, []string{"memory"}, ",size=1048576"},
		{1 << 20, 1 << 30, []string{"pids", "memory"}, ",size=1048576"},
		{sandbox.Unlimited, sandbox.Unlimited, []string{"memory"}, ""},
	} {
		if got := (&host{lacks: c.lacks}).tmpSize(sandbox.Limits{Memory: c.memory}, c.tmp); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
