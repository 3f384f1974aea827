//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/internal/rundir"
	"golang.org/x/sys/unix"
)

// TestBehaviour does what is forbidden and what is not, in both tiers. An empty
// want is success; "-" is not tried.
func TestBehaviour(t *testing.T) {
	for _, tier := range tiers(t) {
		testBehaviour(t, tier)
	}
}

// sinceABI says which ABI of Landlock refuses a probe without namespaces.
var sinceABI = map[string]int{"truncate": 3, "kill": 6}

func testBehaviour(t *testing.T, tier tier) {
	f := newFixture(t)
	f.outside(t)
	pid := strconv.Itoa(f.victim.Process.Pid)
	shm := "/dev/shm/sandbox-exec-probe-" + filepath.Base(f.home)
	t.Cleanup(func() { os.Remove(shm) })
	// Root finds a hidden directory empty and reads a hidden file as an empty
	// one, where others may not open them.
	below, hidden := "EACCES", "EACCES"
	if os.Geteuid() == 0 {
		below, hidden = "ENOENT", `content ""`
	}
	for _, c := range []struct {
		probe                []string
		namespaces, landlock string
	}{
		{[]string{"content", f.ws + "/f", "file"}, "", ""},
		{[]string{"write", f.ws + "/new"}, "", ""},
		{[]string{"mkdir", f.ws + "/newdir"}, "", ""},
		{[]string{"rename", f.ws + "/new", f.ws + "/newdir/new"}, "", ""},
		{[]string{"remove", f.ws + "/newdir/new"}, "", ""},
		{[]string{"link", f.ws + "/f", f.ws + "/f2"}, "", ""},
		{[]string{"fifo", f.ws + "/fifo"}, "", ""},
		{[]string{"content", f.home + "/plain", "plain"}, "", ""},
		{[]string{"list", f.home}, "", ""},
		{[]string{"list", "/"}, "", ""},
		{[]string{"write", "/tmp/sandbox-exec-probe"}, "", "EACCES"},
		{[]string{"write", shm}, "", ""},
		{[]string{"write", "/dev/null"}, "", ""},
		{[]string{"serve"}, "", "EPERM"},
		{[]string{"fds"}, "", ""},

		{[]string{"content", f.home + "/.ssh/id", "key"}, below, "EACCES"},
		{[]string{"content", f.home + "/.netrc", "secret"}, hidden, "EACCES"},
		{[]string{"link", f.home + "/.netrc", f.ws + "/l"}, "EXDEV", "EXDEV|EACCES"},
		{[]string{"write", f.home + "/new"}, "EROFS", "EACCES"},
		{[]string{"append", f.home + "/plain"}, "EROFS", "EACCES"},
		{[]string{"truncate", f.home + "/plain"}, "EROFS", "EACCES"},
		{[]string{"remove", f.home + "/plain"}, "EROFS", "EACCES"},
		{[]string{"rename", f.ws + "/f", f.home + "/f"}, "EXDEV", "EACCES"},
		{[]string{"link", f.home + "/plain", f.ws + "/p"}, "EXDEV", "EXDEV|EACCES"},
		{[]string{"fifo", f.home + "/fifo"}, "EROFS", "EACCES"},
		{[]string{"chmod", f.home + "/plain"}, "EROFS", "-"},
		{[]string{"utimes", f.home + "/plain"}, "EROFS", "-"},
		{[]string{"write", f.ws + "/.git/hooks/post-checkout"}, "EROFS", "-"},
		{[]string{"append", f.ws + "/.git/config"}, "EROFS", "-"},
		{[]string{"rename", f.ws + "/.git", f.ws + "/.git2"}, "EBUSY", "-"},
		{[]string{"rename", f.ws + "/.git/hooks", f.ws + "/.git/h2"}, "EBUSY", "-"},
		{[]string{"write", f.ws + "/.git/index.lock"}, "", ""},
		{[]string{"write", "/proc/self/oom_score_adj"}, "EROFS", "EACCES"},
		{[]string{"mknod", f.ws + "/node"}, "EACCES|EPERM", "EACCES|EPERM"},
		{[]string{"mount", f.ws + "/dir"}, "EPERM", "EPERM"},
		{[]string{"umount", f.home + "/.ssh"}, "EPERM", "EPERM"},
		{[]string{"userns"}, "EPERM", "EPERM"},
		{[]string{"dial", "tcp", f.tcp}, "ECONNREFUSED", "EPERM"},
		{[]string{"dial", "udp", f.udp}, "ECONNREFUSED", "EPERM"},
		{[]string{"dial", "unix", f.unix}, "ECONNREFUSED|EACCES", "EPERM|EACCES"},
		{[]string{"dial", "unix", f.abstract}, "ECONNREFUSED|EPERM", "EPERM"},
		{[]string{"kill", pid}, "ESRCH", "EPERM"},
		{[]string{"environ", pid}, "ENOENT", "EACCES"},
		{[]string{"environ", "1"}, "EACCES", "EACCES"},
		{[]string{"append", "/dev/ptmx"}, "", "EACCES"},
		{[]string{"read", "/dev/kmsg"}, "ENOENT", "EACCES"},
	} {
		want := c.namespaces
		if tier == hostProc && c.probe[0] == "environ" {
			want = "EACCES"
		}
		if !tier.mounts() {
			want = c.landlock
		}
		if want == "-" || !tier.mounts() && sinceABI[c.probe[0]] > landlockABI() {
			continue
		}
		if got := f.in(t, tier, c.probe...); !regexp.MustCompile("^(" + want + ")$").MatchString(got) {
			t.Errorf("%v, %v: %q, want %q", tier, c.probe, got, want)
		}
	}
	if b, err := os.ReadFile(f.home + "/plain"); err != nil || string(b) != "plain" {
		t.Errorf("outside: ~/plain is %q, %v", b, err)
	}
}

