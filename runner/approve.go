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

// Request is a command that may run only after an answer.
type Request struct {
	Script    string
	Args      []string
	Dir       string
	Workspace string
	Decision  policy.Decision // why it asks
}

// Answer is what an Approver says. The zero value refuses.
type Answer struct {
	Allow  bool
	Reason string // why not, for whoever wrote the command
}
