package main

import (
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
)

// seatbelt prints the profile that confines a command on macOS, on any system.
// What has to go beside it, onto the command line of the system's tool, is told
// apart: a profile is ASCII.
func (e *env) seatbelt(c *cli.Context) error {
	if e.program != nil {
		return misuse("seatbelt: a profile does not depend on the program", "leave out -- and what follows")
	}
	f := &flagSet{Context: c}
	cmd, err := e.common(f)
	if err != nil {
		return err
	}
	opened(f, cmd.Profile)
	if f.err != nil {
		return f.err
	}
	p, err := runner.Seatbelt(cmd)
	if err != nil {
		return err
	}
	fmt.Fprint(e.stdout, p.Text)
	for _, param := range p.Params {
		lines(e.stderr, fmt.Sprintf("notice: the profile needs -D %s=%s", param.Key, param.Value))
	}
	return nil
}