// TestInside reads what the kernel says of the program.
func TestInside(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		status := f.in(t, tier, "caps")
		want := map[string]string{
			"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
			"CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2", "SigBlk": "0000000000000000",
		}
		if tier.mounts() {
			want["CapBnd"] = "0000000000000000"
		}
		if os.Geteuid() == 0 {
			want["CapPrm"], want["CapEff"], want["CapBnd"] = "00000000000004fb", "00000000000004fb", "00000000000004fb"
		}
		for name, value := range want {
			if !regexp.MustCompile(`(?m)^` + name + `:\s+` + value + `$`).MatchString(status) {
				t.Errorf("%v: %s is not %s:\n%s", tier, name, value, status)
			}
		}
	}
}

// TestStatus keeps what the program says with its end.
func TestStatus(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		for _, code := range []int{0, 1, 125, 255} {
			if _, exit := f.exec(t, tier, nil, "/bin/sh", "-c", "exit "+strconv.Itoa(code)); exit.Status.ExitStatus() != code {
				t.Errorf("exit %d: %v", code, exit.Status)
			}
		}
		for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGKILL, unix.SIGINT, unix.SIGHUP} {
			_, exit := f.exec(t, tier, nil, "/bin/sh", "-c", "kill -"+strconv.Itoa(int(sig))+" $$")
			if !exit.Status.Signaled() || exit.Status.Signal() != sig {
				t.Errorf("signal %v: %v", sig, exit.Status)
			}
		}
	}
}

func TestExecErrors(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]error{
		f.ws + "/absent": os.ErrNotExist,
		f.ws + "/f":      os.ErrPermission,
		f.home + "/.ssh": os.ErrPermission,
	} {
		for _, tier := range tiers(t) {
			_, err := start(context.Background(), &exec.Cmd{Path: path, Args: []string{path}, Dir: f.ws, Env: []string{}}, f.spec, tier, nil)
			var ee *sandbox.ExecError
			if !errors.As(err, &ee) || !errors.Is(err, want) {
				t.Errorf("%v, %s: %v, want an ExecError with %v", tier, path, err, want)
			}
		}
	}
}

// TestTreeEnds starts processes that try to outlive the program.
func TestTreeEnds(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		beat := filepath.Join(f.ws, "beat")
		os.Remove(beat)
		f.exec(t, tier, nil, "/bin/sh", "-c",
			`trap '' TERM HUP; (setsid sh -c 'for i in $(seq 300); do echo >>beat; sleep 0.01; done' &) >/dev/null 2>&1 </dev/null; while ! test -s beat; do sleep 0.01; done`)
		size := func() int64 {
			st, err := os.Stat(beat)
			if err != nil {
				t.Fatal(err)
			}
			return st.Size()
		}
		before := size()
		time.Sleep(100 * time.Millisecond)
		if after := size(); after != before {
			t.Errorf("%v: a process outlived the program", tier)
		}
	}
}

// TestLeaderlessEnds: a process whose first thread has ended is ended, too.
func TestLeaderlessEnds(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		beat, done := filepath.Join(f.ws, "beat"), filepath.Join(f.ws, "done")
		os.Remove(beat)
		f.exec(t, tier, []string{probeEnv + "=leaderless\x01beat\x01" + beat + "\x01" + done}, "/bin/sh", "-c",
			`(setsid "$0" &) >/dev/null 2>&1 </dev/null; while ! test -s beat; do sleep 0.01; done`, filepath.Join(probeDir(), "probe"))
		if _, err := os.Stat(done); err == nil {
			t.Errorf("%v: it lived to its own end", tier)
		}
	}
}

