package runner

import (
	"context"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

// Approver answers the questions of a policy: a person at a terminal, a
// harness that asks its own user. It may be called from several goroutines.
type Approver interface {
	Approve(context.Context, Request) (Answer, error)
}

// Request is a command that may run only after an answer. Script and Args are
// both empty where a tool of the embedding program asks: the targets of
// Decision then say what for.
type Request struct {
	Script    string
	Args      []string
	Dir       string
	Workspace string
	Decision  policy.Decision // why it asks
	Profile   string          // its name
	Sandbox   Holds           // what holds in spite of a yes
	Remember  []Choice        // which of ForSession and ForProject may be answered
	Rules     []policy.Rule   // what those allow from then on
}

// Answer is what an Approver says. The zero value refuses.
type Answer struct {
	Allow bool
	// Remember makes a yes hold for more than this call: ForSession or
	// ForProject. What the request did not offer has no effect.
	Remember Choice
	Reason   string // why not, for whoever wrote the command
}
