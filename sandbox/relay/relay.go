// Package relay connects a process that has no network of its own to the hosts
// that it may reach, without its doing: the process looks a name up as always
// and gets an address that stands for the name, the connection to that address
// arrives here, is judged by the name, and is carried on to the host.
//
// It runs outside of the sandbox and answers what comes from inside: every
// message is hostile. What it serves on are sockets of the process's own
// network, in which Range has a local route.
package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Bounds on what the process can make us hold.
const (
	maxConnections = 512 // at once
	maxNames       = 4096
	maxContacts    = 1000 // that are told apart

	helloTimeout = 10 * time.Second // for a whole client hello
	dialTimeout  = 20 * time.Second // for all addresses of a host
	drainTimeout = 2 * time.Second  // for what the process left in its sockets

	retryDelay = 10 * time.Millisecond // after an error of a socket that is still open
)

// connections is how many are carried at once where this process may have so many
// descriptors. What watches the process needs some, too: it must not be blinded by
// connections.
func connections(descriptors uint64) int {
	const each, others = 6, 128
	return int(max(1, min(maxConnections, (max(descriptors, others)-others)/each)))
}

// Sockets are those of the process's network that a Relay serves and closes.
type Sockets struct {
	DNS    net.PacketConn // UDP
	DNSTCP net.Listener
	TCP    []net.Listener
}

// Relay serves the sockets of one process tree.
type Relay struct {
	hosts   sandbox.Hosts
	names   names
	log     contacts
	dial    func(ctx context.Context, host string, port uint16) (*net.TCPConn, error)
	sockets []io.Closer
	ctx     context.Context
	cancel  context.CancelFunc

	wg   sync.WaitGroup
	mu   sync.Mutex
	live map[*flow]struct{}
	// ending says that the process is gone: nobody reads what hosts send.
	ending atomic.Bool
	slots  chan struct{}
}

// Start begins to serve.
func Start(hosts sandbox.Hosts, s Sockets) *Relay {
	r := newRelay(hosts)
	r.serve(s)
	return r
}

func newRelay(hosts sandbox.Hosts) *Relay {
	var files syscall.Rlimit // on an error it is 0
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	r := &Relay{hosts: hosts, live: map[*flow]struct{}{}, slots: make(chan struct{}, connections(uint64(files.Cur)))}
	r.names.init(hosts.Addresses)
	r.dial = r.dialGuarded
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

func (r *Relay) serve(s Sockets) {
	r.sockets = append(r.sockets, s.DNS, s.DNSTCP)
	r.wg.Add(2 + len(s.TCP))
	go r.serveDNS(s.DNS)
	go r.serveDNSTCP(s.DNSTCP)
	for _, l := range s.TCP {
		r.sockets = append(r.sockets, l)
		go func() {
			defer r.wg.Done()
			accept(l, r.slots, r.connect, r.crowded)
		}()
	}
}

// Stop ends all connections once what the process has sent is delivered, and
// returns the hosts that it asked for. The process has to be gone.
func (r *Relay) Stop() []sandbox.Contact {
	r.ending.Store(true)
	for _, s := range r.sockets {
		s.Close()
	}
	r.cancel()
	r.mu.Lock()
	for f := range r.live {
		f.end()
	}
	r.mu.Unlock()
	r.wg.Wait()
	return r.log.list()
}

// accept hands connections to serve, each in a goroutine that holds a slot, or
// to full where there is none. It returns when the listener is closed.
func accept(l net.Listener, slots chan struct{}, serve, full func(*net.TCPConn)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptor is free, or the connection is gone
			time.Sleep(retryDelay)
			continue
		}
		c := conn.(*net.TCPConn)
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-slots }()
				serve(c)
			})
		default:
			full(c)
		}
	}
}

// reset closes a connection so that the process is told at once.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// dialled is the host and the port that a connection from inside is for.
func (r *Relay) dialled(c *net.TCPConn) (host string, port uint16, ok bool) {
	at := c.LocalAddr().(*net.TCPAddr).AddrPort()
	host, ok = r.names.at(at.Addr().Unmap())
	return host, at.Port(), ok
}

