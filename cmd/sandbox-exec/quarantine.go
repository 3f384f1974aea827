package main

import (
	"fmt"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
)

func (e *env) quarantineList(c *cli.Context) error {
	all, err := runner.Quarantine()
	if err != nil {
		return err
	}
	for _, q := range all {
		fmt.Fprintf(e.stdout, "%s  %s  %s  %s\n", q.ID, q.When.Format(time.DateTime), policy.Escape(q.Path), policy.Escape(q.Reason))
	}
	return nil
}

func (e *env) quarantineRestore(c *cli.Context) error {
	id, err := oneArg(c, "ID")
	if err != nil {
		return err
	}
	q, err := runner.Restore(id)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, policy.Escape(q.Path))
	return nil
}
