package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Host is the name or the address of a machine in the one spelling that is
// compared: a name in lower case without a final dot, an IPv4 address for one
// that is mapped into IPv6. Hosts can be compared with ==. The zero value is a
// host that is not known.
type Host struct {
	name string
	addr netip.Addr
}

// HostError is text that is not a host, or not a pattern of hosts.
type HostError struct {
	Text    string
	Problem string
}

func (e *HostError) Error() string {
	return fmt.Sprintf("host %q: %s", e.Text, e.Problem)
}

// ParseHost reads a host that can be read in one way only: a name of letters,
// digits, hyphens and underscores whose last label is no number (RFC 1123,
// section 2.1; RFC 3696, section 2), an IPv4 address of four decimal numbers
// without leading zeros, or an IPv6 address in brackets without a zone. All
// else is a *HostError, because what one program takes for a name below a
// domain another cuts short, maps to other letters (RFC 5895) or reads as a
// number (inet_aton(3)).
func ParseHost(s string) (Host, error) {
	wrong := func(problem string) (Host, error) { return Host{}, &HostError{s, problem} }
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		switch {
		case !closed || err != nil || !a.Is6():
			return wrong("no IPv6 address in brackets, as in [::1]")
		case a.Zone() != "":
			return wrong("an address with a zone, which names an interface of this machine")
		}
		return HostOf(a), nil
	}
	name := strings.TrimSuffix(s, ".")
	if name == "" || len(name) > 253 {
		return wrong("a name has 1 to 253 bytes")
	}
	var last string
	for rest, more := name, true; more; {
		last, rest, more = strings.Cut(rest, ".")
		switch {
		case last == "" || len(last) > 63:
			return wrong("a label has 1 to 63 bytes")
		case last[0] == '-' || last[len(last)-1] == '-':
			return wrong("a label begins or ends with a hyphen")
		}
		for i := range len(last) {
			switch c := last[i]; {
			case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_':
			case c >= 0x80:
				return wrong("write a name in another script in its ASCII form, xn--…: programs do not agree on it")
			case c == ':':
				return wrong("write an IPv6 address in brackets, as in [::1]")
			default:
				return wrong(fmt.Sprintf("the character %q", c))
			}
		}
	}
	if last[0] < '0' || last[0] > '9' {
		return Host{name: strings.ToLower(name)}, nil // of ASCII: some other letters become one
	}
	a, err := netip.ParseAddr(name)
	if err != nil || strings.HasSuffix(s, ".") {
		return wrong("write an address as four decimal numbers, as in 127.0.0.1")
	}
	return HostOf(a), nil
}

// HostOf is the host of an address. A zone is dropped.
func HostOf(a netip.Addr) Host { return Host{addr: a.Unmap().WithZone("")} }

// ParseHostPort reads HOST or HOST:PORT. Port 0 means that none was given.
func ParseHostPort(s string) (h Host, port int, err error) {
	host, digits, ok := cutPort(s)
	if ok {
		if port, ok = portNumber(digits); !ok {
			return Host{}, 0, &HostError{s, "a port is a number from 1 to 65535"}
		}
	}
	h, err = ParseHost(host)
	return h, port, err
}

// cutPort separates what follows the colon behind a host. An IPv6 address
// without brackets has none.
func cutPort(s string) (host, port string, ok bool) {
	if k := strings.IndexByte(s, ']'); s != "" && s[0] == '[' && k > 0 && k+1 < len(s) && s[k+1] == ':' {
		return s[:k+1], s[k+2:], true
	}
	if strings.Count(s, ":") == 1 {
		return strings.Cut(s, ":")
	}
	return s, "", false
}

func portNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil && n > 0 && s[0] != '0' && s[0] != '+'
}

// Name is the name, or "" for an address.
func (h Host) Name() string { return h.name }

// Addr is the address; it is not valid for a name.
func (h Host) Addr() netip.Addr { return h.addr }

