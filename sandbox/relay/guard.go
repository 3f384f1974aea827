package relay

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// addressError is an address that nothing is relayed to.
type addressError struct {
	addr netip.Addr
	why  string
}

func (e *addressError) Error() string { return fmt.Sprintf("its address %v is %s", e.addr, e.why) }

// guard refuses to connect a socket to an address that is refused. It is called
// with each address right before the connect.
func (r *Relay) guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return checkAddress(at.Addr(), r.hosts.Addresses, ownAddresses)
}

// refusedRow is a range of addresses that no name may lead to.
type refusedRow struct {
	prefix string
	why    string
	named  bool // a rule for the very address lets it through
}

// In the order in which they are looked through: RFC 6890 and the registries of
// special-purpose addresses that it began, and what clouds serve their machines.
var refusedRows = []refusedRow{
	{prefix: "169.254.169.254/32", why: "a cloud's metadata"},
	{prefix: "100.100.100.200/32", why: "a cloud's metadata"},
	{prefix: "168.63.129.16/32", why: "a cloud's metadata"},
	{prefix: "192.0.0.192/32", why: "a cloud's metadata"},
	{prefix: "fd00:ec2::/32", why: "a cloud's metadata"},
	{prefix: "fd20:ce::254/128", why: "a cloud's metadata"},
	{prefix: "0.0.0.0/8", why: "this machine"},
	{prefix: "127.0.0.0/8", why: "this machine"},
	{prefix: "169.254.0.0/16", why: "link-local"},
	{prefix: "198.18.0.0/15", why: "not routed"},
	{prefix: "224.0.0.0/4", why: "multicast"},
	{prefix: "255.255.255.255/32", why: "broadcast"},
	{prefix: "10.0.0.0/8", why: "private", named: true},
	{prefix: "172.16.0.0/12", why: "private", named: true},
	{prefix: "192.168.0.0/16", why: "private", named: true},
	{prefix: "100.64.0.0/10", why: "shared by a provider's customers", named: true},
	{prefix: "192.0.0.0/24", why: "of a protocol", named: true},
	{prefix: "240.0.0.0/4", why: "reserved", named: true},
	{prefix: "::/96", why: "this machine"}, // with ::1 and IPv4-compatible ones
	{prefix: "fe80::/10", why: "link-local"},
	{prefix: "fec0::/10", why: "site-local", named: true},
	{prefix: "ff00::/8", why: "multicast"},
	{prefix: "fc00::/7", why: "private", named: true},
	// Each hides an address of IPv4 that cannot be told for sure.
	{prefix: "64:ff9b:1::/48", why: "a translator's", named: true},
	{prefix: "2001::/32", why: "a tunnel's", named: true},
	{prefix: "::ffff:0:0:0/96", why: "a translator's", named: true},
}

var refusedPrefixes = sync.OnceValue(func() []netip.Prefix {
	list := make([]netip.Prefix, len(refusedRows))
	for i, row := range refusedRows {
		list[i] = netip.MustParsePrefix(row.prefix)
	}
	return list
})

// checkAddress says why an address is refused. named are those that rules name;
// own lists those of this machine.
func checkAddress(a netip.Addr, named []netip.Addr, own func() ([]netip.Addr, error)) error {
	a = a.WithZone("")
	mine, err := own()
	if err != nil {
		return err
	}
	isNamed := slices.Contains(named, a.Unmap())
	// Inside of it, too, may stand one.
	for _, inner := range embedded(a) {
		if slices.Contains(mine, inner) {
			return &addressError{a, "this machine's own"}
		}
		for i, p := range refusedPrefixes() {
			row := refusedRows[i]
			switch {
			case !p.Contains(inner) || row.named && isNamed:
			case row.named:
				return &addressError{a, row.why + ", and no rule names that address"}
			default:
				return &addressError{a, row.why}
			}
		}
	}
	return nil
}

// embedded returns an address and those of IPv4 that are written into it:
// mapped ones (RFC 4291), NAT64 (RFC 6052) and 6to4 (RFC 3056).
func embedded(a netip.Addr) []netip.Addr {
	a = a.Unmap()
	if a.Is4() {
		return []netip.Addr{a}
	}
	b := a.As16()
	switch {
	case netip.PrefixFrom(netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b}), 96).Contains(a):
		return []netip.Addr{a, netip.AddrFrom4([4]byte(b[12:]))}
	case b[0] == 0x20 && b[1] == 0x02:
		return []netip.Addr{a, netip.AddrFrom4([4]byte(b[2:6]))}
	}
	return []netip.Addr{a}
}

// ownAddresses are those of this machine's interfaces, as they are now.
func ownAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	out := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out, nil
}