// TestParentKilled kills the parent in a way that it cannot handle: nothing may
// be left.
func TestParentKilled(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		beat := filepath.Join(f.ws, "beat")
		os.Remove(beat)
		parent := exec.Command(filepath.Join(probeDir(), "probe"), "-test.run=^$")
		parent.Env = append(os.Environ(), probeEnv+"=parent\x01"+strconv.Itoa(int(tier))+"\x01"+f.ws+"\x01"+f.home)
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for {
			if st, err := os.Stat(beat); err == nil && st.Size() > 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the program did not start")
			}
			time.Sleep(5 * time.Millisecond)
		}
		parent.Process.Kill()
		parent.Wait()
		time.Sleep(200 * time.Millisecond)
		st, _ := os.Stat(beat)
		time.Sleep(150 * time.Millisecond)
		if st2, _ := os.Stat(beat); st2.Size() != st.Size() {
			t.Errorf("%s: the program outlived its parent", tier)
		}
	}
}

func init() {
	probes["parent"] = func(a []string) error {
		spec := sandbox.Spec{Workspace: a[1], Home: a[2], Files: []sandbox.FileRule{
			{Path: "/", Access: sandbox.ReadOnly}, {Path: a[1], Access: sandbox.ReadWrite},
		}, AllowMissing: []string{sandbox.LayerNamespaces, sandbox.LayerCgroup, sandbox.LayerLandlock}}
		n, _ := strconv.Atoi(a[0])
		p, err := start(context.Background(), &exec.Cmd{Path: "/bin/sh", Dir: a[1], Env: []string{"PATH=/bin:/usr/bin"}, Args: []string{
			"sh", "-c",
			`(setsid sh -c 'while sleep 0.01; do echo >>beat; done' &); for i in $(seq 100); do sleep 0.1; done`,
		}}, spec, tier(n), nil)
		if err != nil {
			return err
		}
		_, err = p.Wait()
		return err
	}
}

// TestTmpOfKilledRun: without mounts a killed run leaves its temporary
// directory, and the next one removes it.
func TestTmpOfKilledRun(t *testing.T) {
	left, err := rundir.Make("", tmpPrefix)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(left.Name(), "f"), nil, 0o600)
	live, err := rundir.Make("", tmpPrefix)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(live.Name())
	if _, err := os.Stat(left.Name()); err != nil {
		t.Errorf("one in use: %v", err)
	}
	left.Close() // as the kernel does for a killed process
	next, err := rundir.Make("", tmpPrefix)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(next.Name())
	if _, err := os.Stat(left.Name()); err == nil {
		t.Error("it was left behind")
	}
	if _, err := os.Stat(live.Name()); err != nil {
		t.Error("one in use was removed")
	}
	live.Close()
	next.Close()
}

func TestKill(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		p, err := start(context.Background(), &exec.Cmd{
			Path: "/bin/sh", Dir: f.ws, Env: []string{"PATH=/bin:/usr/bin"},
			Args: []string{"sh", "-c", "trap '' TERM; touch ready; sleep 30"},
		}, f.spec, tier, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if os.Remove(f.ws+"/ready") == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		p.SignalAll(unix.SIGTERM)
		p.Signal(unix.SIGTERM)
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		began := time.Now()
		exit, err := p.Wait()
		if err != nil || exit.Lost || exit.Status.Signal() != unix.SIGKILL {
			t.Errorf("%v: %+v, %v", tier, exit, err)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("%v: took %v", tier, d)
		}
		if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("Kill after Wait: %v", err)
		}
	}
}

