package relay

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

func TestCheckAddress(t *testing.T) {
	own := func() ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8::7")}, nil
	}
	named := []netip.Addr{
		netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254"),
		netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("fd12::1"),
	}
	for _, c := range []struct{ addr, want string }{
		{"203.0.113.8", ""},
		{"2001:db8::8", ""},
		{"2606:4700::1", ""},
		{"10.1.2.3", ""}, // named
		{"::ffff:10.1.2.3", ""},
		{"fd12::1", ""},
		{"10.1.2.4", "private"},
		{"172.16.0.1", "private"},
		{"172.32.0.1", ""},
		{"192.168.1.1", "private"},
		{"100.64.0.1", "shared"},
		{"fd12::2", "private"},
		{"fc00::1", "private"},
		{"fec0::1", "site-local"},
		// No rule lets these through, even one that names them.
		{"127.0.0.1", "this machine"},
		{"127.99.0.1", "this machine"},
		{"0.0.0.0", "this machine"},
		{"0.1.2.3", "this machine"},
		{"::", "this machine"},
		{"::1", "this machine"},
		{"203.0.113.7", "own"},
		{"2001:db8::7", "own"},
		{"169.254.169.254", "metadata"},
		{"169.254.1.1", "link-local"},
		{"100.100.100.200", "metadata"},
		{"168.63.129.16", "metadata"},
		{"192.0.0.192", "metadata"},
		{"fd00:ec2::254", "metadata"},
		{"fd20:ce::254", "metadata"},
		{"fe80::1", "link-local"},
		{"fe80::1%eth0", "link-local"},
		{"224.0.0.1", "multicast"},
		{"239.1.1.1", "multicast"},
		{"ff02::1", "multicast"},
		{"255.255.255.255", "broadcast"},
		{"240.0.0.1", "reserved"},
		{"198.18.0.5", "not routed"},
		// The same, written into IPv6.
		{"::ffff:127.0.0.1", "this machine"},
		{"::ffff:169.254.169.254", "metadata"},
		{"::ffff:203.0.113.7", "own"},
		{"::127.0.0.1", "this machine"},
		{"::ffff:0:127.0.0.1", "translator"},
		{"64:ff9b::a9fe:a9fe", "metadata"},
		{"64:ff9b::7f00:1", "this machine"},
		{"64:ff9b::a00:1", "private"},
		{"64:ff9b::cb00:7107", "own"}, // 203.0.113.7
		{"64:ff9b::cb00:7108", ""},
		{"64:ff9b:1::a9fe:a9fe", "translator"},
		{"2002:a9fe:a9fe::1", "metadata"},
		{"2002:7f00:1::", "this machine"},
		{"2002:a00:1::1", "private"},
		{"2001:0:1::1", "tunnel"},
	} {
		err := checkAddress(netip.MustParseAddr(c.addr), named, own)
		var refused *addressError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.addr, err)
		case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(refused.why, c.want)):
			t.Errorf("%s: %v, want %q", c.addr, err, c.want)
		}
	}
	if err := checkAddress(netip.MustParseAddr("203.0.113.8"), nil, func() ([]netip.Addr, error) { return nil, errors.New("none") }); err == nil {
		t.Error("an address is let through though our own are not known")
	}
}

// What is dialled is what is checked: the resolver of the system leads localhost
// to this machine.
func TestDialIsGuarded(t *testing.T) {
	r := newRelay(sandbox.Hosts{Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "::ffff:127.0.0.1"} {
		c, err := r.dialGuarded(context.Background(), host, 9)
		var refused *addressError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v", host, c, err)
		}
	}
}
