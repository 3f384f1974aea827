//go:build linux

package linux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"unsafe"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/linux/internal/helper"
	"github.com/sandbox-exec/sandbox-exec/sandbox/relay"
	"golang.org/x/sys/unix"
)

// With NetworkAllow the program's network holds nothing but the loopback, to
// which a range of addresses leads that stand for names. The helper makes
// sockets there and hands them out to the parent, whose relay answers on them.
// Nothing of ours stays inside, and nothing of the program's gets outside but by
// the relay.

const (
	maxHanded    = 253 // descriptors in one message (unix(7))
	maxAddresses = 64
	backlog      = 512
)

// nameFile replaces a file that tells programs where names are looked up.
type nameFile struct {
	point   string // what stands there on the host, resolved
	content []byte
}

const maxNameFile = 1 << 20 // bytes of a file that is read

// surveyNames reads where the host looks names up. Programs look up in the DNS
// first what the host's list of hosts would tell them, because only there a name
// gets the address that stands for it.
func (h *host) surveyNames() {
	for _, c := range []struct {
		path    string
		content func(old []byte) []byte
	}{{"/etc/resolv.conf", resolvConf}, {"/etc/hosts", ownHosts}} {
		f := h.look(c.path)
		if f.kind != regular {
			continue
		}
		old, err := readNameFile(f.path)
		if err != nil {
			h.failed = &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: "read " + f.path, Err: err}
			return
		}
		h.nameFiles = append(h.nameFiles, nameFile{f.path, c.content(old)})
	}
}

func readNameFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxNameFile))
}

// resolvConf names our resolver and keeps the domains that short names are
// completed with (resolv.conf(5)). Of two lines the last one counts.
func resolvConf(old []byte) []byte {
	search := ""
	for line := range strings.Lines(string(old)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "search" || f[0] == "domain") {
			search = "search " + strings.Join(f[1:], " ") + "\n"
		}
	}
	return []byte("nameserver " + relay.Resolver.String() + "\n" + search)
}

