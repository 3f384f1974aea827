//go:build linux

package linux

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

func TestResolvConf(t *testing.T) {
	for _, c := range []struct{ old, want string }{
		{"", "nameserver 198.18.0.1\n"},
		{"nameserver 192.0.2.1\nnameserver 2001:db8::1\noptions edns0 ndots:5\n", "nameserver 198.18.0.1\n"},
		{"search a.example b.example\n", "nameserver 198.18.0.1\nsearch a.example b.example\n"},
		{"search a.example\ndomain b.example", "nameserver 198.18.0.1\nsearch b.example\n"},
		{"# search a.example\nsearch\n", "nameserver 198.18.0.1\n"},
	} {
		if got := string(resolvConf([]byte(c.old))); got != c.want {
			t.Errorf("%q: got %q, want %q", c.old, got, c.want)
		}
	}
}

func TestOwnHosts(t *testing.T) {
	const own = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	for _, c := range []struct{ old, want string }{
		{"", own},
		{"10.1.2.3 registry.example\n2001:db8::1 six.example\n", own},
		{"127.0.1.1\tme.example me", own + "127.0.1.1\tme.example me\n"},
		{"127.0.0.1 app.example # mine\n", own + "127.0.0.1 app.example # mine\n"},
		{"# 127.0.0.1 x\n127.0.0.1\nnonsense y\n", own},
		{strings.Repeat("127.0.0.1 blocked.example\n", 5000), own + strings.Repeat("127.0.0.1 blocked.example\n", 627)},
	} {
		if got := string(ownHosts([]byte(c.old))); got != c.want {
			t.Errorf("%.60q: got %d bytes, want %d: %.200q", c.old, len(got), len(c.want), got)
		}
	}
}

// Without a resolv.conf programs ask the own machine.
func TestResolverAt(t *testing.T) {
	h := fakeHost()
	if got := h.resolverAt(); got != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("without one: %v", got)
	}
	h.nameFiles = []nameFile{{point: "/etc/hosts"}}
	h.files["/etc/hosts"] = file{path: "/etc/hosts", kind: regular}
	if got := h.resolverAt(); got != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("with another file: %v", got)
	}
	h.nameFiles = append(h.nameFiles, nameFile{point: "/run/resolv.conf"})
	h.files["/etc/resolv.conf"] = file{path: "/run/resolv.conf", kind: regular}
	if got := h.resolverAt(); got != netip.MustParseAddr("198.18.0.1") {
		t.Errorf("with one: %v", got)
	}
}

// What is asked for and cannot be served is an error before anything runs.
func TestTooManyHosts(t *testing.T) {
	spec := fakeSpec()
	spec.Network = sandbox.NetworkAllow
	for port := range uint16(maxHanded) {
		spec.Hosts.Ports = append(spec.Hosts.Ports, 1000+port)
	}
	cmd := exec.Command("/bin/true")
	cmd.Dir = "/"
	_, err := New().Start(context.Background(), cmd, spec)
	var wrong *sandbox.SpecError
	if !errors.As(err, &wrong) || wrong.Field != "hosts" {
		t.Errorf("got %v", err)
	}
}

// Only a namespace holds a program to an own network: without one it does not
// run, whatever may be missing.
func TestOwnNetworkNeedsNamespaces(t *testing.T) {
	for _, n := range []sandbox.Network{sandbox.NetworkLocalhost, sandbox.NetworkAllow} {
		if !ownNetwork(sandbox.Spec{Network: n}) {
			t.Errorf("%v runs without one", n)
		}
	}
}

// A host is reached by the socket that was handed out and by nothing else: a
// program that is not served gets no further than its own loopback.
func TestAllowHandsSocketsOut(t *testing.T) {
	f := newFixture(t)
	f.spec.Network = sandbox.NetworkAllow
	asked := make(chan string, 100)
	f.spec.Hosts = sandbox.Hosts{
		Ports: []uint16{80, 8443},
		Judge: func(host string, port uint16) (bool, string) {
			asked <- host
			return host == "good.example", "rule"
		},
	}
	cmd := exec.Command("/bin/sh", "-c", `ls -l /proc/self/fd /proc/1/fd 2>&1 | grep socket; getent ahostsv4 good.example; getent ahostsv4 bad.example; cat /etc/resolv.conf`)
	cmd.Dir, cmd.Env = f.ws, []string{"PATH=/usr/bin:/bin"}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = write
	p, err := New().Start(context.Background(), cmd, f.spec)
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	out := ""
	for {
		n, err := read.Read(buf)
		out += string(buf[:n])
		if err != nil {
			break
		}
	}
	exit, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "socket") || !strings.Contains(out, "198.18.0.2") || strings.Contains(out, "bad.example") || !strings.Contains(out, "nameserver 198.18.0.1") {
		t.Errorf("inside:\n%s", out)
	}
	if len(exit.Contacts) != 2 || exit.Contacts[0].Host != "good.example" || !exit.Contacts[0].Allowed || exit.Contacts[1].Allowed {
		t.Errorf("contacts: %+v", exit.Contacts)
	}
}

// The message carries all descriptors that a person may ask for.
func TestRightsHoldAll(t *testing.T) {
	s := &setup{}
	b := &builder{set: s, steps: &s.init}
	r := b.rights(maxHanded)
	next := r.cells()
	last := arg{}
	for range maxHanded {
		last = next()
	}
	if end := last.val + 8; end > uint64(len(s.data)) {
		t.Errorf("the last cell ends at %d of %d bytes", end, len(s.data))
	}
	if last.val != r.at.val+uint64(unix.CmsgLen(4*maxHanded))-4 {
		t.Errorf("the last descriptor is at %d", last.val)
	}
}