// TestSignalsToHelper: the program cannot end the helper.
func TestSignalsToHelper(t *testing.T) {
	requireNamespaces(t)
	f := newFixture(t)
	out, exit := f.exec(t, userNamespace, nil, "/bin/sh", "-c",
		`i=1; while [ $i -le 64 ]; do case $i in 32|33) ;; *) kill -$i 1;; esac; i=$((i+1)); done; kill -KILL 1; sleep 0.1; echo alive; exit 3`)
	if exit.Lost || exit.Status.ExitStatus() != 3 || !strings.HasSuffix(out, "alive") {
		t.Errorf("%+v, %q", exit, out)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestIgnoredSignals: what the caller ignores stays ignored, nothing else is.
func TestIgnoredSignals(t *testing.T) {
	requireNamespaces(t)
	f := newFixture(t)
	signal.Ignore(unix.SIGUSR2)
	defer signal.Reset(unix.SIGUSR2)
	want := regexp.MustCompile(`(?m)^SigIgn:\s*(\w+)$`).FindSubmatch(must(os.ReadFile("/proc/self/status")))
	for _, tier := range tiers(t) {
		// A program that is not in Go: that would install handlers of its own.
		status, _ := f.exec(t, tier, nil, "/bin/sed", "-n", `s/^SigIgn:\s*//p`, "/proc/self/status")
		if status != string(want[1]) {
			t.Errorf("%v: ignored %q, want ours, %q", tier, status, want[1])
		}
	}
}

// TestStopped tells of a program that stops itself, and not of one that goes on
// at once.
func TestStopped(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		p, err := start(context.Background(), &exec.Cmd{
			Path: "/bin/sh", Dir: f.ws, Env: []string{"PATH=/bin:/usr/bin"},
			Args: []string{"sh", "-c", "kill -STOP $$; (kill -CONT $$) & kill -STOP $$; exit 4"},
		}, f.spec, tier, nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan sandbox.Exit)
		go func() {
			exit, _ := p.Wait()
			ended <- exit
		}()
		select {
		case sig := <-p.Stopped():
			if sig != unix.SIGSTOP {
				t.Errorf("%v: stopped by %v", tier, sig)
			}
			p.Signal(unix.SIGCONT)
		case <-time.After(10 * time.Second):
			t.Errorf("%v: no word of the stop", tier)
			p.Kill()
		}
		go func() { // the second stop may come before or after its SIGCONT
			time.Sleep(300 * time.Millisecond)
			p.Signal(unix.SIGCONT)
		}()
		if exit := <-ended; exit.Status.ExitStatus() != 4 {
			t.Errorf("%v: %v", tier, exit.Status)
		}
	}
}

// TestBlindLook: a secret that cannot be looked for stops the run, it does not
// pass for absent.
func TestBlindLook(t *testing.T) {
	f := newFixture(t)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	fd, err := unix.Open("/", unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	h := &host{files: map[string]file{}, kinds: map[string]kind{}, dirs: map[string]dir{}, names: map[string]int{}}
	unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(fd), Max: old.Max})
	h.look(f.home + "/.ssh")
	unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	h.close()
	if !errors.Is(h.failed, unix.EMFILE) {
		t.Errorf("%v, want EMFILE", h.failed)
	}
}

