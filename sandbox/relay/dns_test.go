package relay

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/net/dns/dnsmessage"
)

// allowing lets the listed hosts through at 80 and 443.
func allowing(hosts ...string) sandbox.Hosts {
	return sandbox.Hosts{
		Ports: []uint16{80, 443},
		Judge: func(host string, port uint16) (bool, string) {
			for _, h := range hosts {
				if h == host || strings.HasPrefix(h, "*.") && strings.HasSuffix(host, h[1:]) {
					return true, h
				}
			}
			return false, ""
		},
	}
}

func query(t testing.TB, name string, typ dnsmessage.Type, change ...func(*dnsmessage.Message)) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 0x1234, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: typ, Class: dnsmessage.ClassINET}},
	}
	for _, f := range change {
		f(&m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reply is what an answer says, in short.
func reply(t testing.TB, b []byte) string {
	t.Helper()
	if b == nil {
		return "silence"
	}
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		t.Fatalf("the answer cannot be read: %v", err)
	}
	if !m.Response || m.ID != 0x1234 {
		t.Errorf("not an answer to the query: %v", m.Header)
	}
	s := strings.TrimPrefix(m.RCode.String(), "RCode")
	for _, a := range m.Answers {
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			s += " " + netip.AddrFrom4(b.A).String()
		case *dnsmessage.AAAAResource:
			s += " " + netip.AddrFrom16(b.AAAA).String()
		default:
			s += fmt.Sprintf(" %T", b)
		}
	}
	return s
}

