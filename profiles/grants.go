package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

// Grant is a rule that the person stored for one workspace.
type Grant struct {
	policy.Rule
	Session string    // holds for the calls of this session alone; "" = for all
	Until   time.Time // and no longer than this; zero = for good
}

// Holds says whether the grant has an effect in a session at a time.
func (g *Grant) Holds(session string, now time.Time) bool {
	return (g.Session == "" || g.Session == session) && !g.Expired(now)
}

// Expired says whether its time is over.
func (g *Grant) Expired(now time.Time) bool { return !g.Until.IsZero() && !now.Before(g.Until) }

type grantsFile struct {
	Workspace string      `toml:"workspace"`
	Rules     []grantRule `toml:"rule"`
}

type grantRule struct {
	Action  string    `toml:"action"`
	Verdict string    `toml:"verdict"`
	Pattern string    `toml:"pattern"`
	Reason  string    `toml:"reason"`
	Session string    `toml:"session"`
	Until   time.Time `toml:"until"`
}

// ParseGrants reads the grants of a workspace, which its first key must name:
// the file's name holds only a part of a hash of it. No data is no grants. The
// error is an *Error.
func ParseGrants(name, workspace string, data []byte) ([]Grant, error) {
	if data == nil {
		return nil, nil
	}
	doc := document{file: name, data: data}
	var in grantsFile
	if err := doc.decode(&in); err != nil {
		return nil, err
	}
	check := checker{doc: &doc}
	if in.Workspace != workspace {
		check.that(fmt.Errorf("the rules are those of %q", in.Workspace), "workspace")
	}
	var list []Grant
	for i, r := range in.Rules {
		list = append(list, Grant{
			Rule:    check.rule(rule{Action: r.Action, Verdict: r.Verdict, Pattern: r.Pattern, Reason: r.Reason}, i),
			Session: r.Session, Until: r.Until,
		})
	}
	if check.err != nil {
		return nil, check.err
	}
	return list, nil
}

// FormatGrants writes grants as ParseGrants reads them; nil for none.
func FormatGrants(name, workspace string, list []Grant) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "workspace = %s\n", tomlString(workspace))
	for _, g := range list {
		b.WriteString("\n[[rule]]\n")
		writeRule(&b, g.Rule)
		if g.Session != "" {
			fmt.Fprintf(&b, "session = %s\n", tomlString(g.Session))
		}
		if !g.Until.IsZero() {
			fmt.Fprintf(&b, "until = %s\n", g.Until.UTC().Format(time.RFC3339))
		}
	}
	again, err := ParseGrants(name, workspace, b.Bytes())
	if err == nil && len(again) != len(list) {
		err = &Error{File: name, Err: errors.New("the rules cannot be written")}
	}
	return b.Bytes(), err
}