// TestOtherPlaces finds where else a hidden directory, or a part of it, shows.
func TestOtherPlaces(t *testing.T) {
	f := newFixture(t)
	for _, d := range []string{"/whole/.ssh", "/part", "/else"} {
		if err := os.MkdirAll(f.home+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := &host{
		files: map[string]file{}, kinds: map[string]kind{}, dirs: map[string]dir{}, names: map[string]int{},
		mounts: []mount{
			{dev: "1:1", root: "/", point: "/"},
			{dev: "1:1", root: f.home, point: f.home + "/whole"},
			{dev: "1:1", root: f.home + "/.ssh/sub", point: f.home + "/part"},
			{dev: "1:2", root: "/", point: f.home + "/else"},
		},
	}
	defer h.close()
	want := []string{f.home + "/whole/.ssh", f.home + "/part"}
	if got := h.otherPlaces(f.home + "/.ssh"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHelperLost(t *testing.T) {
	requireNamespaces(t)
	f := newFixture(t)
	p, err := start(context.Background(), &exec.Cmd{
		Path: "/bin/sleep", Dir: f.ws, Env: []string{},
		Args: []string{"sleep", "30"},
	}, f.spec, userNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.killHelper()
	if exit, err := p.Wait(); err != nil || !exit.Lost {
		t.Errorf("%+v, %v, want lost", exit, err)
	}
}

// TestKeptDescriptors passes files at chosen numbers, with gaps.
func TestKeptDescriptors(t *testing.T) {
	f := newFixture(t)
	a, err := os.Open(f.ws + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, tier := range tiers(t) {
		r, w, _ := os.Pipe()
		p, err := start(context.Background(), &exec.Cmd{
			Path: "/bin/sh", Dir: f.ws, Env: []string{}, Stdout: w,
			Args: []string{"sh", "-c", "cat <&5; for i in 3 4 6 7 8 9; do eval \"true <&$i\" 2>/dev/null && echo open $i; done; :"}, ExtraFiles: []*os.File{nil, nil, a},
		}, f.spec, tier, nil)
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _ := r.Read(b)
		p.Wait()
		r.Close()
		if got := string(b[:n]); got != "file" {
			t.Errorf("%v: %q, want file", tier, got)
		}
		a.Seek(0, 0)
	}
}

// TestRefusals: what must stop a run does, with nothing run.
// TestUnixSockets: with the host's network, of the sockets of others a program
// reaches the one that is opened to it, by any of its paths, or, where they
// cannot be told apart, none and has none itself.
func TestUnixSockets(t *testing.T) {
	for _, tier := range tiers(t) {
		for _, network := range []sandbox.Network{sandbox.NetworkOff, sandbox.NetworkHost} {
			f := newFixture(t)
			f.outside(t)
			f.spec.Network = network
			link := f.home + "/link"
			if err := os.Symlink(f.unix, link); err != nil {
				t.Fatal(err)
			}
			abi := landlockABI()
			able := tier.mounts() && (network == sandbox.NetworkOff || abi >= 6) || abi >= 9
			own := "EPERM"
			if able {
				own = ""
			}
			for _, c := range []struct{ address, want string }{
				{f.unix, "ECONNREFUSED|EACCES|EPERM"},
				{link, "ECONNREFUSED|EACCES|EPERM"},
				{f.abstract, "ECONNREFUSED|EPERM"},
			} {
				if got := f.in(t, tier, "dial", "unix", c.address); !regexp.MustCompile("^(" + c.want + ")$").MatchString(got) {
					t.Errorf("%v, network %v: %s: %q, want %q", tier, network, c.address, got, c.want)
				}
			}
			if got := f.in(t, tier, "unixserve", f.ws+"/s"); got != own {
				t.Errorf("%v, network %v: a socket of its own: %q, want %q", tier, network, got, own)
			}
			f.spec.Sockets = []string{link}
			f.spec.Files = append(f.spec.Files, sandbox.FileRule{Path: link, Access: sandbox.ReadOnly, Sort: sandbox.Secret})
			if !able {
				cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: f.ws, Env: []string{}}
				if _, err := start(context.Background(), cmd, f.spec, tier, nil); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%v, network %v: a socket that cannot be opened alone: %v, want ErrUnsupported", tier, network, err)
				}
				continue
			}
			for _, address := range []string{link, f.unix} {
				if got := f.in(t, tier, "dial", "unix", address); got != "" {
					t.Errorf("%v, network %v: %s, which is opened: %q", tier, network, address, got)
				}
			}
			if got := f.in(t, tier, "dial", "unix", f.abstract); got == "" {
				t.Errorf("%v, network %v: the abstract socket was opened too", tier, network)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "touch ran"}, Dir: f.ws, Env: []string{}}
	with := func(change func(*sandbox.Spec)) sandbox.Spec {
		s := f.spec
		s.Files = append([]sandbox.FileRule(nil), s.Files...)
		change(&s)
		return s
	}
	for name, spec := range map[string]sandbox.Spec{
		"workspace /":      with(func(s *sandbox.Spec) { s.Workspace = "/" }),
		"no workspace":     with(func(s *sandbox.Spec) { s.Workspace = "" }),
		"nothing readable": with(func(s *sandbox.Spec) { s.Files = s.Files[1:] }),
		"absent writable": with(func(s *sandbox.Spec) {
			s.Files = append(s.Files, sandbox.FileRule{Path: f.home + "/absent", Access: sandbox.ReadWrite})
		}),
		"absent socket":  with(func(s *sandbox.Spec) { s.Sockets = []string{f.home + "/absent"} }),
		"no such socket": with(func(s *sandbox.Spec) { s.Sockets = []string{f.home + "/plain"} }),
	} {
		_, err := New().Start(context.Background(), cmd, spec)
		var se *sandbox.SpecError
		if !errors.As(err, &se) {
			t.Errorf("%s: %v, want a SpecError", name, err)
		}
	}
	dir, err := os.Open(f.home)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	withDir := *cmd
	withDir.Stdin = dir
	var se *sandbox.SpecError
	if _, err := New().Start(context.Background(), &withDir, f.spec); !errors.As(err, &se) {
		t.Errorf("a directory as stdin: %v, want a SpecError", err)
	}
	// Landlock alone cannot hide what lies in a writable directory.
	_, err = start(context.Background(), cmd, with(func(s *sandbox.Spec) {
		s.Files = append(s.Files, sandbox.FileRule{Path: f.ws + "/.env", Sort: sandbox.Secret})
	}), landlockAlone, nil)
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("secret in the workspace without a mount namespace: %v, want ErrUnsupported", err)
	}
	if _, err := os.Stat(f.ws + "/ran"); err == nil {
		t.Error("the command ran")
	}
}

// TestWorkspaceBelowTmp: another /tmp must not hide the workspace in it, with
// either access, kept or not.
func TestWorkspaceBelowTmp(t *testing.T) {
	requireNamespaces(t)
	ws, err := os.MkdirTemp("/tmp", "sandbox-exec-test-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(ws)
	os.WriteFile(ws+"/f", []byte("file"), 0o644)
	f := newFixture(t)
	f.ws, f.spec.Workspace = ws, ws
	for _, access := range []sandbox.Access{sandbox.ReadOnly, sandbox.ReadWrite} {
		for _, tmp := range []string{"", f.home + "/other", f.home + "/other"} {
			f.spec.Files = []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}, {Path: ws, Access: access}}
			f.spec.Protect, f.spec.Tmp = nil, tmp
			if got := f.in(t, userNamespace, "content", ws+"/f", "file"); got != "" {
				t.Errorf("%v, /tmp %q: %s", access, tmp, got)
			}
			want := ""
			if access == sandbox.ReadOnly {
				want = "EROFS"
			}
			if got := f.in(t, userNamespace, "write", ws+"/g"); got != want {
				t.Errorf("%v, /tmp %q: writing gives %q, want %q", access, tmp, got, want)
			}
			if got := f.in(t, userNamespace, "write", "/tmp/h"); got != "" {
				t.Errorf("%v, /tmp %q: writing to /tmp gives %q", access, tmp, got)
			}
		}
	}
	if _, err := os.Stat("/tmp/h"); err == nil {
		t.Error("the host's /tmp was written to")
	}
	if b, err := os.ReadFile(ws + "/g"); err != nil || string(b) != "probe" {
		t.Errorf("outside: %q, %v", b, err)
	}

	// A file that is opened by name, and /tmp itself as the workspace.
	f = newFixture(t)
	f.spec.Files = append(f.spec.Files, sandbox.FileRule{Path: ws + "/f", Access: sandbox.ReadOnly})
	if got := f.in(t, userNamespace, "content", ws+"/f", "file"); got != "" {
		t.Errorf("a file below /tmp: %s", got)
	}
	f.ws, f.spec.Workspace = "/tmp", "/tmp"
	f.spec.Files = []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}, {Path: "/tmp", Access: sandbox.ReadWrite}}
	f.spec.Protect = nil
	if got := f.in(t, userNamespace, "content", ws+"/f", "file"); got != "" {
		t.Errorf("/tmp as the workspace: %s", got)
	}
}

// TestSetup shows what a start does, refuses what it refuses, and leaves nothing.
func TestSetup(t *testing.T) {
	requireNamespaces(t)
	f := newFixture(t)
	cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: f.ws, Env: []string{}}
	before := traces(t)
	text, err := New().Setup(cmd, f.spec)
	if err != nil || !strings.Contains(text, "place mount "+f.ws) || !strings.Contains(text, "execute /bin/true") {
		t.Errorf("%v:\n%s", err, text)
	}
	f.spec.Require = []string{"seatbelt"}
	if _, err := New().Setup(cmd, f.spec); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a layer that no Linux has: %v, want ErrUnsupported", err)
	}
	if _, err := New().Start(context.Background(), cmd, f.spec); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a start that requires it: %v, want ErrUnsupported", err)
	}
	if after := traces(t); after != before {
		t.Errorf("left behind:\nbefore %s\nafter  %s", before, after)
	}
}

