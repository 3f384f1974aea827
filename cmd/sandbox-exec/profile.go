package main

import (
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/urfave/cli/v2"
)

func (e *env) profileList(c *cli.Context) error {
	for _, name := range profiles.Names() {
		p, err := profiles.Load(name)
		if err != nil {
			return &profileError{name, err}
		}
		fmt.Fprintf(e.stdout, "%-12s %s\n", name, p.Description)
	}
	return nil
}

func (e *env) profileCheck(c *cli.Context) error {
	name, err := oneArg(c, "FILE")
	if err != nil {
		return err
	}
	if _, err := profiles.Load(name); err != nil {
		return &profileError{name, err}
	}
	return nil
}

func oneArg(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 {
		return "", misuse(fmt.Sprintf("profile %s: want one %s", c.Command.Name, what), "")
	}
	return c.Args().First(), nil
}
