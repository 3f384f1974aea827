package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
)

// The tools of a program that embeds this package are judged as its commands
// are, and get files that nobody can swap between judgement and use.
func ExampleTools() {
	dir, err := os.MkdirTemp("/var/tmp", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "notes"), []byte("hello\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}

	loaded, err := profiles.Load("workspace")
	if err != nil {
		fmt.Println(err)
		return
	}
	profile := *loaded
	profile.Rules = append(profile.Rules,
		policy.Rule{Action: policy.Tool, Verdict: policy.Allow, Pattern: "todo_*"},
		policy.Rule{Action: policy.NetworkTo, Verdict: policy.Deny, Pattern: "*.example.com", Reason: "use the mirror", Source: "rules.toml:3"})

	tools, err := runner.NewTools(runner.Command{Dir: dir, Workspace: dir, Profile: &profile})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println("todo_add:", tools.Invoke(ctx, "todo_add"))
	fmt.Println("www:", tools.Connect(ctx, "www.example.com", 443))

	f, err := tools.OpenRead(ctx, "notes")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	fmt.Printf("notes: %q %v\n", text, err)

	var refused *runner.RefusedError
	_, err = tools.OpenWrite(ctx, "/etc/hosts")
	fmt.Println("hosts:", errors.As(err, &refused))
	// Output:
	// todo_add: <nil>
	// www: denied: www.example.com:443: use the mirror; a rule denies it: rules.toml:3
	// notes: "hello\n" <nil>
	// hosts: true
}
