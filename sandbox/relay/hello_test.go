package relay

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// helloOf is what a real client sends first.
func helloOf(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go tls.Client(theirs, c).Handshake()
	buf := make([]byte, 16<<10)
	n, err := ours.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

func helloFor(t testing.TB, name string) []byte {
	return helloOf(t, &tls.Config{ServerName: name, InsecureSkipVerify: true})
}

// records spreads a message of one record over records of n bytes.
func records(hello []byte, n int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; {
		part := body[:min(n, len(body))]
		out = append(out, hello[:3]...)
		out = binary.BigEndian.AppendUint16(out, uint16(len(part)))
		out = append(out, part...)
		body = body[len(part):]
	}
	return out
}

// extension makes a client hello with one extension.
func extension(kind int, content string) []byte {
	u16 := func(n int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
	ext := u16(kind) + u16(len(content)) + content
	return helloWith(u16(len(ext)) + ext)
}

func helloWith(extensions string) []byte {
	u16 := func(n int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
	body := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + u16(2) + "\x13\x01" + "\x01\x00" + extensions
	msg := "\x01\x00" + u16(len(body)) + body
	return []byte("\x16\x03\x01" + u16(len(msg)) + msg)
}

func TestParseHello(t *testing.T) {
	name := func(s string) string { // a list of one host
		u16 := func(n int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
		return u16(len(s)+3) + "\x00" + u16(len(s)) + s
	}
	real := helloFor(t, "good.example")
	two := "\x00\x0a\x00\x00\x02ab\x00\x00\x02cd"
	for _, c := range []struct {
		what  string
		b     []byte
		name  string
		state helloState
	}{
		{"a client's", real, "good.example", helloDone},
		{"with data behind it", append(append([]byte{}, real...), "more"...), "good.example", helloDone},
		{"of an old client", helloOf(t, &tls.Config{ServerName: "old.example", MaxVersion: tls.VersionTLS12}), "old.example", helloDone},
		{"without a name", helloOf(t, &tls.Config{InsecureSkipVerify: true}), "", helloDone},
		{"for an address", helloOf(t, &tls.Config{ServerName: "192.0.2.1", InsecureSkipVerify: true}), "", helloDone},
		{"in records of 7 bytes", records(real, 7), "good.example", helloDone},
		{"in records of 1 byte", records(real, 1), "good.example", helloDone},
		{"its first byte", real[:1], "", helloIncomplete},
		{"without its last byte", real[:len(real)-1], "", helloIncomplete},
		{"nothing yet", nil, "", helloIncomplete},
		{"text", []byte("GET / HTTP/1.1\r\n"), "", helloPlain},
		{"ssh", []byte("SSH-2.0-x\r\n"), "", helloPlain},
		{"behind an alert", append([]byte("\x15\x03\x01\x00\x02\x01\x5a"), real...), "", helloBad},
		{"behind an alert, the first bytes", []byte("\x15\x03"), "", helloBad},
		{"behind a record of no known type", append([]byte("G\x03\x01\x00\x01x"), real...), "", helloBad},
		{"the first byte of text", []byte("G"), "", helloIncomplete},
		{"an alert in between", append(records(real, 20)[:25], "\x15\x03\x01\x00\x02\x02\x00"...), "", helloBad},
		{"an empty record", []byte("\x16\x03\x01\x00\x00"), "", helloBad},
		{"a record that is too long", []byte("\x16\x03\x01\x40\x01"), "", helloBad},
		{"a message that is too long", []byte("\x16\x03\x01\x00\x04\x01\xff\xff\xff"), "", helloBad},
		{"another message", []byte("\x16\x03\x01\x00\x04\x02\x00\x00\x00"), "", helloBad},
		{"without extensions", helloWith(""), "", helloDone},
		{"made by hand", extension(0, name("good.example")), "good.example", helloDone},
		{"two names in a list", extension(0, two), "", helloBad},
		{"no name in a list", extension(0, "\x00\x00"), "", helloBad},
		{"an empty name", extension(0, name("")), "", helloBad},
		{"a name that is longer than any", extension(0, name(strings.Repeat("x", 256))), "", helloBad},
		{"another sort of name", extension(0, "\x00\x05\x01\x00\x02ab"), "", helloBad},
		{"a name behind the list", extension(0, name("good.example")+"x"), "", helloBad},
		{"a list that is too long", extension(0, "\x00\x09\x00\x00\x02ab"), "", helloBad},
		{"extensions that are too long", helloWith("\x00\x09\x00\x00"), "", helloBad},
		{"bytes behind the extensions", helloWith("\x00\x00x"), "", helloBad},
	} {
		name, state := parseHello(c.b)
		if name != c.name || state != c.state {
			t.Errorf("%s: %q, %d, want %q, %d", c.what, name, state, c.name, c.state)
		}
	}
	// The same extension twice.
	list := string(extension(0, name("good.example"))[5+4+2+32+1+4+2+2:])
	twice := helloWith(string(binary.BigEndian.AppendUint16(nil, uint16(2*len(list)))) + list + list)
	if name, state := parseHello(twice); state != helloBad {
		t.Errorf("two names: %q, %d", name, state)
	}
}

func TestReadHello(t *testing.T) {
	const present, require = sandbox.ServerNameIfPresent, sandbox.ServerNameRequire
	for _, c := range []struct {
		what string
		b    []byte
		want sandbox.ServerName
		err  string
	}{
		{"the name", helloFor(t, "good.example"), require, ""},
		{"the name in capitals", helloFor(t, "GOOD.example"), present, ""},
		{"another name", helloFor(t, "bad.example"), present, "another server"},
		{"a name below", helloFor(t, "x.good.example"), present, "another server"},
		{"no name", helloWith(""), present, ""},
		{"no name where one is required", helloWith(""), require, "no server"},
		{"not TLS", []byte("SSH-2.0-x\r\n"), present, ""},
		{"not TLS where it is required", []byte("SSH-2.0-x\r\n"), require, "not TLS"},
		{"half of it", helloFor(t, "good.example")[:50], present, "ended"},
		{"nothing", nil, present, "ended"},
		{"broken", []byte("\x16\x03\x01\x00\x00"), present, "is none"},
		{"in more pieces than anybody makes", records(helloFor(t, "good.example"), 1), present, "pieces"},
	} {
		ours, theirs := net.Pipe()
		go func() {
			for i := range c.b { // a byte at a time
				theirs.Write(c.b[i : i+1])
			}
			theirs.Close()
		}()
		got, err := readHello(ours, "good.example", c.want)
		ours.Close()
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.what, err, c.err)
		case c.err == "" && !strings.HasPrefix(string(c.b), string(got)):
			t.Errorf("%s: the bytes that were read have changed", c.what)
		}
	}
}

// silent is a client that connects and sends nothing.
type silent struct {
	net.Conn
	deadline time.Time
}

func (s *silent) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		s.deadline = t
	}
	return nil
}
func (s *silent) Read([]byte) (int, error) { return 0, errors.New("i/o timeout") }

