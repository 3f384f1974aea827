package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// The program testnet runs a command in a network of its own that leads nowhere,
// in which servers play all the machines of the world:
//
//	testnet DIR COMMAND...
//
// DIR/www is what the web servers serve, on the ports of webPorts, below a
// certificate of DIR/ca.pem. DIR/log gets a line for each connection ("tcp
// ADDRESS"), each name that their resolver is asked for ("dns NAME"), and each end
// of a page that never ends ("left /slow").
const netStage = "SANDBOX_EXEC_TESTNET"

var testWebPorts = []int{80, 443, 8080}

// What the world's resolver answers. "!" before an address means that only the
// first answer has it; later ones have what follows.
var testZone = map[string]string{
	"good.example":     "203.0.113.10",
	"also.example":     "203.0.113.10",
	"bad.example":      "203.0.113.11",
	"a.wide.example":   "203.0.113.12",
	"six.example":      "2001:db8::10",
	"alias.example":    "good.example",
	"internal.example": "10.9.8.7",
	"meta.example":     "169.254.169.254",
	"loop.example":     "127.0.0.1",
	"loop6.example":    "::1",
	"mapped.example":   "::ffff:127.0.0.1",
	"nat64.example":    "64:ff9b::7f00:1",
	"own.example":      "203.0.113.99",
	"rebind.example":   "!203.0.113.10 127.0.0.1",
	"mixed.example":    "127.0.0.1,203.0.113.10",
}

const testHosts = "127.0.0.1 localhost\n203.0.113.13 listed.example\n127.0.0.1 mine.example\n"

func testnet() {
	fail := func(what string, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "testnet: %s: %v\n", what, err)
			os.Exit(125)
		}
	}
	dir, argv := os.Args[1], os.Args[2:]
	if os.Getenv(netStage) == "" {
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Args[0] = os.Args[0]
		cmd.Env = append(os.Environ(), netStage+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
		}
		os.Exit(exitCode(cmd.Run()))
	}
	os.Unsetenv(netStage)
	// The command must not have what makes this network.
	fail("ambient capabilities", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
	fail("mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for name, text := range map[string]string{"resolv.conf": "nameserver 203.0.113.53\nsearch wide.example\n", "hosts": testHosts} {
		file := filepath.Join(dir, name)
		fail("write", os.WriteFile(file, []byte(text), 0o644))
		real, err := filepath.EvalSymlinks("/etc/" + name)
		fail("look", err)
		fail("bind "+real, unix.Mount(file, real, "", unix.MS_BIND, ""))
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	fail("socket", err)
	ifr, _ := unix.NewIfreq("lo")
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	fail("lo", unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr))
	ifr, _ = unix.NewIfreq("lo:0")
	fail("address", ifr.SetInet4Addr([]byte{203, 0, 113, 99}))
	fail("lo:0", unix.IoctlIfreq(s, unix.SIOCSIFADDR, ifr))
	for _, p := range []string{"203.0.113.0/24", "10.9.8.0/24", "169.254.169.254/32", "64:ff9b::/96", "2001:db8::/64"} {
		fail("route "+p, localRoute(netip.MustParsePrefix(p)))
	}
	logFile, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	fail("log", err)
	fail("servers", serveWorld(dir, logFile))

	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	os.Exit(exitCode(cmd.Run()))
}

func exitCode(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testnet:", err)
		return 125
	}
	return 0
}

// localRoute makes every address of a prefix this machine's, without giving it
// to an interface (rtnetlink(7)).
func localRoute(p netip.Prefix) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	family := byte(unix.AF_INET)
	if p.Addr().Is6() {
		family = unix.AF_INET6
	}
	var b bytes.Buffer
	b.Write((*[unix.SizeofRtMsg]byte)(unsafe.Pointer(&unix.RtMsg{
		Family: family, Dst_len: uint8(p.Bits()), Table: unix.RT_TABLE_LOCAL,
		Protocol: unix.RTPROT_STATIC, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL,
	}))[:])
	attr := func(kind uint16, v []byte) {
		binary.Write(&b, binary.NativeEndian, []uint16{uint16(4 + len(v)), kind})
		b.Write(v)
	}
	attr(unix.RTA_DST, p.Addr().AsSlice())
	attr(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, 1))
	h := unix.NlMsghdr{Len: uint32(unix.SizeofNlMsghdr + b.Len()), Type: unix.RTM_NEWROUTE, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE}
	msg := append((*[unix.SizeofNlMsghdr]byte)(unsafe.Pointer(&h))[:], b.Bytes()...)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	r := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, r, 0)
	if err == nil && n >= 20 {
		if e := int32(binary.NativeEndian.Uint32(r[16:])); e != 0 {
			err = syscall.Errno(-e)
		}
	}
	return err
}

// serveWorld starts the servers.
func serveWorld(dir string, log io.Writer) error {
	certificate, err := makeCertificate(dir)
	if err != nil {
		return err
	}
	files := http.FileServer(http.Dir(filepath.Join(dir, "www")))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/where":
			fmt.Fprintf(w, "host %s at %v\n", r.Host, r.Context().Value(http.LocalAddrContextKey))
		case "/slow": // for as long as somebody waits
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			fmt.Fprintln(log, "left", r.URL.Path)
		default:
			files.ServeHTTP(w, r)
		}
	})
	for _, port := range testWebPorts {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		l = logged{l, log}
		if port == 443 {
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}})
		}
		go http.Serve(l, handler)
	}
	c, err := net.ListenPacket("udp", "203.0.113.53:53")
	if err != nil {
		return err
	}
	go resolveWorld(c, log)
	return nil
}

// logged writes where each connection arrived.
type logged struct {
	net.Listener
	log io.Writer
}

func (l logged) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		fmt.Fprintln(l.log, "tcp", c.LocalAddr())
	}
	return c, err
}

// resolveWorld is the resolver of the world.
func resolveWorld(c net.PacketConn, log io.Writer) {
	var mu sync.Mutex
	asked := map[string]bool{}
	buf := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
		fmt.Fprintln(log, "dns", name)
		m.Response, m.Additionals = true, nil
		value, ok := testZone[name]
		if !ok {
			m.RCode = dnsmessage.RCodeNameError
		}
		mu.Lock()
		if first, later, once := strings.Cut(value, " "); once {
			if value = first[1:]; asked[name] {
				value = later
			}
			asked[name] = asked[name] || q.Type == dnsmessage.TypeA
		}
		mu.Unlock()
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 0}
		if target, ok := testZone[value]; ok {
			to := dnsmessage.MustNewName(value + ".")
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.CNAMEResource{CNAME: to}})
			head.Name, value = to, target
		}
		for text := range strings.SplitSeq(value, ",") {
			a, err := netip.ParseAddr(text)
			switch {
			case err != nil:
			case a.Is4() && q.Type == dnsmessage.TypeA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
			case a.Is6() && q.Type == dnsmessage.TypeAAAA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		if out, err := m.Pack(); err == nil {
			c.WriteTo(out, from)
		}
	}
}

// makeCertificate makes one for every name of the zone, in DIR/ca.pem.
func makeCertificate(dir string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the world"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for name := range testZone {
		template.DNSNames = append(template.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	err = os.WriteFile(filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
