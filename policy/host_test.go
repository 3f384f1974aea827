package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	for _, test := range []struct{ text, want string }{ // "" = refused
		{"example.com", "example.com"},
		{"Example.COM.", "example.com"},
		{"localhost", "localhost"},
		{"my_host-1", "my_host-1"},
		{"xn--mnchen-3ya.de", "xn--mnchen-3ya.de"},
		{"1password.com", "1password.com"},
		{"127.0.0.1", "127.0.0.1"},
		{"[::1]", "[::1]"},
		{"[2001:DB8:0:0::1]", "[2001:db8::1]"},
		{"[::ffff:127.0.0.1]", "127.0.0.1"},
		{"[::ffff:7f00:1]", "127.0.0.1"},
		{strings.Repeat("a.", 126) + "b", strings.Repeat("a.", 126) + "b"},

		{"", ""},
		{".", ""},
		{"example.com..", ""},
		{".example.com", ""},
		{"a..example.com", ""},
		{strings.Repeat("a", 64) + ".com", ""},
		{strings.Repeat("a.", 127) + "b", ""},
		{"-a.com", ""},
		{"a-.com", ""},
		{"user@example.com", ""},
		{"evil.com#.example.com", ""},
		{"evil.com/.example.com", ""},
		{"evil.com\\.example.com", ""},
		{"evil.com\x00.example.com", ""},
		{"evil.com%2f.example.com", ""},
		{"evil.com?.example.com", ""},
		{"a b", ""},
		{"example.com\n", ""},
		{"*.example.com", ""},
		{"m\u00fcnchen.de", ""},
		{"example\u3002com", ""}, // a full stop to IDNA
		{"\uff45xample.com", ""},
		{"\u212aelvin.com", ""}, // lower case is an ASCII k
		{"example.com:80", ""},
		{"2130706433", ""},
		{"0x7f000001", ""},
		{"0x7f.1", ""},
		{"017700000001", ""},
		{"127.1", ""},
		{"0127.0.0.1", ""},
		{"127.0.0.01", ""},
		{"127.0.0.1.", ""}, // an address to some, a name to others
		{"127.0.0.256", ""},
		{"1.2.3.4.5", ""},
		{"a.1", ""},
		{"::1", ""},
		{"[::1", ""},
		{"[::1]x", ""},
		{"[127.0.0.1]", ""},
		{"[fe80::1%eth0]", ""},
		{"[example.com]", ""},
	} {
		h, err := ParseHost(test.text)
		if h.String() != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %q, %v, want %q", test.text, h, err, test.want)
		}
		var wrong *HostError
		if err != nil && (!errors.As(err, &wrong) || wrong.Text != test.text || wrong.Problem == "") {
			t.Errorf("%q: %#v", test.text, err)
		}
	}
}

func TestParseHostPort(t *testing.T) {
	for _, test := range []struct {
		text, host string // "" = refused
		port       int
	}{
		{"example.com", "example.com", 0},
		{"example.com:443", "example.com", 443},
		{"[::1]:65535", "[::1]", 65535},
		{"[::1]", "[::1]", 0},
		{"10.0.0.1:22", "10.0.0.1", 22},

		{"example.com:", "", 0},
		{"example.com:0", "", 0},
		{"example.com:080", "", 0},
		{"example.com:+80", "", 0},
		{"example.com:65536", "", 0},
		{"example.com:http", "", 0},
		{"example.com:80:90", "", 0},
		{"::1:80", "", 0},
		{"[::1]80", "", 0},
		{"[::1]:80:90", "", 0},
		{":80", "", 0},
		{"]:80", "", 0},
		{"", "", 0},
	} {
		h, port, err := ParseHostPort(test.text)
		if h.String() != test.host || err == nil && port != test.port || (err == nil) != (test.host != "") {
			t.Errorf("%q: %q, %d, %v", test.text, h, port, err)
		}
	}
}