// ownHosts keeps the names of the own machine (hosts(5)).
func ownHosts(old []byte) []byte {
	out := []byte("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	const enough = 16 << 10 // bytes; lists of thousands of names to be blocked lead here too
	for line := range bytes.Lines(old) {
		f := bytes.Fields(line)
		if len(f) < 2 || len(out)+len(line) > enough {
			continue
		}
		if a, err := netip.ParseAddr(string(f[0])); err == nil && a.IsLoopback() {
			out = append(append(out, bytes.TrimRight(line, "\n")...), '\n')
		}
	}
	return out
}

// resolverAt is where programs look names up: without a resolv.conf, on the own
// machine (resolv.conf(5)).
func (h *host) resolverAt() netip.Addr {
	for _, f := range h.nameFiles {
		if f.point == h.files["/etc/resolv.conf"].path {
			return relay.Resolver
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// handed is how many sockets the helper hands out.
func handed(hosts sandbox.Hosts) int {
	each := 1
	for _, a := range hosts.Addresses {
		if !a.Unmap().Is4() {
			each++
		}
	}
	return 2 + len(hosts.Ports)*each
}

// offer makes the sockets, after the loopback is up.
func (b *builder) offer(h *host, hosts sandbox.Hosts) {
	control := b.cell()
	b.sys("socket for addresses", "", unix.SYS_SOCKET, num(unix.AF_INET), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), num(0)).to = control
	// On a loopback device the whole network of an address is local.
	b.address4(control, 0, netip.PrefixFrom(relay.Resolver, relay.Bits), "stand for names")
	routes := arg{}
	var six []netip.Addr
	for i, a := range hosts.Addresses {
		if a = a.Unmap(); a.Is4() {
			b.address4(control, i+1, netip.PrefixFrom(a, 32), "allowed as an address")
			continue
		}
		if six = append(six, a); routes.kind != isCell {
			routes = b.cell()
			b.sys("socket for routes", "", unix.SYS_SOCKET, num(unix.AF_NETLINK), num(unix.SOCK_RAW|unix.SOCK_CLOEXEC), num(unix.NETLINK_ROUTE)).to = routes
		}
		b.address6(routes, a)
	}

	fds := b.rights(handed(hosts))
	next := fds.cells()
	dns := netip.AddrPortFrom(h.resolverAt(), 53)
	b.socket(next(), unix.SOCK_DGRAM, dns)
	b.socket(next(), unix.SOCK_STREAM, dns)
	for _, port := range hosts.Ports {
		b.socket(next(), unix.SOCK_STREAM, netip.AddrPortFrom(netip.IPv4Unspecified(), port))
		for _, a := range six {
			b.socket(next(), unix.SOCK_STREAM, netip.AddrPortFrom(a, port))
		}
	}
	b.handOut(helper.Offered, fds)
}

// address4 gives the loopback device a further address and its network
// (netdevice(7)).
func (b *builder) address4(control arg, n int, p netip.Prefix, why string) {
	ifreq := func(a netip.Addr) arg {
		r := make([]byte, 40) // struct ifreq
		copy(r, fmt.Sprintf("lo:%d", n))
		copy(r[16:], sockaddr(netip.AddrPortFrom(a, 0)))
		return b.bytes(r)
	}
	mask := netip.AddrFrom4([4]byte(net.CIDRMask(p.Bits(), 32)))
	b.sys(fmt.Sprintf("address %v of the loopback", p.Addr()), why, unix.SYS_IOCTL, control, num(unix.SIOCSIFADDR), ifreq(p.Addr()))
	b.sys(fmt.Sprintf("network %v of the loopback", p.Masked()), "", unix.SYS_IOCTL, control, num(unix.SIOCSIFNETMASK), ifreq(mask))
}

// address6 makes an address of IPv6 local by a route (rtnetlink(7)). As one of the
// device it could be used only when a thread of the kernel has come round to it.
// The answer would come as a message: another socket tells.
func (b *builder) address6(routes arg, a netip.Addr) {
	put := binary.NativeEndian
	body := make([]byte, unix.SizeofRtMsg) // struct rtmsg
	copy(body, []byte{unix.AF_INET6, 128, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL})
	attribute := func(kind uint16, value []byte) {
		body = append(put.AppendUint16(put.AppendUint16(body, uint16(4+len(value))), kind), value...)
	}
	attribute(unix.RTA_DST, a.AsSlice())
	attribute(unix.RTA_OIF, put.AppendUint32(nil, 1)) // the loopback device is always the first
	head := put.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	head = put.AppendUint16(put.AppendUint16(head, unix.RTM_NEWROUTE), unix.NLM_F_REQUEST|unix.NLM_F_CREATE)
	msg := append(append(head, make([]byte, 8)...), body...)
	b.sys(fmt.Sprintf("route to %v", a), "allowed as an address", unix.SYS_WRITE, routes, b.bytes(msg), num(len(msg)))
	probe, sa := b.cell(), sockaddr(netip.AddrPortFrom(a, 9))
	b.sys("socket for UDP", "", unix.SYS_SOCKET, num(unix.AF_INET6), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), num(0)).to = probe
	b.sys(fmt.Sprintf("look for a route to %v", a), "sends nothing", unix.SYS_CONNECT, probe, b.bytes(sa), num(len(sa)))
}

// sockaddr is struct sockaddr_in or sockaddr_in6 (ip(7), ipv6(7)).
func sockaddr(a netip.AddrPort) []byte {
	s := make([]byte, 16, 28)
	family := unix.AF_INET
	if a.Addr().Is6() {
		family, s = unix.AF_INET6, s[:28]
		copy(s[8:], a.Addr().AsSlice())
	} else {
		copy(s[4:], a.Addr().AsSlice())
	}
	binary.NativeEndian.PutUint16(s, uint16(family))
	binary.BigEndian.PutUint16(s[2:], a.Port())
	return s
}

// socket makes a socket at an address.
func (b *builder) socket(fd arg, kind int, at netip.AddrPort) {
	family, proto := unix.AF_INET, "TCP"
	if at.Addr().Is6() {
		family = unix.AF_INET6
	}
	if kind == unix.SOCK_DGRAM {
		proto = "UDP"
	}
	b.sys("socket for "+proto, "", unix.SYS_SOCKET, num(family), num(kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), num(0)).to = fd
	if at.Addr().Is6() {
		b.sys("option to bind any address", "it is that of a route", unix.SYS_SETSOCKOPT, fd, num(unix.IPPROTO_IPV6), num(unix.IPV6_FREEBIND), b.words(1), num(4))
	}
	sa := sockaddr(at)
	b.sys(fmt.Sprintf("bind %s %v", proto, at), "", unix.SYS_BIND, fd, b.bytes(sa), num(len(sa)))
	if kind == unix.SOCK_STREAM {
		b.sys(fmt.Sprintf("listen on %v", at), "", unix.SYS_LISTEN, fd, num(backlog))
	}
}

// rights is a control message that carries descriptors (cmsg(3)).
type rights struct {
	at arg
	n  int
}

func (b *builder) rights(n int) rights {
	msg := make([]byte, unix.CmsgSpace(4*n)+4) // the last cell is wider than a descriptor
	h := (*unix.Cmsghdr)(unsafe.Pointer(&msg[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_RIGHTS
	h.SetLen(unix.CmsgLen(4 * n))
	return rights{b.bytes(msg), n}
}

// cells yields the places of the descriptors, one after the other. Each has to
// be filled before the next, into whose place it reaches.
func (r rights) cells() func() arg {
	i := 0
	return func() arg {
		c := arg{isCell, r.at.val + uint64(unix.CmsgLen(4*i))}
		i++
		return c
	}
}

// handOut sends descriptors to the parent.
func (b *builder) handOut(kind uint64, r rights) {
	packet := b.words(kind, 0)
	iov := b.words(address(packet.val), uint64(unsafe.Sizeof(helper.Packet{})))
	msg := b.words(0, 0, address(iov.val), 1, address(r.at.val), uint64(unix.CmsgSpace(4*r.n)), 0) // struct msghdr (recvmsg(2))
	b.sys("hand them to the parent", "", unix.SYS_SENDMSG, num(helper.SocketFD), msg, num(unix.MSG_NOSIGNAL))
}

// nameFiles puts ours over those of the host.
func (b *builder) nameFiles(h *host) {
	for i, f := range h.nameFiles {
		ours := fmt.Sprintf("/dev/.names-%d", i)
		fd := b.cell()
		b.sys("make "+ours, "", unix.SYS_OPENAT, fdcwd, b.str(ours), num(unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC), num(0o644)).to = fd
		b.sys(fmt.Sprintf("write %d bytes", len(f.content)), "", unix.SYS_WRITE, fd, b.bytes(f.content), num(len(f.content)))
		b.sys("readable for all", "whatever the umask", unix.SYS_FCHMOD, fd, num(0o644))
		b.mount(ours, f.point, "", unix.MS_BIND, "", "names are looked up with us")
		b.mount("", f.point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "", "read-only")
	}
}

// startRelay serves the sockets that the helper handed out.
func startRelay(hosts sandbox.Hosts, files []*os.File) (_ *relay.Relay, err error) {
	var s relay.Sockets
	var made []io.Closer
	defer func() {
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			for _, c := range made {
				c.Close()
			}
		}
	}()
	if len(files) < 2 {
		return nil, errors.New("the helper handed out no sockets")
	}
	if s.DNS, err = net.FilePacketConn(files[0]); err != nil {
		return nil, err
	}
	made = append(made, s.DNS)
	for i, f := range files[1:] {
		l, err := net.FileListener(f)
		if err != nil {
			return nil, err
		}
		made = append(made, l)
		if i == 0 {
			s.DNSTCP = l
		} else {
			s.TCP = append(s.TCP, l)
		}
	}
	return relay.Start(hosts, s), nil
}
