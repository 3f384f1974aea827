// Approve is the shell tool of an agent: it runs the text that it is given,
// asks the user where the policy asks, and hands the model one JSON object.
//
//	go run ./examples/approve 'rm -rf src'
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
)

// user asks on the standard streams. A program with a window of its own shows
// the same there.
type user struct{}

func (user) Approve(_ context.Context, r runner.Request) (runner.Answer, error) {
	fmt.Fprintf(os.Stderr, "The agent wants to run, in %s:\n\n    %s\n\n", r.Dir, policy.Escape(r.Script))
	for _, t := range r.Decision.Targets {
		if t.Verdict == policy.Ask {
			fmt.Fprintf(os.Stderr, "  %s: %s\n", t.Reason, policy.Escape(t.Detail))
		}
	}
	fmt.Fprint(os.Stderr, "\nRun it? [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if line != "y\n" {
		return runner.Answer{Reason: "the user said no; do not try it in another way"}, nil
	}
	return runner.Answer{Allow: true}, nil
}

// output is what the model sees.
type output struct {
	Stdout string       `json:"stdout,omitempty"`
	Stderr string       `json:"stderr,omitempty"`
	Cause  runner.Cause `json:"cause,omitempty"`
	Exit   int          `json:"exit"`
	Error  string       `json:"error,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: approve SCRIPT")
		os.Exit(2)
	}
	result, err := runner.Run(context.Background(), runner.Command{
		Script:   os.Args[1],
		Approver: user{},
	})
	out := output{
		Stdout: string(result.Output.Stdout.Tail),
		Stderr: string(result.Output.Stderr.Tail),
		Cause:  result.Cause,
		Exit:   result.ExitCode,
	}
	var refused *runner.RefusedError
	switch {
	case errors.As(err, &refused):
		out.Error = refused.Error()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(out)
}