func TestHostPattern(t *testing.T) {
	for _, test := range []struct {
		pattern, host string
		port          int
		allows        bool
		matches       bool
	}{
		{"example.com", "example.com", 443, true, true},
		{"Example.COM.", "example.com", 80, true, true},
		{"example.com", "EXAMPLE.com", 22, false, true},
		{"example.com", "example.com", 0, false, true},
		{"example.com", "a.example.com", 443, false, false},
		{"example.com", "aexample.com", 443, false, false},
		{"example.com", "example.com.evil", 443, false, false},
		{"example.com:22", "example.com", 22, true, true},
		{"example.com:22", "example.com", 443, false, false},
		{"example.com:22", "example.com", 0, false, true},
		{"example.com:*", "example.com", 0, true, true},
		{"example.com:*", "example.com", 6000, true, true},
		{"*.example.com", "a.example.com", 443, true, true},
		{"*.example.com", "a.b.example.com", 443, true, true},
		{"*.example.com", "example.com", 443, false, false},
		{"*.example.com", "evilexample.com", 443, false, false},
		{"*.example.com:8443", "a.example.com", 443, false, false},
		{"10.0.0.1", "10.0.0.1", 443, true, true},
		{"10.0.0.1", "[::ffff:10.0.0.1]", 443, true, true},
		{"[2001:db8::1]:443", "[2001:DB8:0::1]", 443, true, true},
		{"[::1]", "[::2]", 443, false, false},
		{"*", "example.com", 22, false, true},
		{"*:*", "[::1]", 22, true, true},
		{"*:22", "example.com", 443, false, false},
		{"*", "", 0, false, true}, // a host that is not known
		{"*.example.com", "", 0, false, false},
	} {
		p, err := ParseHostPattern(test.pattern)
		if err != nil {
			t.Fatal(err)
		}
		h, err := ParseHost(test.host)
		if err != nil && test.host != "" {
			t.Fatal(err)
		}
		if p.Allows(h, test.port) != test.allows || p.Matches(h, test.port) != test.matches {
			t.Errorf("%s and %q port %d: allows %v, matches %v", p, test.host, test.port, p.Allows(h, test.port), p.Matches(h, test.port))
		}
	}
	for _, text := range []string{"", "*.", "*.*", "a.*", "*a.com", "*.127.0.0.1", "*.[::1]", "::1", "a b", "a,b", "example.com:", "example.com:**", "user@example.com", "https://example.com", "example.com/", "m\u00fcnchen.de"} {
		if p, err := ParseHostPattern(text); err == nil {
			t.Errorf("%q is taken for %s", text, p)
		}
	}
	if (HostPattern{}).Matches(Host{}, 0) || (HostPattern{}).Allows(HostOf(netip.IPv6Loopback()), 443) {
		t.Error("the zero value stands for a host")
	}
}

// What is read is written as it is read, and compares as equal.
func FuzzHostPattern(f *testing.F) {
	for _, s := range []string{"example.com", "*.example.com:443", "[::1]:22", "*", "*:*", "127.0.0.1", "A.b.", "[::ffff:1.2.3.4]", "a:1:2", "]:", "xn--a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParseHostPattern(s); err == nil {
			if again, err := ParseHostPattern(p.String()); err != nil || again != p {
				t.Errorf("%q: %v is read as %v, %v", s, p, again, err)
			}
		}
		h, port, err := ParseHostPort(s)
		if err != nil {
			return
		}
		if again, n, err := ParseHostPort(h.WithPort(port)); err != nil || again != h || n != port {
			t.Errorf("%q: %v is read as %v, %d, %v", s, h.WithPort(port), again, n, err)
		}
		if strings.Trim(h.Name(), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			t.Errorf("%q: the name %q", s, h.Name())
		}
		if p, err := ParseHostPattern(h.WithPort(port)); err != nil || !p.Matches(h, port) || port != 0 && !p.Allows(h, port) {
			t.Errorf("%q does not stand for itself: %v", s, err)
		}
	})
}

func ExampleHostPattern() {
	p, err := ParseHostPattern("*.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	host, port, err := ParseHostPort("Docs.Example.com:443")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Allows(host, port), p.Allows(host, 22), p.Matches(host, 22))
	// Output: true false true
}