func TestAnswer(t *testing.T) {
	const a, aaaa = dnsmessage.TypeA, dnsmessage.TypeAAAA
	many := func(n int) func(*dnsmessage.Message) {
		return func(m *dnsmessage.Message) {
			for len(m.Questions) < n {
				m.Questions = append(m.Questions, m.Questions[0])
			}
			m.Questions = m.Questions[:n]
		}
	}
	long := strings.Repeat("a", 63) + "."
	for _, c := range []struct {
		name string
		q    []byte
		want string
	}{
		{"allowed", query(t, "good.example.", a), "Success 198.18.0.2"},
		{"in capitals, as resolvers that mix cases do", query(t, "gOOd.Example.", a), "Success 198.18.0.2"},
		{"no IPv6", query(t, "good.example.", aaaa), "Success"},
		{"an alias asked for by itself", query(t, "good.example.", dnsmessage.TypeCNAME), "Success"},
		{"text", query(t, "good.example.", dnsmessage.TypeTXT), "Success"},
		{"all", query(t, "good.example.", dnsmessage.TypeALL), "Success"},
		{"below", query(t, "x.y.wide.example.", a), "Success 198.18.0.3"},
		{"not itself", query(t, "wide.example.", a), "NameError"},
		{"denied", query(t, "bad.example.", a), "NameError"},
		{"data in a denied name", query(t, long+long+"bad.example.", dnsmessage.TypeTXT), "NameError"},
		{"ends like an allowed one", query(t, "notgood.example.", a), "NameError"},
		{"a NUL before an allowed end", query(t, "evil\x00.wide.example.", a), "NameError"},
		{"a blank", query(t, "e vil.wide.example.", a), "NameError"},
		{"bytes", query(t, "\xff\xfe.wide.example.", a), "NameError"},
		{"the root", query(t, ".", a), "NameError"},
		{"an address", query(t, "127.0.0.1.", a), "NameError"},
		{"an address in one number", query(t, "2852039166.", a), "NameError"},
		{"an address in octal", query(t, "0251.0376.0251.0376.", a), "NameError"},
		{"the own machine", query(t, "localhost.", a), "Success 127.0.0.1"},
		{"the own machine, below", query(t, "app.localhost.", aaaa), "Success ::1"},
		{"a service", query(t, "_http._tcp.good.example.", dnsmessage.TypeSRV), "NameError"},
		{"reverse", query(t, "2.0.18.198.in-addr.arpa.", dnsmessage.TypePTR), "NameError"},
		{"another class", query(t, "good.example.", a, func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }), "Refused"},
		{"an update", query(t, "good.example.", a, func(m *dnsmessage.Message) { m.OpCode = 5 }), "NotImplemented"},
		{"an answer", query(t, "good.example.", a, func(m *dnsmessage.Message) { m.Response = true }), "silence"},
		{"no question", query(t, "good.example.", a, many(0)), "FormatError"},
		{"two questions", query(t, "good.example.", a, many(2)), "FormatError"},
		{"cut short", query(t, "good.example.", a)[:20], "FormatError"},
		{"a header alone", query(t, "good.example.", a)[:12], "FormatError"},
		{"less than a header", []byte{0x12, 0x34, 1}, "silence"},
		{"nothing", nil, "silence"},
		{"a name that points to itself", append(query(t, "good.example.", a)[:12], 0xc0, 12, 0, 1, 0, 1), "FormatError"},
	} {
		r := newRelay(allowing("good.example", "*.wide.example"))
		r.names.of("good.example")
		if got := reply(t, r.answer(c.q)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What is asked is told, but for what programs ask by themselves.
func TestAnswerIsNoted(t *testing.T) {
	r := newRelay(allowing("good.example"))
	for _, q := range [][]byte{
		query(t, "good.example.", dnsmessage.TypeA), query(t, "bad.example.", dnsmessage.TypeA), query(t, "bad.example.", dnsmessage.TypeAAAA),
		query(t, "_http._tcp.good.example.", dnsmessage.TypeSRV), query(t, "_x.bad.example.", dnsmessage.TypeA), query(t, "1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR),
		query(t, "localhost.", dnsmessage.TypeA), query(t, "e\x00.example.", dnsmessage.TypeA),
	} {
		r.answer(q)
	}
	var got []string
	for _, c := range r.log.list() {
		got = append(got, fmt.Sprintf("%s %v %q %d", c.Host, c.Allowed, c.Rule, c.Times))
	}
	want := []string{`good.example true "good.example" 1`, `bad.example false "" 2`, "e\x00.example. false \"\" 1"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A name keeps its address; when all are given away, no name gets that of
// another.
func TestNamesRunOut(t *testing.T) {
	r := newRelay(allowing("*.example"))
	ask := func(i int) string {
		return reply(t, r.answer(query(t, fmt.Sprintf("n%d.example.", i), dnsmessage.TypeA)))
	}
	seen := map[string]bool{}
	for i := range maxNames {
		a := ask(i)
		if seen[a] || !strings.HasPrefix(a, "Success 198.1") {
			t.Fatalf("name %d: %q", i, a)
		}
		seen[a] = true
	}
	if got := ask(maxNames); got != "ServerFailure" {
		t.Errorf("one name too many: %s", got)
	}
	if got := ask(0); got != "Success 198.18.0.2" {
		t.Errorf("the first name has lost its address: %s", got)
	}
	if n := len(r.log.list()); n != maxContacts+1 {
		t.Errorf("%d hosts are remembered", n)
	}
}

func TestNamesLeaveAddressesAlone(t *testing.T) {
	h := allowing("*.example")
	h.Addresses = []netip.Addr{netip.MustParseAddr("198.18.0.2")}
	r := newRelay(h)
	if got := reply(t, r.answer(query(t, "a.example.", dnsmessage.TypeA))); got != "Success 198.18.0.3" {
		t.Error(got)
	}
}

func TestServeDNS(t *testing.T) {
	r := newRelay(allowing("good.example"))
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.serve(Sockets{DNS: udp, DNSTCP: tcp})
	defer r.Stop()
	good := query(t, "good.example.", dnsmessage.TypeA)

	t.Run("UDP", func(t *testing.T) {
		c, err := net.Dial("udp", udp.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// What is too long, or nothing at all, is not answered and stops nobody.
		c.Write(append(good, make([]byte, maxQuery)...))
		c.Write(nil)
		c.Write(good)
		buf := make([]byte, 4096)
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		n, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if got := reply(t, buf[:n]); got != "Success 198.18.0.2" {
			t.Error(got)
		}
	})
	t.Run("TCP", func(t *testing.T) {
		c, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(good))), good...)
		c.Write(append(framed, framed[:7]...)) // one and a half
		c.Write(framed[7:])
		for range 2 {
			head := make([]byte, 2)
			if _, err := io.ReadFull(c, head); err != nil {
				t.Fatal(err)
			}
			m := make([]byte, binary.BigEndian.Uint16(head))
			if _, err := io.ReadFull(c, m); err != nil {
				t.Fatal(err)
			}
			if got := reply(t, m); got != "Success 198.18.0.2" {
				t.Error(got)
			}
		}
		c.Write([]byte{0xff, 0xff})
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("a message of 65535 bytes is waited for: %v", err)
		}
	})
}

// FuzzAnswer answers anything: an answer can be read, is short, goes with the
// question, and no address in it is other than one that stands for a name.
func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "good.example.", dnsmessage.TypeA))
	f.Add(query(f, "evil\x00.example.", dnsmessage.TypeA))
	f.Add(query(f, "localhost.", dnsmessage.TypeAAAA))
	f.Add(append(query(f, "good.example.", dnsmessage.TypeA)[:12], 0xc0, 12, 0, 1, 0, 1))
	f.Fuzz(func(t *testing.T, q []byte) {
		r := newRelay(allowing("*.example"))
		out := r.answer(q)
		if out == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(out); err != nil {
			t.Fatalf("the answer cannot be read: %v", err)
		}
		if len(out) > 512 || len(q) < 2 || m.ID != binary.BigEndian.Uint16(q) || !m.Response {
			t.Fatalf("a bad answer of %d bytes: %v", len(out), m.Header)
		}
		for _, a := range m.Answers {
			if b, ok := a.Body.(*dnsmessage.AResource); ok {
				addr := netip.AddrFrom4(b.A)
				if _, known := r.names.at(addr); !known && !addr.IsLoopback() {
					t.Errorf("%v stands for nothing", addr)
				}
			}
		}
	})
}