// TestRequire: no layer that is missing passes that may not, none that is less
// than required.
func TestRequire(t *testing.T) {
	report := sandbox.Report{Layers: []sandbox.Layer{
		{Name: sandbox.LayerLandlock, State: sandbox.Missing}, {Name: sandbox.LayerCgroup, State: sandbox.Weaker}, {Name: sandbox.LayerSeccomp, State: sandbox.Enforced},
	}}
	for _, c := range []struct {
		require, may []string
		ok           bool
	}{
		{nil, nil, false},
		{nil, []string{sandbox.LayerCgroup}, false},
		{nil, []string{sandbox.LayerLandlock}, true},
		{[]string{sandbox.LayerSeccomp}, []string{sandbox.LayerLandlock}, true},
		{[]string{sandbox.LayerLandlock}, []string{sandbox.LayerLandlock}, false},
		{[]string{sandbox.LayerCgroup}, []string{sandbox.LayerLandlock, sandbox.LayerCgroup}, false},
		{[]string{"nonsense"}, []string{sandbox.LayerLandlock}, false},
	} {
		err := report.Check(sandbox.Spec{Require: c.require, AllowMissing: c.may})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("require %v, allow missing %v: %v", c.require, c.may, err)
		}
	}
}

// TestDoctor is true on this machine.
func TestDoctor(t *testing.T) {
	requireNamespaces(t)
	r := New().Doctor()
	if r.Tier != userNamespace.String() || len(r.Layers) == 0 {
		t.Errorf("%+v", r)
	}
	for _, l := range r.Layers {
		if l.Name == sandbox.LayerLandlock && landlockABI() == 0 && l.State == sandbox.Missing {
			continue
		}
		if l.State == sandbox.Missing || l.State == sandbox.Weaker && (l.Why == "" || l.Lost == "") {
			t.Errorf("%+v", l)
		}
	}
}

