package relay

import (
	"net/netip"
	"strings"
	"sync"
)

// Resolver is where the process finds its DNS, the first address of Range.
var Resolver = netip.AddrFrom4([4]byte{198, 18, 0, 1})

// Bits is how long the prefix is of the range that holds Resolver and the
// addresses that stand for names: that of RFC 2544, which is never routed.
const Bits = 15

// names gives each name an address of its own for as long as the process runs,
// so that one that a program has kept never means another name. When all are
// given away a new name gets none.
type names struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	next   netip.Addr
	left   int
}

// init sets up the addresses that stand for themselves.
func (n *names) init(addresses []netip.Addr) {
	n.byName, n.byAddr = map[string]netip.Addr{}, map[netip.Addr]string{}
	n.next, n.left = Resolver.Next(), maxNames
	for _, a := range addresses {
		n.byAddr[a.Unmap()] = a.Unmap().String()
	}
}

// of returns the address that stands for a name.
func (n *names) of(name string) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.byName[name]; ok {
		return a, true
	}
	if n.left == 0 {
		return netip.Addr{}, false
	}
	a := n.next
	for n.byAddr[a] != "" { // somebody allowed this very address
		a = a.Next()
	}
	n.next, n.left = a.Next(), n.left-1
	n.byName[name], n.byAddr[a] = a, name
	return a, true
}

// at returns what an address stands for.
func (n *names) at(a netip.Addr) (host string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, ok = n.byAddr[a]
	return host, ok
}

// hostName is a name from a DNS message in the form that is judged. Only letters,
// digits, hyphens and underscores pass: what one reader takes for a part of a
// name, another cuts it short at.
func hostName(s string) (string, bool) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if s == "" || len(s) > 253 {
		return "", false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
		last = label
	}
	// Or it is an address in one of its odd spellings (inet_aton(3)).
	return s, last[0] < '0' || last[0] > '9'
}
