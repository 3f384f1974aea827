//go:build linux

package linux

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// The tests run as whoever started them and, when that is root, once more as
// an ordinary user. What runs inside of the sandbox is this binary again.

// base holds all files of the tests; it is not below /tmp, which a sandboxed
// program does not share.
var base string

const (
	probeEnv = "SANDBOX_EXEC_PROBE" // "name arg arg": be that probe
	plainUID = 54321                // an ordinary user that need not exist
)

func TestMain(m *testing.M) {
	if p := os.Getenv(probeEnv); p != "" {
		f := strings.Split(p, "\x01")
		if err := probes[f[0]](f[1:]); err != nil {
			var errno syscall.Errno
			if errors.As(err, &errno) {
				fmt.Print(unix.ErrnoName(errno))
			} else {
				fmt.Print(err)
			}
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(cgroupChildEnv) != "" || os.Getenv(childEnv) != "" {
		os.Exit(m.Run()) // a test started again: it makes nothing that would be left when it is killed
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-exec-test-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	base = dir
	if err := copyFile("/proc/self/exe", filepath.Join(base, "probe")); err != nil {
		panic(err)
	}
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); os.Geteuid() != 0 || code != 0 || f.Value.String() != "" {
		return code
	}
	fmt.Println("--- the same as an ordinary user")
	if err := copyFile("../../testdata/promises.txt", filepath.Join(base, "promises.txt")); err != nil {
		panic(err)
	}
	// What reads the source or needs a tool chain says the same whoever asks.
	args := []string{"-test.skip=^Test(FilterVerdicts|Rules|RequiredRefusals|FiltersAreGenerated|SeccompLetsToolsWork|Golden)$"}
	for _, a := range os.Args[1:] {
		// Two processes cannot write one log or profile.
		if name, _, _ := strings.Cut(a, "="); !strings.Contains(name, "file") && !strings.Contains(name, "dir") && !strings.Contains(name, "profile") {
			args = append(args, a)
		}
	}
	cmd := exec.Command(filepath.Join(base, "probe"), args...)
	cmd.Dir = base
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUID, Gid: plainUID}}
	if err := cmd.Run(); err != nil {
		fmt.Println("as an ordinary user:", err)
		return 1
	}
	return 0
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// fixture is a home with a workspace and secrets, and a process and servers
// outside that the program must not reach.
type fixture struct {
	home, ws string
	spec     sandbox.Spec
	victim   *exec.Cmd
	tcp, udp string // addresses
	unix     string // a pathname socket in the home
	abstract string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	home, err := os.MkdirTemp(base, "home-*")
	if err != nil {
		// An ordinary user owns no base; the probe's directory is root's.
		home, err = os.MkdirTemp("/var/tmp", "sandbox-exec-test-home-*")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		filepath.Walk(home, func(p string, fi os.FileInfo, err error) error {
			if err == nil && fi.IsDir() {
				os.Chmod(p, 0o700)
			}
			return nil
		})
		os.RemoveAll(home)
	})
	f := &fixture{home: home, ws: home + "/ws", unix: home + "/sock", abstract: "@sandbox-exec-" + filepath.Base(home)}
	for p, text := range map[string]string{
		"plain": "plain", ".ssh/id": "key", ".netrc": "secret", "other/f": "other",
		"ws/f": "file", "ws/.git/hooks/pre-commit": "#!/bin/sh", "ws/.git/config": "[core]", "ws/.git/HEAD": "ref",
		"ws/.env": "A=1", "ws/dir/f": "x",
	} {
		os.MkdirAll(filepath.Dir(home+"/"+p), 0o755)
		if err := os.WriteFile(home+"/"+p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f.spec = sandbox.Spec{
		Workspace: f.ws, Home: home,
		Files: []sandbox.FileRule{
			{Path: "/", Access: sandbox.ReadOnly},
			{Path: f.ws, Access: sandbox.ReadWrite},
			{Path: home + "/.ssh", Sort: sandbox.Secret},
			{Path: home + "/.netrc", Sort: sandbox.Secret},
			{Path: home + "/.absent", Sort: sandbox.Secret},
			{Path: "/etc/shadow", Sort: sandbox.Secret},
		},
		Protect: []sandbox.Name{
			{Path: f.ws + "/.git/hooks"},
			{Path: f.ws + "/.git/config"},
			{Path: f.ws + "/.absent"},
			{Path: f.ws + "/dir", Guard: sandbox.Notice},
		},
		Limits:       sandbox.Limits{PIDs: 200},
		AllowMissing: []string{sandbox.LayerNamespaces, sandbox.LayerCgroup, sandbox.LayerLandlock},
	}
	return f
}

func (f *fixture) outside(t *testing.T) {
	t.Helper()
	f.victim = exec.Command("/bin/sleep", "60")
	if err := f.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.victim.Process.Kill(); f.victim.Wait() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := net.Listen("unix", f.unix)
	if err != nil {
		t.Fatal(err)
	}
	a, err := net.Listen("unix", f.abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); u.Close(); s.Close(); a.Close() })
	f.tcp, f.udp = l.Addr().String(), u.LocalAddr().String()
}

// in starts the test binary as a probe inside and returns what it printed.
func (f *fixture) in(t *testing.T, tier tier, probe ...string) string {
	t.Helper()
	out, exit := f.exec(t, tier, []string{probeEnv + "=" + strings.Join(probe, "\x01")}, filepath.Join(probeDir(), "probe"))
	if exit.Lost {
		t.Fatalf("%v: the helper was lost", probe)
	}
	if exit.Status.Signaled() {
		return exit.Status.Signal().String()
	}
	return out
}

func probeDir() string {
	if base != "" {
		if _, err := os.Stat(base + "/probe"); err == nil {
			return base
		}
	}
	exe, _ := os.Executable()
	return filepath.Dir(exe)
}

func (f *fixture) exec(t *testing.T, tier tier, env []string, argv ...string) (string, sandbox.Exit) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := start(context.Background(), &exec.Cmd{
		Path: argv[0], Args: argv, Dir: f.ws, Stdout: w, Stderr: w,
		Env: append([]string{"PATH=/usr/bin:/bin", "HOME=" + f.home, "TMPDIR=/tmp", "GORACE=" + os.Getenv("GORACE")}, env...),
	}, f.spec, tier, nil)
	w.Close()
	if err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	timer := time.AfterFunc(20*time.Second, func() { p.Kill() })
	defer timer.Stop()
	var out bytes.Buffer
	io.Copy(&out, r)
	exit, err := p.Wait()
	if err != nil {
		t.Errorf("%v: %v", argv, err)
	}
	return strings.TrimSpace(out.String()), exit
}

// requireNamespaces skips where they are not to be had; CI makes the skip a
// failure. Any other failure to start is one.
func requireNamespaces(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-exec-test-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p, err := start(context.Background(), &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", ":"}, Env: []string{}, Dir: dir},
		sandbox.Spec{
			Workspace:    dir,
			Files:        []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}, {Path: dir, Access: sandbox.ReadWrite}},
			AllowMissing: []string{sandbox.LayerCgroup, sandbox.LayerLandlock},
		}, userNamespace, nil)
	var no *noNamespaces
	switch {
	case errors.As(err, &no):
		skip(t, "no namespaces here: "+err.Error())
	case err != nil:
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

// tiers are those of this machine.
func tiers(t *testing.T) []tier {
	t.Helper()
	requireNamespaces(t)
	out := []tier{userNamespace}
	if isAdmin() {
		out = append(out, rootNamespace)
	}
	if landlockABI() > 0 {
		out = append(out, hostProc, landlockAlone)
	}
	return out
}

func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
