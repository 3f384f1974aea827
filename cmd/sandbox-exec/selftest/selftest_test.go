//go:build linux

package selftest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Program {
		os.Exit(Attempt(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// A case that cannot fail proves nothing: without a sandbox every attempt gets
// through, but for those that some machines or users refuse.
func TestBare(t *testing.T) {
	refused := []string{
		"read-handle", "write-sysctl", "write-device", "write-setuid", // root's
		"net-tcp6", "net-mptcp", "net-packet", "net-vsock", "net-crypto", "net-uevent",
		"process-memory", "process-shm", "kernel-user-namespace", "kernel-io-uring", "kernel-bpf", "kernel-perf",
		"kernel-userfaultfd", "kernel-keyring", "kernel-x32", "kernel-privileges", "kernel-capabilities", "terminal-type",
	}
	profile, err := profiles.Load("workspace")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // else each attempt ends a second late
	base := t.TempDir()
	bare := &tester{Options: Options{Profile: profile}, base: base, bare: true}
	if err := bare.copyProgram(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.name] || r.what == "" || r.layer == "" && r.mode&work == 0 {
			t.Errorf("%s: a double, or nothing said of it", r.name)
		}
		seen[r.name] = true
		if r.mode&within != 0 {
			continue
		}
		c, err := bare.try(r)
		want := GotThrough
		if r.mode&work != 0 {
			want = Works
		}
		if err != nil || c.Outcome != want && !(c.Outcome == NoProof && slices.Contains(refused, r.name)) {
			t.Errorf("%s: %s (%s), %v; want %s", r.name, c.Outcome, c.Why, err, want)
		}
	}
	bare.remove()
	if left, err := os.ReadDir(base); err == nil {
		t.Errorf("left behind: %v", left)
	}
}

// What a missing layer costs is told as that, and nothing else is.
func TestUnpromised(t *testing.T) {
	layers := func(namespaces sandbox.State, abi string) *sandbox.Report {
		l := sandbox.Layer{Name: sandbox.LayerLandlock, State: sandbox.Enforced, Detail: abi}
		if abi == "" {
			l.State = sandbox.Missing
		}
		return &sandbox.Report{Layers: []sandbox.Layer{{Name: sandbox.LayerNamespaces, State: namespaces}, l}}
	}
	whole, alone, old, mounts := layers(sandbox.Enforced, "ABI 7"), layers(sandbox.Missing, "ABI 7"), layers(sandbox.Missing, "ABI 1"), layers(sandbox.Enforced, "")
	off, host := &profiles.Profile{}, &profiles.Profile{Network: sandbox.NetworkHost}
	for _, c := range []struct {
		row  row
		held *sandbox.Report
		p    *profiles.Profile
		want bool // promised
	}{
		{row{layer: namespaces, alone: never}, whole, off, true},
		{row{layer: namespaces, alone: never}, alone, off, false},
		{row{layer: namespaces, alone: never}, mounts, off, true},
		{row{layer: namespaces}, alone, off, true},
		{row{layer: namespaces}, layers(sandbox.Missing, ""), off, false},
		{row{layer: namespaces, alone: 6}, alone, off, true},
		{row{layer: namespaces, alone: 6}, old, off, false},
		{row{layer: landlock}, mounts, off, false},
		{row{layer: landlock}, old, off, true},
		{row{layer: seccomp}, old, off, true},
		{row{layer: namespaces, mode: network}, whole, host, false},
		{row{layer: namespaces, mode: network}, whole, off, true},
	} {
		if why := c.row.unpromised(c.held, c.p); (why == "") != c.want {
			t.Errorf("%+v below %v: %q, want promised: %v", c.row, c.held.Layers, why, c.want)
		}
	}
}