func (r *Relay) crowded(c *net.TCPConn) {
	if host, port, ok := r.dialled(c); ok {
		r.log.note(host, port, false, "").failed("too many connections at once")
	}
	reset(c)
}

// connect carries one connection, if it may be.
func (r *Relay) connect(inside *net.TCPConn) {
	host, port, ok := r.dialled(inside)
	if !ok { // an address that stands for nothing, as that of the loopback
		reset(inside)
		return
	}
	allow, rule := r.judge(host, port)
	entry := r.log.note(host, port, allow, rule)
	if !allow {
		reset(inside)
		return
	}
	var hello []byte
	if _, err := netip.ParseAddr(host); err != nil && port == 443 && r.hosts.ServerName != sandbox.ServerNameOff {
		if hello, err = readHello(inside, host, r.hosts.ServerName); err != nil {
			entry.failed(err.Error())
			reset(inside)
			return
		}
	}
	outside, err := r.dial(r.ctx, host, port)
	if err != nil {
		entry.failed(cause(err))
		reset(inside)
		return
	}
	f := &flow{inside: inside, outside: outside, relay: r}
	sent, received := f.run(hello)
	entry.moved(sent, received)
}

func (r *Relay) judge(host string, port uint16) (allow bool, rule string) {
	if r.hosts.Judge == nil {
		return false, ""
	}
	return r.hosts.Judge(host, port)
}

// anyPort says whether a host can be reached at all.
func (r *Relay) anyPort(host string) (allow bool, rule string) {
	for _, port := range r.hosts.Ports {
		if allow, rule = r.judge(host, port); allow {
			return true, rule
		}
	}
	return false, rule
}

// cause is an error of a dial without the addresses, which a person would take
// for those of the process.
func cause(err error) string {
	var refused *addressError
	if errors.As(err, &refused) {
		return refused.Error()
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		if dns.IsNotFound {
			return "no such host"
		}
		return "it could not be looked up: " + dns.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// flow is a connection from inside and its other half.
type flow struct {
	inside, outside *net.TCPConn
	relay           *Relay
}

// run carries bytes both ways until both ends have finished, and closes both.
// hello was read from inside before.
func (f *flow) run(hello []byte) (sent, received int64) {
	defer f.inside.Close()
	defer f.outside.Close()
	r := f.relay
	r.mu.Lock()
	r.live[f] = struct{}{}
	if r.ending.Load() {
		f.end()
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.live, f)
		r.mu.Unlock()
	}()

	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err := f.outside.Write(hello)
		sent = int64(n)
		if err == nil {
			var more int64
			more, err = pass(f.outside, f.inside)
			sent += more
		}
		if err != nil {
			f.abort()
		}
	}()
	received, err := pass(f.inside, f.outside)
	if err != nil && !r.ending.Load() {
		f.abort()
	}
	<-done
	return sent, received
}

// pass carries bytes one way, and their end.
func pass(to, from *net.TCPConn) (int64, error) {
	n, err := io.Copy(to, from) // splice(2)
	if err == nil {
		err = to.CloseWrite()
	}
	return n, err
}

// abort makes the break of one half that of the other.
func (f *flow) abort() {
	reset(f.inside)
	reset(f.outside)
}

// end lets what the process has sent go out, and nothing come in.
func (f *flow) end() {
	now := time.Now()
	f.outside.SetReadDeadline(now)
	f.inside.SetReadDeadline(now.Add(drainTimeout))
	f.outside.SetWriteDeadline(now.Add(drainTimeout))
}

// dialGuarded connects to a host outside. Of its addresses, those are tried that
// the guard lets through: what is checked is what is dialled, so that a name
// cannot lead to one address in the check and to another after it.
func (r *Relay) dialGuarded(ctx context.Context, host string, port uint16) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout, Control: r.guard}
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, ".") {
		host += "." // without the search list: this name, not one that ends in it
	}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}
