package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

const (
	// maxHello bounds a client hello and the records that it comes in, in bytes.
	maxHello = 64 << 10
	// maxReads bounds the pieces that it comes in: each time all is read anew, by a
	// process that no limit of the command's holds.
	maxReads = 2048
)

// readHello reads the first bytes of a connection until they tell which host it
// is for, and returns them. It is an error if that is another one than host, if
// the bytes look like TLS and are none, or if nothing comes.
func readHello(c net.Conn, host string, want sandbox.ServerName) ([]byte, error) {
	c.SetReadDeadline(time.Now().Add(helloTimeout))
	defer c.SetReadDeadline(time.Time{})
	buf := make([]byte, 0, 4096)
	for reads := 0; ; reads++ {
		name, state := parseHello(buf)
		switch {
		case state == helloBad:
			return nil, errors.New("it begins like TLS and is none")
		case state == helloIncomplete && (len(buf) >= maxHello || reads == maxReads):
			return nil, errors.New("TLS begins in too many pieces")
		case state == helloIncomplete:
		case state == helloPlain && want == sandbox.ServerNameRequire:
			return nil, errors.New("it is not TLS")
		case state == helloPlain:
			return buf, nil
		case name == "" && want == sandbox.ServerNameRequire:
			return nil, errors.New("TLS names no server")
		case name == "" || strings.EqualFold(name, host):
			return buf, nil
		default:
			return nil, fmt.Errorf("TLS names another server, %q", name)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := c.Read(buf[len(buf):cap(buf)])
		if n == 0 && err != nil {
			return nil, errors.New("it ended before TLS named a server")
		}
		buf = buf[:len(buf)+n]
	}
}

type helloState uint8

const (
	helloIncomplete helloState = iota
	helloPlain                 // not TLS
	helloBad                   // begins like TLS and is not, or is longer than any
	helloDone
)

// parseHello finds the server's name in the beginning of a TLS connection
// (RFC 8446, sections 4.1.2 and 5.1; RFC 6066, section 3). The message may be
// spread over several records.
func parseHello(b []byte) (name string, state helloState) {
	const (
		handshake   = 22
		clientHello = 1
		maxRecord   = 1 << 14
	)
	var msg []byte
	for first := true; ; first = false {
		switch {
		// Servers pass over records of other types, such as a warning or one that
		// they do not know, to get to the client hello. So the version tells.
		case len(b) > 1 && b[1] != 3:
			if first {
				return "", helloPlain
			}
			return "", helloBad
		case len(b) > 1 && b[0] != handshake:
			return "", helloBad
		case len(b) < 5:
			return "", helloIncomplete
		}
		n := int(binary.BigEndian.Uint16(b[3:]))
		if n == 0 || n > maxRecord || len(msg)+n > maxHello {
			return "", helloBad
		}
		msg = append(msg, b[5:min(5+n, len(b))]...)
		if len(msg) > 0 && msg[0] != clientHello {
			return "", helloBad
		}
		if len(msg) >= 4 {
			length := int(msg[1])<<16 | int(binary.BigEndian.Uint16(msg[2:]))
			if length > maxHello {
				return "", helloBad
			}
			if len(msg) >= 4+length {
				name, ok := serverName(msg[4 : 4+length])
				if !ok {
					return "", helloBad
				}
				return name, helloDone
			}
		}
		if len(b) < 5+n {
			return "", helloIncomplete
		}
		b = b[5+n:]
	}
}

// serverName returns the name in the body of a client hello, or "" if it has
// none.
func serverName(body []byte) (name string, ok bool) {
	m := message{body, true}
	m.skip(2 + 32) // version, random
	m.vector(1)    // session
	m.vector(2)    // cipher suites
	m.vector(1)    // compression methods
	if m.empty() { // no extensions
		return "", m.ok
	}
	extensions := message{m.vector(2), m.ok}
	seen := false
	for m.empty() && extensions.more() {
		kind := extensions.number(2)
		content := message{extensions.vector(2), extensions.ok}
		if kind != 0 {
			continue
		}
		list := message{content.vector(2), content.ok}
		sort := list.number(1)
		host := list.vector(2)
		// One list with one host, or two readers see different ones; and no longer
		// than a name can be (RFC 1035, section 2.3.4), as it is told.
		if seen || sort != 0 || !list.ok || !list.empty() || !content.empty() || len(host) == 0 || len(host) > 255 {
			return "", false
		}
		name, seen = string(host), true
	}
	return name, m.ok && m.empty() && extensions.ok
}

// message is read from its front. What is too short is not ok and stays so.
type message struct {
	rest []byte
	ok   bool
}

func (m *message) empty() bool { return len(m.rest) == 0 }
func (m *message) more() bool  { return m.ok && len(m.rest) > 0 }

func (m *message) skip(n int) []byte {
	if !m.ok || len(m.rest) < n {
		m.ok, m.rest = false, nil
		return nil
	}
	b := m.rest[:n]
	m.rest = m.rest[n:]
	return b
}

// number reads n bytes, the most significant first.
func (m *message) number(n int) int {
	x := 0
	for _, b := range m.skip(n) {
		x = x<<8 | int(b)
	}
	return x
}

// vector reads bytes behind their number, which takes n bytes.
func (m *message) vector(n int) []byte { return m.skip(m.number(n)) }
