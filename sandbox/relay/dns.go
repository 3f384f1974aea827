package relay

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// A query has one name of at most 255 bytes. What is longer than an unfragmented
// datagram is none.
const maxQuery = 1232 // bytes

const (
	dnsTimeout  = 5 * time.Second // for one query over TCP
	dnsAtOnce   = 16              // connections
	dnsLifetime = 60              // seconds that an answer may be kept
)

func (r *Relay) serveDNS(c net.PacketConn) {
	defer r.wg.Done()
	buf := make([]byte, maxQuery+1)
	for {
		n, from, err := c.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(retryDelay)
			continue
		}
		if n > maxQuery {
			continue
		}
		if m := r.answer(buf[:n]); m != nil {
			c.WriteTo(m, from)
		}
	}
}

// serveDNSTCP answers queries that come with their length before them (RFC 7766).
func (r *Relay) serveDNSTCP(l net.Listener) {
	defer r.wg.Done()
	slots := make(chan struct{}, dnsAtOnce)
	accept(l, slots, func(c *net.TCPConn) {
		defer c.Close()
		buf := make([]byte, 2+maxQuery)
		for !r.ending.Load() {
			c.SetDeadline(time.Now().Add(dnsTimeout))
			if _, err := io.ReadFull(c, buf[:2]); err != nil {
				return
			}
			n := int(binary.BigEndian.Uint16(buf))
			if n > maxQuery {
				return
			}
			if _, err := io.ReadFull(c, buf[2:2+n]); err != nil {
				return
			}
			m := r.answer(buf[2 : 2+n])
			if m == nil {
				return
			}
			if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)); err != nil {
				return
			}
		}
	}, reset)
}

// answer answers a query; nil where there is nothing to say. It asks nobody: a
// name that may not be reached does not leave the machine, one that may is looked
// up when somebody connects.
func (r *Relay) answer(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	_, more := p.Question()
	single := err == nil && more == dnsmessage.ErrSectionDone
	reply := dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode,
		RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
	}
	switch {
	case !single:
		reply.RCode = dnsmessage.RCodeFormatError
		m, _ := (&dnsmessage.Message{Header: reply}).Pack()
		return m
	case h.OpCode != 0:
		reply.RCode = dnsmessage.RCodeNotImplemented
		m, _ := (&dnsmessage.Message{Header: reply}).Pack()
		return m
	}
	out := dnsmessage.Message{Header: reply, Questions: []dnsmessage.Question{q}}
	code, addr := r.resolve(q)
	out.RCode = code
	record := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: dnsLifetime}}
	switch {
	case q.Type == dnsmessage.TypeA && addr.Is4():
		record.Body = &dnsmessage.AResource{A: addr.As4()}
	case q.Type == dnsmessage.TypeAAAA && addr.Is6():
		record.Body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
	}
	if record.Body != nil {
		out.Answers = append(out.Answers, record)
	}
	m, err := out.Pack()
	if err != nil {
		return nil
	}
	return m
}

// resolve says whether a name is there and which address stands for it, if the
// question is for one of that kind. All are of IPv4: programs take what there
// is, and the way outside is not bound to it.
func (r *Relay) resolve(q dnsmessage.Question) (dnsmessage.RCode, netip.Addr) {
	if q.Class != dnsmessage.ClassINET {
		return dnsmessage.RCodeRefused, netip.Addr{}
	}
	host, ok := hostName(q.Name.String())
	address := q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeAAAA
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761, section 6.3
		if q.Type == dnsmessage.TypeAAAA {
			return dnsmessage.RCodeSuccess, netip.IPv6Loopback()
		}
		return dnsmessage.RCodeSuccess, netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	allow, rule := false, ""
	if ok {
		allow, rule = r.anyPort(host)
	}
	// Package managers look for services (_http._tcp.NAME) that need not be there,
	// and servers for the names of addresses.
	if !ok {
		host = q.Name.String()
	}
	if address && !strings.HasPrefix(host, "_") {
		r.log.note(host, 0, allow, rule)
	}
	if !allow {
		return dnsmessage.RCodeNameError, netip.Addr{}
	}
	if q.Type != dnsmessage.TypeA {
		return dnsmessage.RCodeSuccess, netip.Addr{}
	}
	a, ok := r.names.of(host)
	if !ok {
		r.log.note(host, 0, allow, rule).failed("too many names")
		return dnsmessage.RCodeServerFailure, netip.Addr{}
	}
	return dnsmessage.RCodeSuccess, a
}
