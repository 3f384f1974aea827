package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

// Of calls that share a session, or a workspace's stored rules, one asks at a
// time, and an answer that is remembered answers the rest.
func TestQuestionsComeOneAtATime(t *testing.T) {
	for name, share := range map[string]func(*Command) Choice{
		"session": func(*Command) Choice { return ForSession },
		"project": func(c *Command) Choice {
			c.Session, c.Settings = nil, settings(t, c.Dir)
			return ForProject
		},
		"stored session": func(c *Command) Choice {
			c.Session, c.Settings = nil, settings(t, c.Dir)
			c.Settings.InSession("a session")
			return ForSession
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := fakeCommand(t, "touch x")
			c.Profile.Mode = policy.ModeAsk
			c.Session = &Session{}
			var open, asked atomic.Int32
			answer := Answer{Allow: true}
			c.Approver = approver(func(Request) (Answer, error) {
				if open.Add(1) > 1 {
					t.Error("two questions at once")
				}
				asked.Add(1)
				time.Sleep(20 * time.Millisecond)
				open.Add(-1)
				return answer, nil
			})
			const calls = 6
			run := func(remember bool) int32 {
				asked.Store(0)
				answer = Answer{Allow: true}
				var list []Command
				for range calls {
					c := c
					c.backend = &fakeBackend{}
					if how := share(&c); remember {
						answer.Remember = how
					}
					list = append(list, c)
				}
				var all sync.WaitGroup
				for _, c := range list {
					all.Go(func() {
						if _, err := Run(context.Background(), c); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				return asked.Load()
			}
			if n := run(false); n != calls {
				t.Errorf("asked %d times for %d calls, with answers for one", n, calls)
			}
			if n := run(true); n != 1 {
				t.Errorf("asked %d times, with an answer for all", n)
			}
		})
	}
}

// Who waits for another question can be called off.
func TestQuestionsThatWaitEndWithTheirContext(t *testing.T) {
	for _, stored := range []bool{false, true} {
		c, b := fakeCommand(t, "touch x")
		c.Profile.Mode = policy.ModeAsk
		asked, answer := make(chan struct{}), make(chan struct{})
		c.Approver = approver(func(Request) (Answer, error) {
			close(asked)
			<-answer
			return Answer{}, nil
		})
		if c.Session = (&Session{}); stored {
			c.Session, c.Settings = nil, settings(t, c.Dir)
		}
		first := make(chan error, 1)
		go func() {
			_, err := Run(context.Background(), c)
			first <- err
		}()
		<-asked
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if _, err := Run(ctx, c); !errors.Is(err, context.DeadlineExceeded) || b.starts != 0 {
			t.Errorf("stored %v: got %v", stored, err)
		}
		cancel()
		close(answer)
		var refused *RefusedError
		if err := <-first; !errors.As(err, &refused) {
			t.Errorf("stored %v: got %v", stored, err)
		}
	}
}

// A rule that was stored while somebody thought holds against the yes.
func TestARuleThatCameMeanwhile(t *testing.T) {
	c, b := fakeCommand(t, "touch x")
	c.Profile.Mode = policy.ModeAsk
	c.Settings = settings(t, c.Dir)
	c.Approver = approver(func(Request) (Answer, error) {
		return Answer{Allow: true}, c.Settings.AddGrant(grant(policy.Deny, "touch"))
	})
	var denied *policy.DeniedError
	if _, err := Run(context.Background(), c); !errors.As(err, &denied) || b.starts != 0 {
		t.Errorf("got %v, started %d", err, b.starts)
	}
}

func TestExclusive(t *testing.T) {
	c, _ := fakeCommand(t, "echo ready; exec sleep 600")
	c.Exclusive = ExclusiveWait
	first, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Script = "true"
	c.Exclusive = ExclusiveRefuse
	var busy *BusyError
	if _, err := Run(context.Background(), c); !errors.As(err, &busy) || busy.Holder == "" {
		t.Errorf("refuse: %v", err)
	}
	c.Exclusive = Shared
	if r, err := Run(context.Background(), c); err != nil || r.ExitCode != 0 {
		t.Errorf("beside it: %+v, %v", r, err)
	}
	c.Exclusive = ExclusiveWait
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
	told := make(chan string, 1)
	c.OnWait = func(what string) { told <- what }
	second := make(chan error, 1)
	go func() {
		_, err := Run(context.Background(), c)
		second <- err
	}()
	<-told
	first.Stop()
	if err := <-second; err != nil {
		t.Errorf("after the wait: %v", err)
	}
	c.Exclusive = "perhaps"
	var wrong *CommandError
	if _, err := Run(context.Background(), c); !errors.As(err, &wrong) {
		t.Errorf("perhaps: %v", err)
	}
}