// TestHideInWorkspace and more of the precedence, seen by a program.
func TestPrecedence(t *testing.T) {
	requireNamespaces(t)
	f := newFixture(t)
	f.spec.Workspace = f.home // everything of the person's is writable but the secrets
	f.spec.Files = append(f.spec.Files,
		sandbox.FileRule{Path: f.home, Access: sandbox.ReadWrite},
		sandbox.FileRule{Path: f.ws + "/.env", Sort: sandbox.Secret},
		sandbox.FileRule{Path: f.home + "/other", Access: sandbox.None},
		sandbox.FileRule{Path: f.home + "/other/f", Access: sandbox.ReadOnly},
		sandbox.FileRule{Path: f.ws + "/dir/f", Sort: sandbox.Secret},
	)
	root := os.Geteuid() == 0
	for _, c := range []struct {
		probe []string
		want  string
	}{
		{[]string{"write", f.home + "/new"}, ""},
		{[]string{"content", f.home + "/.netrc", "secret"}, "EACCES"},
		{[]string{"content", f.ws + "/.env", "A=1"}, "EACCES"},
		{[]string{"rename", f.home + "/.netrc", f.home + "/n"}, "EBUSY"},
		{[]string{"rename", f.ws + "/dir", f.ws + "/dir2"}, "EBUSY"}, // another could take its name, and with it the secret's
		{[]string{"rename", f.ws, f.home + "/ws2"}, "EBUSY"},
		{[]string{"content", f.home + "/other/f", "other"}, ""},
		{[]string{"append", f.home + "/other/f"}, "EROFS"},
		{[]string{"write", f.home + "/other/g"}, "EROFS"},
	} {
		want := c.want
		if root && c.probe[0] == "content" && want == "EACCES" {
			want = `content ""`
		}
		if got := f.in(t, userNamespace, c.probe...); got != want {
			t.Errorf("%v: %q, want %q", c.probe, got, want)
		}
	}
}

// TestSwappedProtectedName: a name in the workspace that is a symbolic link is
// protected where it leads, and never leads a mount astray.
func TestHostileWorkspace(t *testing.T) {
	requireNamespaces(t)
	for name, plant := range map[string]func(ws string){
		"hooks is a link to a directory": func(ws string) { os.RemoveAll(ws + "/.git/hooks"); os.Symlink("../dir", ws+"/.git/hooks") },
		"hooks is a link to /etc":        func(ws string) { os.RemoveAll(ws + "/.git/hooks"); os.Symlink("/etc", ws+"/.git/hooks") },
		"hooks is a loop":                func(ws string) { os.RemoveAll(ws + "/.git/hooks"); os.Symlink("hooks", ws+"/.git/hooks") },
		"config is a FIFO":               func(ws string) { os.Remove(ws + "/.git/config"); unix.Mkfifo(ws+"/.git/config", 0o600) },
		"git is a file":                  func(ws string) { os.RemoveAll(ws + "/.git"); os.WriteFile(ws+"/.git", []byte("gitdir: /etc"), 0o600) },
		"git is a link to /":             func(ws string) { os.RemoveAll(ws + "/.git"); os.Symlink("/", ws+"/.git") },
	} {
		f := newFixture(t)
		plant(f.ws)
		if got := f.in(t, userNamespace, "write", f.home+"/new"); got != "EROFS" {
			t.Errorf("%s: writing outside gives %q", name, got)
		}
		if got := f.in(t, userNamespace, "write", f.ws+"/new"); got != "" {
			t.Errorf("%s: writing inside gives %q", name, got)
		}
	}
}

func TestProcessCap(t *testing.T) {
	requireNamespaces(t)
	f := newFixture(t)
	f.spec.Limits.PIDs = 40
	if got := f.in(t, userNamespace, "forks", "60"); !strings.HasSuffix(got, "EAGAIN") && got != "EAGAIN" {
		t.Errorf("60 forks under a cap of 40: %q, want EAGAIN", got)
	}
	f.spec.Limits.PIDs = 200
	if got := f.in(t, userNamespace, "forks", "30"); got != "" {
		t.Errorf("30 forks under a cap of 200: %q", got)
	}
}

