// Embed runs commands from a Go program: one that works, one that tries to
// write outside of its workspace, one that is denied, and one that takes too
// long.
//
//	go run ./examples/embed
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
)

func main() {
	log.SetFlags(0)
	workspace, err := os.MkdirTemp("", "embed-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(workspace)

	for _, script := range []string{
		"echo hello > greeting && cat greeting",
		"python3 -c 'open(\"/etc/embed\", \"w\")' 2>/dev/null || echo it cannot write there",
		"rm -rf ~",
		"sleep 600",
	} {
		fmt.Println("$", script)
		result, err := runner.Run(context.Background(), runner.Command{
			Script:  script,
			Dir:     workspace,
			Timeout: 10 * time.Second,
		})
		var denied *policy.DeniedError
		switch {
		case errors.As(err, &denied):
			fmt.Println("denied:", denied.Targets[0].Reason)
		case err != nil:
			log.Fatal(err) // it did not run
		case result.Cause == runner.Exited:
			fmt.Printf("%sexit status %d\n", result.Output.Stdout.Tail, result.ExitCode)
		default:
			fmt.Println("ended:", result.Cause)
		}
	}
}
