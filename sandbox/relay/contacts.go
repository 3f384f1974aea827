package relay

import (
	"slices"
	"sync"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// contacts counts what was asked for. The zero value is ready.
type contacts struct {
	mu   sync.Mutex
	rows []*contact
	at   map[key]*contact
}

type key struct {
	host string
	port uint16
}

type contact struct {
	sandbox.Contact
	mu *sync.Mutex
}

// manyOthers stands for the hosts that were asked for when the list was full.
const manyOthers = "…"

// note counts a question or a connection, first or once more.
func (c *contacts) note(host string, port uint16, allow bool, rule string) *contact {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	k := key{host, port}
	row := c.at[k]
	if row == nil && len(c.rows) >= maxContacts {
		k = key{manyOthers, 0}
		row, allow, rule = c.at[k], false, ""
	}
	if row == nil {
		row = &contact{sandbox.Contact{Host: k.host, Port: k.port, First: now}, &c.mu}
		if c.at == nil {
			c.at = map[key]*contact{}
		}
		c.at[k] = row
		c.rows = append(c.rows, row)
	}
	row.Allowed, row.Rule, row.Why = allow, rule, ""
	row.Times++
	row.Last = now
	return row
}

// failed says why there was no connection.
func (c *contact) failed(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Why = why
}

// moved counts the bytes of a connection that has ended.
func (c *contact) moved(sent, received int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Sent += sent
	c.Received += received
	c.Last = time.Now()
}

// list returns copies, in the order of the first time.
func (c *contacts) list() []sandbox.Contact {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]sandbox.Contact, len(c.rows))
	for i, row := range c.rows {
		out[i] = row.Contact
	}
	return slices.Clip(out)
}