// Known reports whether h is not the zero value.
func (h Host) Known() bool { return h != Host{} }

// String is the host as ParseHost reads it; "" for the zero value.
func (h Host) String() string {
	switch {
	case !h.addr.IsValid():
		return h.name
	case h.addr.Is6():
		return "[" + h.addr.String() + "]"
	}
	return h.addr.String()
}

// WithPort is HOST:PORT as ParseHostPort reads it; port 0 is left out.
func (h Host) WithPort(port int) string {
	if port == 0 {
		return h.String()
	}
	return h.String() + ":" + strconv.Itoa(port)
}

// HostPattern stands for hosts and ports:
//
//	example.com        this name
//	*.example.com      every name below it, at any depth, without itself
//	192.0.2.1, [::1]   this address
//	*                  every host, known or not
//
// each followed by :PORT for one port, :* for every port, or nothing, which
// means what Allows and Matches say. The zero value stands for no host.
type HostPattern struct {
	host  Host // with below: what the names are below
	below bool
	all   bool
	port  int // 0 = none is named, anyPort = every one
}

const anyPort = -1

// ParseHostPattern reads a pattern; an error is a *HostError.
func ParseHostPattern(s string) (HostPattern, error) {
	var p HostPattern
	host, port, ok := cutPort(s)
	if ok && port == "*" {
		p.port = anyPort
	} else if ok {
		if p.port, ok = portNumber(port); !ok {
			return HostPattern{}, &HostError{s, "a port is a number from 1 to 65535, or *"}
		}
	}
	if host == "*" {
		p.all = true
		return p, nil
	}
	host, p.below = strings.CutPrefix(host, "*.")
	h, err := ParseHost(host)
	if err != nil {
		if strings.Contains(host, "*") {
			err.(*HostError).Problem = "* stands alone, or for the first labels, as in *.example.com"
		}
		err.(*HostError).Text = s
		return HostPattern{}, err
	}
	if p.below && h.name == "" {
		return HostPattern{}, &HostError{s, "nothing is below an address"}
	}
	p.host = h
	return p, nil
}

// Host is the one host that the pattern stands for; the zero value if there are
// more.
func (p HostPattern) Host() Host {
	if p.below || p.all {
		return Host{}
	}
	return p.host
}

// Port is the port that the pattern names, 0 for every one; named is false where
// it names none.
func (p HostPattern) Port() (port int, named bool) { return max(p.port, 0), p.port != 0 }

// Matches reports whether the pattern holds for a connection, in the sense of
// what denies and asks: without a port in the pattern every port counts, and a
// port that is not known (0) counts as the one in the pattern.
func (p HostPattern) Matches(h Host, port int) bool {
	return p.covers(h) && (p.port <= 0 || port == 0 || p.port == port)
}

// Allows reports whether the pattern holds for a connection, in the sense of
// what opens it: without a port in the pattern those of the web, 80 and 443,
// count, and a port that is not known (0) only counts where every one does.
func (p HostPattern) Allows(h Host, port int) bool {
	if !p.covers(h) {
		return false
	}
	switch p.port {
	case anyPort:
		return true
	case 0:
		return port == 80 || port == 443
	}
	return p.port == port
}

func (p HostPattern) covers(h Host) bool {
	switch {
	case p.all:
		return true
	case !p.host.Known() || !h.Known():
		return false
	case p.below:
		sub, ok := strings.CutSuffix(h.name, p.host.name)
		return ok && strings.HasSuffix(sub, ".")
	}
	return p.host == h
}

// String is the pattern as ParseHostPattern reads it; "" for the zero value.
func (p HostPattern) String() string {
	s := p.host.String()
	switch {
	case p.all:
		s = "*"
	case p.below:
		s = "*." + s
	}
	switch p.port {
	case 0:
		return s
	case anyPort:
		return s + ":*"
	}
	return s + ":" + strconv.Itoa(p.port)
}
