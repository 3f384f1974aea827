package main

import (
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/urfave/cli/v2"
)

// doctor says what this machine can enforce, and what each lack costs. The
// exit status is not 0 if no command can be run.
func (e *env) doctor(c *cli.Context) error {
	if c.Args().Present() {
		return misuse(fmt.Sprintf("unexpected argument %q", c.Args().First()), "")
	}
	d := runner.Doctor()
	if c.Bool("json") {
		if err := e.printJSON(d); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.stdout, "sandbox-exec %s, tier: %s\n", version(), d.Tier)
		for _, layer := range d.Layers {
			printLayer(e, layer)
		}
	}
	for _, layer := range d.Layers {
		if layer.State != sandbox.Missing {
			return nil
		}
	}
	return silent(exitFailed)
}

func printLayer(e *env, layer sandbox.Layer) {
	fmt.Fprintf(e.stdout, "%-12s %-9s %s\n", layer.Name, layer.State, layer.Detail)
	for _, part := range []struct{ label, text string }{
		{"why", layer.Why}, {"costs", layer.Lost}, {"do", layer.Fix},
	} {
		if part.text != "" {
			fmt.Fprintf(e.stdout, "%-12s %-9s %s: %s\n", "", "", part.label, part.text)
		}
	}
}
