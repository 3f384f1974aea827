// Sandbox-exec runs a command that is not to be trusted: it judges it,
// confines it, sees it through to its end and reports.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/cmd/sandbox-exec/selftest"
	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
)

const usage = `sandbox-exec [run] [FLAGS] -- PROGRAM [ARG...]   these exact arguments, no shell
sandbox-exec [run] [FLAGS] -c TEXT                TEXT through the shell
sandbox-exec check [FLAGS] (-- PROGRAM... | -c TEXT | --jsonl)
sandbox-exec doctor [--json]
sandbox-exec selftest [--profile NAME|FILE] [--json]
sandbox-exec seatbelt [FLAGS]                     the profile that confines a command on macOS
sandbox-exec profile list | show NAME | check FILE | init FILE
sandbox-exec rule list | add VERDICT PATTERN | remove PATTERN
sandbox-exec task start | list | output ID | wait ID | stop ID | prune
sandbox-exec trust [--yes] [DIR]
sandbox-exec untrust [DIR]
sandbox-exec quarantine list | restore ID
sandbox-exec completion bash | zsh | fish
sandbox-exec help [COMMAND] | --version`

func main() {
	if filepath.Base(os.Args[0]) == selftest.Program {
		os.Exit(selftest.Attempt(os.Args[1:]))
	}
	err := app(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	exit(err, os.Stderr)
}

// app runs one command line. Its error says how the process ends.
func app(args []string, stdin *os.File, stdout, stderr *os.File) error {
	left, program := split(args)
	if len(left) > 0 && program == nil {
		switch left[0] {
		case "--version", "version":
			fmt.Fprintln(stdout, "sandbox-exec", version())
			return nil
		case "help":
			left = append(left[1:len(left):len(left)], "--help")
		}
	}
	e := &env{program: program, stdin: stdin, stdout: stdout, stderr: stderr, supervisor: os.Args[0] == supervisorName}
	if c := e.plain(left); c != nil {
		return e.run(c)
	}
	a := &cli.App{
		Name:                      "sandbox-exec",
		Usage:                     "run a command that is not to be trusted",
		UsageText:                 usage,
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true, // a comma is part of a path
		Reader:                    stdin,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              flagError,
		Commands: []*cli.Command{
			e.runVerb(),
			verb("check", "say what would be decided; exit 0 allow, 3 ask, 4 deny", "[FLAGS] (-- PROGRAM [ARG...] | -c TEXT | --jsonl)", checkFlags(), e.check),
			verb("seatbelt", "print the profile that confines a command on macOS", "[FLAGS]", seatbeltFlags(), e.seatbelt),
			verb("doctor", "say what this machine can enforce", "[--json]", []cli.Flag{jsonFlag()}, e.doctor),
			verb("selftest", "attack the sandbox on this machine; exit 1 if something gets through", "[--profile NAME|FILE] [--json]", selftestFlags(), e.selftest),
			{
				Name: "profile", Usage: "look at profiles", HideHelpCommand: true,
				Action: func(c *cli.Context) error { return misuse("profile: want list, show, check or init", "") },
				Subcommands: []*cli.Command{
					verb("profile list", "name the built-in profiles", "", nil, e.profileList),
					verb("profile show", "say what a profile means for a command run from here", "NAME|FILE", nil, e.profileShow),
					verb("profile check", "check a profile's file", "FILE", nil, e.profileCheck),
					verb("profile init", "write a file that is a built-in profile, to be changed; replaces nothing", "[--from NAME] FILE", []cli.Flag{
						&cli.StringFlag{Name: "from", Value: "workspace", Usage: "the built-in profile `NAME`"},
					}, e.profileInit),
				},
			},
			{
				Name: "rule", Usage: "look at rules and change yours", HideHelpCommand: true,
				Action: func(c *cli.Context) error { return misuse("rule: want list, add or remove", "") },
				Subcommands: []*cli.Command{
					verb("rule list", "list the rules that hold here, and where they stand", "[FLAGS]", []cli.Flag{workspaceFlag(), profileFlag(), &cli.StringFlag{Name: "session", Usage: "those that hold in session `ID` (default: that of the terminal)"}, jsonFlag()}, e.ruleList),
					verb("rule add", "add a rule to your configuration", "[FLAGS] allow|ask|deny PATTERN", append(ruleFlags(),
						&cli.StringFlag{Name: "for", Usage: "with --project or --session: the rule holds for `TIME`, such as 10m"},
						&cli.StringFlag{Name: "reason", Usage: "`TEXT` that is shown where the rule denies or asks"}), e.ruleAdd),
					verb("rule remove", "remove the rules with this pattern", "[FLAGS] PATTERN", ruleFlags(), e.ruleRemove),
				},
			},
			{
				Name: "task", Usage: "run commands in the background and look after them", HideHelpCommand: true,
				Action: func(c *cli.Context) error { return misuse("task: want start, list, output, wait, stop or prune", "") },
				Subcommands: []*cli.Command{
					verb("task start", "run a command in the background and print its ID", "[FLAGS] (-- PROGRAM [ARG...] | -c TEXT)", taskStartFlags(), e.taskStart),
					verb("task list", "list the tasks: ID, state, age, bytes of output, command", "[--json]", []cli.Flag{jsonFlag()}, e.taskList),
					verb("task output", "print what a task has written", "[FLAGS] ID", taskOutputFlags(), e.taskOutput),
					verb("task wait", "wait for the end of a task and end as it did", "[FLAGS] ID", taskWaitFlags(), e.taskWait),
					verb("task stop", "end a task: SIGTERM, the grace time, SIGKILL", "ID...", nil, e.taskStop),
					verb("task prune", "remove the records and the output of the tasks that are over", "", nil, e.taskPrune),
				},
			},
			verb("trust", "let the project's .sandbox-exec.toml loosen what holds, until it changes", "[--yes] [DIR]", trustFlags(), e.trust),
			verb("untrust", "take the trust back", "[DIR]", nil, e.untrust),
			{
				Name: "quarantine", Usage: "look at what was moved out of workspaces", HideHelpCommand: true,
				Action: func(c *cli.Context) error { return misuse("quarantine: want list or restore", "") },
				Subcommands: []*cli.Command{
					verb("quarantine list", "list what was moved away: ID, time, path, reason", "", nil, e.quarantineList),
					verb("quarantine restore", "put it back; replaces nothing", "ID", nil, e.quarantineRestore),
				},
			},
			verb("completion", "print what makes a shell complete the command line", "bash|zsh|fish", nil, e.completion),
		},
	}
	if len(left) == 0 && program == nil {
		fmt.Fprintln(stderr, usage)
		return silent(exitFailed)
	}
	first := ""
	if len(left) > 0 {
		first = left[0]
	}
	known := slices.ContainsFunc(a.Commands, func(c *cli.Command) bool { return c.Name == first })
	if !known && first != "-h" && first != "--help" {
		left = append([]string{"run"}, left...)
	}
	return a.RunContext(context.Background(), append([]string{a.Name}, left...))
}

// split divides a command line at the first "--". What is right of it is the
// program's own and is never looked at by the parser of flags: that would take
// the program's name for one of our commands. nil means that there is no "--".
func split(args []string) (left, program []string) {
	i := slices.Index(args, "--")
	if i < 0 {
		return args, nil
	}
	return args[:i], args[i+1:]
}

// env is what the commands share.
type env struct {
	program        []string // what stands after "--"; nil if there is none
	stdin          *os.File
	stdout, stderr *os.File
	notices        []runner.Notice // about the settings

	// Of the supervisor of a task.
	supervisor bool
	supervision
	session  string   // the starter's
	terminal *os.File // the starter's; nil = none
}

// verb is a command; the name is the whole of "profile list".
func verb(name, usage, args string, flags []cli.Flag, action cli.ActionFunc) *cli.Command {
	return &cli.Command{
		Name: name[strings.LastIndexByte(name, ' ')+1:], Usage: usage, UsageText: "sandbox-exec " + name + " " + args, Flags: flags,
		Action: action, OnUsageError: flagError, HideHelpCommand: true,
	}
}

// runVerb is the command that runs one. A command line that it does not
// understand is reported, too, if --report stands before what is wrong.
func (e *env) runVerb() *cli.Command {
	run := verb("run", "run a command (the default)", "[FLAGS] (-- PROGRAM [ARG...] | -c TEXT)", runFlags(), e.run)
	target := "" // the context of an error has no flags
	for _, f := range run.Flags {
		if f, ok := f.(*cli.StringFlag); ok && f.Name == "report" {
			f.Destination = &target
		}
	}
	run.OnUsageError = func(c *cli.Context, err error, sub bool) error {
		err = flagError(c, err, sub)
		out, openErr := openReport(target)
		if openErr == nil && out != nil {
			openErr = newReport(false).write(out, err)
		}
		if openErr != nil {
			lines(e.stderr, "error: "+openErr.Error())
		}
		return err
	}
	return run
}

// plain parses a command line that runs a command and has only flags of one
// value, without the tree of all commands, which takes 0.2 ms to build. It is
// nil if that does not do, as when something is wrong with the line.
func (e *env) plain(args []string) *cli.Context {
	if len(args) > 0 && args[0] == "run" {
		args = args[1:]
	}
	if len(args) == 0 && e.program == nil {
		return nil
	}
	run := e.runVerb()
	set := flag.NewFlagSet(run.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range run.Flags {
		switch f.(type) {
		case *cli.StringFlag, *cli.BoolFlag:
			f.Apply(set)
		}
	}
	if set.Parse(args) != nil || set.NArg() > 0 {
		return nil
	}
	c := cli.NewContext(nil, set, nil)
	c.Command = run
	return c
}

// flagError is what the parser of flags did not understand.
func flagError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		text = "unknown flag " + name
		if applesFlag(name) {
			return misuse(text+": that is one of the system's tool on macOS, which has the same name",
				"call /usr/bin/sandbox-exec for it; here --profile NAME|FILE says what a command may do, and sandbox-exec seatbelt prints a profile for that tool")
		}
	}
	return misuse(text, "sandbox-exec "+c.Command.Name+" --help lists the flags; the program and its own flags come after --")
}

// applesFlag says whether a flag is one of sandbox-exec(1) of macOS: people and
// programs that mean that tool find ours where it comes first in PATH.
func applesFlag(name string) bool {
	return name == "-f" || name == "-p" || name == "-n" || strings.HasPrefix(name, "-D") // -D KEY=VALUE, -DKEY=VALUE
}

// version is that of the module, or of the commit for a build in a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return info.Main.Version
}

// lines writes each non-empty text as a line of a message. What is told may be
// a command's own: of a text one line comes of it, without control characters.
func lines(w io.Writer, texts ...string) {
	for _, text := range texts {
		if text != "" {
			fmt.Fprintf(w, "sandbox-exec: %s\n", policy.Escape(strings.ReplaceAll(text, "\n", "; ")))
		}
	}
}