func TestReadHelloDoesNotWait(t *testing.T) {
	s := &silent{}
	if _, err := readHello(s, "good.example", sandbox.ServerNameIfPresent); err == nil {
		t.Error("a connection on which nothing comes is let through")
	}
	if left := time.Until(s.deadline); left > helloTimeout {
		t.Errorf("it may take %v", left)
	}
}

// oneWay is a connection from which only b comes.
type oneWay struct {
	net.Conn
	io.Reader
}

func (o oneWay) Read(p []byte) (int, error)     { return o.Reader.Read(p) }
func (oneWay) Write(p []byte) (int, error)      { return len(p), nil }
func (oneWay) SetReadDeadline(time.Time) error  { return nil }
func (oneWay) SetWriteDeadline(time.Time) error { return nil }

// FuzzHello parses anything, and never finds another name than a TLS server
// would.
func FuzzHello(f *testing.F) {
	f.Add(helloFor(f, "good.example"))
	f.Add(records(helloFor(f, "good.example"), 100))
	f.Add(helloWith(""))
	f.Add(extension(0, "\x00\x0a\x00\x00\x02ab\x00\x00\x02cd"))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, state := parseHello(b)
		var theirs *string
		tls.Server(oneWay{Reader: strings.NewReader(string(b))}, &tls.Config{
			GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				theirs = &h.ServerName
				return nil, errors.New("that is all")
			},
		}).Handshake()
		if theirs == nil {
			return
		}
		switch state {
		case helloDone:
			if name != *theirs {
				t.Errorf("we read %q, a server reads %q", name, *theirs)
			}
		case helloPlain, helloIncomplete:
			t.Errorf("a server reads a hello for %q, we read none (%d)", *theirs, state)
		}
	})
}
