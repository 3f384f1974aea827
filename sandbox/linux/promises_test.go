//go:build linux

package linux

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"golang.org/x/sys/unix"
)

// TestPromises really does every call of testdata/promises.txt, under the
// built-in profile "workspace", in the tiers that have namespaces.
func TestPromises(t *testing.T) {
	data, err := os.ReadFile("../../testdata/promises.txt")
	if err != nil {
		data, err = os.ReadFile("promises.txt") // as an ordinary user, in the directory of the probe
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	outside, err := os.CreateTemp("", "outside")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(outside.Name())
	outside.WriteString("outside")
	outside.Close()

	for _, tier := range tiers(t) {
		if !tier.mounts() {
			continue
		}
		var facts [][]string
		var f *fixture // a new one after a call that may have changed it
		n := 0
		for i, line := range lines {
			if strings.HasPrefix(line, "! ") {
				facts = append(facts, strings.Fields(line[2:]))
				continue
			}
			call, rest, ok := strings.Cut(line, "|")
			if !ok || line[0] == '#' {
				continue
			}
			want, _, _ := strings.Cut(rest, "|")
			if f == nil {
				f = promiseFixture(t, facts)
			}
			words := f.words(call, filepath.Base(outside.Name()))
			got := "allow"
			out := f.in(t, tier, append([]string{"promise"}, words...)...)
			if out != "" {
				got = "deny"
			}
			if tier == hostProc && words[0] == "procargs" {
				continue // a process is not in that /proc by the number that it knows
			}
			if got != strings.TrimSpace(want) {
				t.Errorf("%v, line %d: %q: %s (%s), want %s", tier, i+1, words, got, out, want)
			}
			if got == "allow" {
				f = nil
			}
			n++
		}
		if n < 50 {
			t.Errorf("%d promises were read", n)
		}
	}
}

// promiseFixture is a home with the files of the table.
func promiseFixture(t *testing.T, facts [][]string) *fixture {
	t.Helper()
	f := newFixture(t)
	f.outside(t)
	for _, fact := range facts {
		path := f.at(fact[1])
		os.MkdirAll(filepath.Dir(path), 0o755)
		var err error
		if fact[0] == "link" {
			err = os.Symlink(f.at(fact[3]), path)
		} else {
			err = os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := profiles.Load("workspace")
	if err != nil {
		t.Fatal(err)
	}
	state := f.home + "/.local/state/sandbox-exec"
	place := profiles.Place{
		Workspace: f.ws, Home: f.home, UID: os.Getuid(), Memory: 1 << 30,
		StateDir: state, ConfigDir: f.home + "/.config/sandbox-exec", TmpDir: state + "/tmp/0/tmp",
	}
	if err := os.MkdirAll(place.TmpDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place.TmpDir+"/run", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if f.spec, err = p.Spec(place); err != nil {
		t.Fatal(err)
	}
	return f
}

// at is where a path of the table is outside.
func (f *fixture) at(path string) string {
	switch root, rest, _ := strings.Cut(path, "/"); root {
	case "~":
		return filepath.Join(f.home, rest)
	case "w":
		return filepath.Join(f.ws, rest)
	case "t":
		return filepath.Join("/tmp", rest)
	}
	return path
}

func (f *fixture) words(call, outside string) []string {
	var out []string
	for _, word := range strings.Fields(call) {
		word = strings.NewReplacer("{outside}", outside, "{sock}", f.unix).Replace(word)
		if word == "{host}" {
			word = f.tcp
			if out[len(out)-1] == "udp" {
				word = f.udp
			}
		}
		if word == "other" {
			word = strconv.Itoa(f.victim.Process.Pid)
		}
		out = append(out, f.at(word))
	}
	return out
}

var errEmpty = errors.New("it is empty")

func init() { probes["promise"] = promise }

// promise does one call. What root finds empty instead of closed is not had.
func promise(a []string) error {
	child := func() (*exec.Cmd, error) {
		c := exec.Command("/bin/sleep", "5")
		return c, c.Start()
	}
	switch verb := a[0]; verb {
	case "read":
		f, err := os.Open(a[1])
		if err != nil {
			return err
		}
		if n, err := io.ReadFull(f, make([]byte, 4)); n == 0 {
			return errors.Join(errEmpty, err)
		}
		return nil
	case "list":
		names, err := os.ReadDir(a[1])
		if err == nil && len(names) == 0 {
			err = errEmpty
		}
		return err
	case "stat":
		_, err := os.Stat(a[1])
		return err
	case "symlink":
		return os.Symlink(a[1], a[2])
	case "write":
		f, err := os.OpenFile(a[1], os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteString("probe")
			err = errors.Join(err, f.Close())
		}
		return err
	case "exec":
		return exec.Command(a[1], "--version").Run()
	case "connect":
		return probes["dial"](a[1:])
	case "serve":
		if a[1] == "tcp" {
			return probes["serve"](nil)
		}
		l, err := net.Listen("unix", a[2])
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := net.DialTimeout("unix", a[2], 2*time.Second)
		if err == nil {
			c.Close()
		}
		return err
	case "signal", "procargs":
		pid := os.Getpid()
		if a[1] == "child" {
			c, err := child()
			if err != nil {
				return err
			}
			defer func() { c.Process.Kill(); c.Wait() }()
			pid = c.Process.Pid
		} else if a[1] != "self" {
			pid, _ = strconv.Atoi(a[1])
		}
		if verb == "signal" {
			return syscall.Kill(pid, 0)
		}
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err
	case "shm-sysv":
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
		if err == nil {
			_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
		return err
	case "pty":
		f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN)
		if err == nil {
			err = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0)
		}
		if err == nil {
			_, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
		}
		return err
	}
	if p := probes[a[0]]; p != nil && regexp.MustCompile(`^(mkdir|remove|rename|link|chmod)$`).MatchString(a[0]) {
		return p(a[1:])
	}
	return fmt.Errorf("no call: %q", a)
}
