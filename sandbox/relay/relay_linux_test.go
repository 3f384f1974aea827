package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// inside is a relay whose names stand for addresses of the loopback, and a
// server outside that plays every host.
type inside struct {
	*Relay
	listener net.Listener
	port     uint16
}

func newInside(t *testing.T, hosts sandbox.Hosts, serve func(*net.TCPConn)) *inside {
	t.Helper()
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outside.Close() })
	go func() {
		for {
			c, err := outside.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	in := &inside{newRelay(hosts), l, uint16(l.Addr().(*net.TCPAddr).Port)}
	in.dial = func(ctx context.Context, host string, port uint16) (*net.TCPConn, error) {
		if strings.HasPrefix(host, "gone.") {
			return nil, errors.New("it is gone")
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", outside.Addr().String())
		if err != nil {
			return nil, err
		}
		return c.(*net.TCPConn), nil
	}
	return in
}

// start serves, and ends with the test.
func (in *inside) start(t *testing.T) {
	t.Helper()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in.serve(Sockets{DNS: udp, DNSTCP: tcp, TCP: []net.Listener{in.listener}})
}

// to connects as a program does to an address that stands for a name, or for
// nothing if that is empty.
func (in *inside) to(name string, n byte) (*net.TCPConn, error) {
	a := netip.AddrFrom4([4]byte{127, 9, 9, n})
	if name != "" {
		in.names.mu.Lock()
		in.names.byAddr[a] = name
		in.names.mu.Unlock()
	}
	c, err := net.Dial("tcp", netip.AddrPortFrom(a, in.port).String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func (in *inside) connect(t *testing.T, name string, n byte) *net.TCPConn {
	t.Helper()
	c, err := in.to(name, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ends is how a connection ends of which nothing is sent. A reset may come
// before the connect has returned.
func (in *inside) ends(name string, n byte) error {
	c, err := in.to(name, n)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, err = c.Read(make([]byte, 1))
	return err
}

func echo(c *net.TCPConn) {
	io.Copy(c, c)
	c.CloseWrite()
}

// Bytes go both ways, also after one side has finished.
func TestRelayCarries(t *testing.T) {
	in := newInside(t, allowing("good.example"), func(c *net.TCPConn) {
		all, _ := io.ReadAll(c) // until the client has finished
		c.Write(all)
	})
	in.start(t)
	data := make([]byte, 4<<20)
	rand.Read(data)
	c := in.connect(t, "good.example", 1)
	go func() {
		c.Write(data)
		c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes came back, %v", len(got), len(data), err)
	}
	list := in.Stop()
	if len(list) != 1 {
		t.Fatalf("contacts: %+v", list)
	}
	want := sandbox.Contact{
		Host: "good.example", Port: in.port, Allowed: true, Rule: "good.example", Times: 1,
		Sent: int64(len(data)), Received: int64(len(data)), First: list[0].First, Last: list[0].Last,
	}
	if list[0] != want || want.First.IsZero() || want.Last.Before(want.First) {
		t.Errorf("got %+v, want %+v", list[0], want)
	}
}

func TestRelayRefuses(t *testing.T) {
	in := newInside(t, allowing("good.example", "gone.example"), echo)
	in.start(t)
	for i, host := range []string{"bad.example", "gone.example", ""} {
		if err := in.ends(host, byte(10+i)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v, want a reset", host, err)
		}
	}
	var got []string
	for _, c := range in.Stop() {
		got = append(got, fmt.Sprintf("%s %v %s", c.Host, c.Allowed, c.Why))
	}
	if want := "bad.example false ;gone.example true it is gone"; !strings.Contains(strings.Join(got, ";"), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A host that breaks a connection off breaks that of the program, and the other
// way round.
func TestRelayPassesBreaksOn(t *testing.T) {
	broken := make(chan error, 1)
	in := newInside(t, allowing("*.example"), func(c *net.TCPConn) {
		b := make([]byte, 1)
		c.Read(b)
		if b[0] == 'b' {
			c.SetLinger(0)
			return
		}
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err := c.Read(b)
		broken <- err
	})
	in.start(t)
	c := in.connect(t, "a.example", 1)
	c.Write([]byte("b"))
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the host broke off: %v", err)
	}
	c = in.connect(t, "b.example", 2)
	c.Write([]byte("x"))
	time.Sleep(10 * time.Millisecond)
	c.SetLinger(0)
	c.Close()
	if err := <-broken; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the program broke off: %v", err)
	}
	in.Stop()
}

// What a program sent before it ended arrives, and a host that keeps the
// connection open keeps nobody waiting.
func TestStopDelivers(t *testing.T) {
	got := make(chan int, 1)
	in := newInside(t, allowing("good.example"), func(c *net.TCPConn) {
		all, _ := io.ReadAll(c)
		got <- len(all)
		time.Sleep(time.Minute)
	})
	in.start(t)
	c := in.connect(t, "good.example", 1)
	if _, err := c.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	begin := time.Now()
	in.Stop()
	if n := <-got; n != 1<<20 {
		t.Errorf("%d bytes arrived", n)
	}
	if d := time.Since(begin); d > 30*time.Second {
		t.Errorf("the end took %v", d)
	}
}

// More connections than are carried are told so at once, and room is made when
// some end.
func TestRelayIsBounded(t *testing.T) {
	in := newInside(t, allowing("good.example"), echo)
	in.slots = make(chan struct{}, 3)
	in.start(t)
	var held []*net.TCPConn
	for range 3 {
		c := in.connect(t, "good.example", 1)
		c.Write([]byte("x"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	if err := in.ends("good.example", 1); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the fourth: %v", err)
	}
	held[0].Close()
	for try := 0; ; try++ {
		if c, err := in.to("good.example", 1); err == nil {
			c.Write([]byte("x"))
			_, err = io.ReadFull(c, make([]byte, 1))
			c.Close()
			if err == nil {
				break
			}
		}
		if try > 1000 {
			t.Fatal("no room after one has ended")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, c := range held {
		c.Close()
	}
	in.Stop()
}

// TestConnections: connections leave descriptors for others.
func TestConnections(t *testing.T) {
	for _, c := range []struct {
		descriptors uint64
		want        int
	}{{0, 1}, {128, 1}, {256, 21}, {1024, 149}, {3200, 512}, {1 << 20, 512}, {^uint64(0), 512}} {
		if got := connections(c.descriptors); got != c.want {
			t.Errorf("of %d descriptors: %d connections, want %d", c.descriptors, got, c.want)
		}
	}
}

// TestConnectionsOfThisProcess: a relay asks what the process may have.
func TestConnectionsOfThisProcess(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 256, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	if got := cap(newRelay(sandbox.Hosts{}).slots); got != connections(256) {
		t.Errorf("%d connections", got)
	}
}