// TestNothingLeft looks at the host after runs that ended in every way.
func TestNothingLeft(t *testing.T) {
	f := newFixture(t)
	t.Setenv("TMPDIR", f.home)
	before := traces(t)
	for _, tier := range tiers(t) {
		f.in(t, tier, "nothing")
		start(context.Background(), &exec.Cmd{Path: "/absent", Args: []string{"x"}, Dir: f.ws, Env: []string{}}, f.spec, tier, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		start(ctx, &exec.Cmd{Path: "/bin/true", Args: []string{"x"}, Dir: f.ws, Env: []string{}}, f.spec, tier, nil)
	}
	if after := traces(t); after != before {
		t.Errorf("left behind:\nbefore %s\nafter  %s", before, after)
	}
}

// ourGroups lists the cgroups that this process made.
func ourGroups() []string {
	var out []string
	prefix := groupPrefix + strconv.Itoa(os.Getpid()) + "-"
	parents, _ := parentGroups([]string{"memory", "pids"})
	for _, p := range parents {
		found, _ := filepath.Glob(filepath.Join(p.dir, prefix+"*"))
		out = append(out, found...)
	}
	return out
}

// traces counts our children, mounts, open descriptors, temporary directories.
func traces(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	fds, _ := os.ReadDir("/proc/self/fd")
	tmp, _ := filepath.Glob(os.TempDir() + "/sandbox-exec-*")
	kids, _ := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	cg := ourGroups()
	return strings.Join([]string{
		strconv.Itoa(strings.Count(string(mounts), "\n")), strconv.Itoa(len(fds)),
		strings.Join(tmp, ","), string(kids), strings.Join(cg, ","),
	}, " ")
}

// TestWatch: without a cgroup the helper holds the caps.
func TestWatch(t *testing.T) {
	defer func(f func(sandbox.Limits) (*cgroup, error)) { makeCgroup = f }(makeCgroup)
	makeCgroup = func(sandbox.Limits) (*cgroup, error) { return nil, errNoCgroup }
	for _, tier := range tiers(t) {
		f := newFixture(t)
		f.spec.Limits = sandbox.Limits{Memory: 256 << 20, PIDs: 100}
		run := func(probe ...string) sandbox.Exit {
			_, exit := f.exec(t, tier, []string{probeEnv + "=" + strings.Join(probe, "\x01")}, filepath.Join(probeDir(), "probe"))
			return exit
		}
		if exit := run("memory", strconv.Itoa(32<<20), "400"); exit.OOM || exit.Status != 0 {
			t.Errorf("%v: 32 MiB under a cap of 256: %+v", tier, exit)
		}
		if exit := run("memory", strconv.Itoa(384<<20), "3000"); !exit.OOM || exit.Status.Signal() != unix.SIGKILL {
			t.Errorf("%v: 384 MiB under a cap of 256: %+v", tier, exit)
		}
		// Ways to have memory that is not where it is looked for first.
		for _, how := range []string{"leaderless", "closed"} {
			if exit := run(how, "memory", strconv.Itoa(384<<20), "3000"); !exit.OOM {
				t.Errorf("%v, %s: 384 MiB under a cap of 256: %+v", tier, how, exit)
			}
		}
		if os.Geteuid() == 0 {
			// The list of groups comes first in /proc/PID/status, and can be long.
			if exit := run("memory", strconv.Itoa(384<<20), "3000", "groups"); !exit.OOM {
				t.Errorf("%v: 384 MiB under a cap of 256, in 3,000 groups: %+v", tier, exit)
			}
		}
		if tier.mounts() {
			if exit := run("fill", "/tmp/fill", strconv.Itoa(384<<20), "3000"); !exit.OOM {
				t.Errorf("384 MiB in /tmp under a cap of 256: %+v", exit)
			}
		}
	}
}

// linkedEntry is set, by -X, where the linker was told of the helper's entry.
var linkedEntry string

// TestEntry: where the kernel enters the helper before the Go runtime, the
// helper has none: it is as small as its program text.
func TestEntry(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		p, err := start(context.Background(), &exec.Cmd{
			Path: "/bin/sleep", Args: []string{"sleep", "60"}, Dir: f.ws, Env: []string{"PATH=/usr/bin:/bin"},
		}, f.spec, tier, nil)
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		size := field(status, "VmSize:") >> 10
		if err := errors.Join(err, p.Kill()); err != nil {
			t.Error(err)
		}
		p.Wait()
		if runtime := size > 64; size == 0 || runtime == (linkedEntry != "") {
			t.Errorf("%v: the helper has %d MiB of addresses, and entry = %q", tier, size, linkedEntry)
		}
	}
}

// TestHelperThatDoesNotAnswer: a start does not wait for ever for a helper that
// never says that it has cloned itself, and leaves none behind.
func TestHelperThatDoesNotAnswer(t *testing.T) {
	defer func(d time.Duration) { cloneTimeout = d }(cloneTimeout)
	cloneTimeout = 50 * time.Millisecond
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	p := &process{sock: os.NewFile(uintptr(pair[0]), "helper")}
	defer p.sock.Close()
	first, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var failed *sandbox.SetupError
	if err := p.cloned(first, identity{}, userNamespace); !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
	if err := unix.Kill(first, 0); err != unix.ESRCH {
		t.Errorf("the helper is there: %v", err)
	}
}

// TestSession: a program that is to have no terminal leads a session of its own.
func TestSession(t *testing.T) {
	f := newFixture(t)
	for _, tier := range tiers(t) {
		for _, own := range []bool{false, true} {
			cmd := &exec.Cmd{
				Path: "/bin/sh", Dir: f.ws, Env: []string{"PATH=/usr/bin:/bin"},
				Args: []string{"sh", "-c", `read pid name state parent group session rest </proc/self/stat; [ "$session" = "$pid" ] && exit 0 || exit 1`},
			}
			if own {
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			}
			p, err := start(context.Background(), cmd, f.spec, tier, nil)
			if err != nil {
				t.Fatal(err)
			}
			if exit, err := p.Wait(); err != nil || (exit.Status.ExitStatus() == 0) != own {
				t.Errorf("%v: asked %v: %+v, %v", tier, own, exit, err)
			}
		}
	}
}
