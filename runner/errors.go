package runner

import (
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

// CommandError is a Command that cannot be run as it is written. Nothing was
// run.
type CommandError struct {
	Field string // "workspace", "script"
	Value string // or ""
	Err   error
	Hint  string // what to do, or ""
}

func (e *CommandError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %v", e.Field, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Field, e.Value, e.Err)
}

func (e *CommandError) Unwrap() error { return e.Err }

// RefusedError is a command that the policy denied, or about which it asks and
// that nobody approved. Nothing was run. It wraps the *policy.DeniedError or
// *policy.NeedsApprovalError.
type RefusedError struct {
	Decision policy.Decision
	Reason   string // why nobody approved; "" for a denial
	Err      error
}

func (e *RefusedError) Error() string {
	if e.Reason == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + e.Reason
}

func (e *RefusedError) Unwrap() error { return e.Err }
