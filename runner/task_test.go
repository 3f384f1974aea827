package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// startFake starts a script without a sandbox, in a workspace of its own.
func startFake(t *testing.T, ctx context.Context, c Command) *Task {
	t.Helper()
	c.backend = &fakeBackend{}
	c.Dir = t.TempDir()
	task, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func waitOutput(t *testing.T, task *Task, text string) {
	t.Helper()
	for range 2000 {
		if strings.Contains(string(task.Output().Stdout.Tail), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no %q in the output", text)
}

func TestStopEndsATask(t *testing.T) {
	task := startFake(t, context.Background(), Command{Script: "echo ready; exec sleep 600"})
	waitOutput(t, task, "ready")
	select {
	case <-task.Done():
		t.Fatal("done while it runs")
	default:
	}
	if r := task.Stop(); r.Cause != Cancelled || string(r.Output.Stdout.Tail) != "ready\n" {
		t.Errorf("%+v", r)
	}
	task.Stop() // may be called again
	<-task.Done()
}

// A detached task has neither the context nor the time-out of its Command, but
// the profile's time-out for the background.
func TestDetach(t *testing.T) {
	p, err := profiles.Load("workspace")
	if err != nil {
		t.Fatal(err)
	}
	short := *p
	short.ToolCall.BackgroundTimeout = 1500 * time.Millisecond

	ctx, cancel := context.WithCancel(context.Background())
	task := startFake(t, ctx, Command{Script: "echo ready; exec sleep 600", Timeout: time.Minute, Profile: &short})
	waitOutput(t, task, "ready")
	task.Detach()
	cancel()
	time.Sleep(100 * time.Millisecond) // what must not happen gets a moment to
	select {
	case <-task.Done():
		t.Fatal("the context ended it")
	default:
	}
	if r := task.Wait(); r.Cause != TimedOut {
		t.Errorf("%+v", r)
	}
}

func TestBackgroundTimeouts(t *testing.T) {
	c := Command{Script: "x", Background: true}
	if err := c.complete(); err != nil || c.Timeout != 10*time.Minute {
		t.Errorf("%v, %v", c.Timeout, err)
	}
	c = Command{Script: "x", Background: true, Timeout: 24 * time.Hour}
	if err := c.complete(); err != nil {
		t.Error(err)
	}
	c = Command{Script: "x", Background: true, Timeout: 25 * time.Hour}
	var wrong *CommandError
	if err := c.complete(); !errors.As(err, &wrong) {
		t.Errorf("25 h: %v", err)
	}
}
