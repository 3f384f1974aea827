package sandbox

import (
	"net/netip"
	"time"
)

// Network is what a process may reach, each more than the one before it. The
// zero value is off.
type Network uint8

const (
	NetworkOff       Network = iota // nothing but an own loopback where the system has one
	NetworkLocalhost                // an own loopback, or nothing runs
	NetworkAllow                    // also the hosts that Spec.Hosts lets through, or nothing runs
	NetworkHost                     // the host's network
)

func (n Network) String() string {
	return [...]string{"off", "localhost", "allow", "host"}[n]
}

// Hosts says which hosts a process may connect to, by TCP. The zero value lets
// none through.
type Hosts struct {
	// Judge says whether the process may connect to a port of a host, and by
	// which rule: "" if none names it. The host is a name in lower case without
	// a final dot, or an address. It is called from several goroutines. nil
	// refuses all.
	Judge func(host string, port uint16) (allow bool, rule string)
	// Ports are those at which hosts can be reached at all. The process cannot
	// listen on them at all of its addresses.
	Ports []uint16
	// Addresses are those that rules name as such. No other private address is
	// let through, whatever name leads to it.
	Addresses  []netip.Addr
	ServerName ServerName
	Rules      []string // what is let through, for people
}

// ServerName says what becomes of a connection to port 443 by the host that its
// TLS client hello names (RFC 6066, section 3). One that names another host than
// was looked up is refused.
type ServerName uint8

const (
	ServerNameIfPresent ServerName = iota // what names no host is let through
	ServerNameRequire                     // what names no host is refused
	ServerNameOff                         // nobody looks
)

func (s ServerName) String() string { return [...]string{"if-present", "require", "off"}[s] }

// Contact is a host and a port that a process asked for.
type Contact struct {
	Host    string `json:"host"`           // a name or an address
	Port    uint16 `json:"port,omitempty"` // 0: the name was looked up only
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule,omitempty"` // that decided; "" where none names the host
	// Why says why there was no connection, last: it was refused in spite of a
	// rule, or the host could not be reached.
	Why      string    `json:"why,omitempty"`
	Times    int       `json:"times"`          // connections, or questions for the name
	Sent     int64     `json:"sent_bytes"`     // by the process
	Received int64     `json:"received_bytes"` // by the process
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}
