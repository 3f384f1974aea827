package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// supervisorName is the supervisor's argv[0].
const supervisorName = "sandbox-exec-task"

// launched is what became of a task that was launched.
type launched struct {
	id     string // it goes on as this task
	ending error  // else: how this process ends
}

// taskStartFlags are those of run that make sense in the background.
func taskStartFlags() []cli.Flag {
	return slices.DeleteFunc(runFlags(), func(f cli.Flag) bool {
		return slices.Contains([]string{"dry-run", "json", "merge", "on-timeout", "stdin"}, f.Names()[0])
	})
}

func taskOutputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "follow", Usage: "go on until the task is over"},
		&cli.Int64Flag{Name: "tail", Value: -1, Usage: "only the last `BYTES`"},
	}
}

func taskWaitFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		&cli.StringFlag{Name: "timeout", Usage: "wait no longer than `TIME`; the task goes on (exit 124)"},
	}
}

func (e *env) taskStart(c *cli.Context) error {
	f := &flagSet{Context: c}
	if e.supervisor {
		return e.supervise(f, false)
	}
	l, err := e.launch()
	if err != nil {
		return err
	}
	if l.id == "" {
		return l.ending
	}
	_, err = fmt.Fprintln(e.stdout, l.id)
	return err
}

func (e *env) taskList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	list, err := runner.OpenTasks().List()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return e.printJSON(append([]runner.TaskRecord{}, list...))
	}
	for _, r := range list {
		fmt.Fprintf(e.stdout, "%s  %-12s %-20s %9d  %s\n", r.ID, taskState(r), r.Began.Local().Format(time.DateTime), r.Bytes, taskCommand(r))
	}
	return nil
}

// taskState is a word or two for people.
func taskState(r runner.TaskRecord) string {
	switch {
	case r.State != runner.TaskEnded:
		return string(r.State)
	case r.Cause == runner.Exited && r.ExitCode != nil:
		return fmt.Sprintf("exited %d", *r.ExitCode)
	case r.Cause == runner.Signalled:
		return r.Signal
	}
	return string(r.Cause)
}

// taskCommand is the command on one line, for a list: a long one is cut, and
// says so. task list --json has all of it.
func taskCommand(r runner.TaskRecord) string {
	text := policy.Escape(r.Script)
	if r.Script == "" {
		words := make([]string, len(r.Args))
		for i, w := range r.Args {
			words[i] = quote(w)
		}
		text = policy.Escape(strings.Join(words, " "))
	}
	const most = 100
	if runes := []rune(text); len(runes) > most {
		text = fmt.Sprintf("%s... (%d more)", string(runes[:most]), len(runes)-most)
	}
	return text
}

func (e *env) taskOutput(c *cli.Context) error {
	id, err := oneArg(c, "ID")
	if err != nil {
		return err
	}
	tasks := runner.OpenTasks()
	r, err := tasks.Get(id)
	if err != nil {
		return err
	}
	in, err := os.Open(r.Output)
	if err != nil {
		return err
	}
	defer in.Close()
	if c.IsSet("tail") {
		if c.Int64("tail") < 0 {
			return misuse("--tail: want a number of bytes", "")
		}
		if _, err := in.Seek(max(0, r.Bytes-c.Int64("tail")), io.SeekStart); err != nil {
			return err
		}
	}
	for {
		// Looked at before the rest is read, so that nothing comes after.
		over := !c.Bool("follow") || r.Over()
		if _, err := io.Copy(e.stdout, in); err != nil {
			return err
		}
		if over {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
		if r, err = tasks.Get(id); err != nil {
			return err
		}
	}
}

// taskWait ends as the task did.
func (e *env) taskWait(c *cli.Context) error {
	f := &flagSet{Context: c}
	id, err := oneArg(c, "ID")
	if err != nil {
		return err
	}
	ctx := context.Background()
	if limit := f.duration("timeout"); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	if f.err != nil {
		return f.err
	}
	r, err := runner.OpenTasks().Wait(ctx, id)
	expired := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !expired {
		return err
	}
	if c.Bool("json") {
		if err := e.printJSON(r); err != nil {
			return err
		}
	}
	switch {
	case expired:
		lines(e.stderr, "the task still runs: "+id)
		return silent(exitTimeout)
	case r.State == runner.TaskLost:
		lines(e.stderr, "error: the task is lost: its supervisor was killed, and the command with it; how it ended is unknown")
		return silent(exitFailed)
	}
	return taskEnding(r)
}

// taskEnding is how a process ends that ends as the task did.
func taskEnding(r runner.TaskRecord) error {
	result := runner.Result{Cause: r.Cause, ExitCode: -1, Signal: unix.SignalNum(r.Signal)}
	if r.ExitCode != nil {
		result.ExitCode = *r.ExitCode
	}
	if r.Cause == runner.Cancelled {
		return silent(128 + int(syscall.SIGTERM))
	}
	err := ending(result, 0)
	var by killedBy
	if errors.As(err, &by) {
		return silent(128 + int(by)) // it was not this process
	}
	return err
}

func (e *env) taskStop(c *cli.Context) error {
	if c.NArg() == 0 {
		return misuse("task stop: want an ID", "sandbox-exec task list shows them")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	var failed error
	for _, id := range c.Args().Slice() {
		r, err := runner.OpenTasks().Stop(ctx, id)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(e.stdout, "%s  %s\n", r.ID, taskState(r))
	}
	return failed
}

func (e *env) taskPrune(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	gone, err := runner.OpenTasks().Prune()
	for _, id := range gone {
		fmt.Fprintln(e.stdout, id)
	}
	return err
}

func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return misuse(fmt.Sprintf("unexpected argument %q", c.Args().First()), "")
	}
	return nil
}

func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
