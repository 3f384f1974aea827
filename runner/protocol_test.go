package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// Who is asked what, in which order, and what silence means.
func TestPut(t *testing.T) {
	yes, no, silent := Answer{Allow: true}, Answer{Reason: "no"}, errors.New("silent")
	unknown := policy.Target{Verdict: policy.Ask, Stage: policy.StageDefault, Reason: policy.UnknownProgram}
	danger := policy.Target{Verdict: policy.Ask, Stage: policy.StageDanger, Reason: policy.Destructive}
	rule := policy.Target{Verdict: policy.Ask, Stage: policy.StageRule}
	outside := policy.Target{Verdict: policy.Ask, Stage: policy.StageDefault, Reason: policy.OutsideRead}
	fine := policy.Target{Verdict: policy.Allow, Stage: policy.StageReadOnly}

	for _, test := range []struct {
		name               string
		mode               policy.Mode
		ask                string
		targets            []policy.Target
		reviewer, approver *says // nil = none
		allow, shown       bool
		reason             string // in the answer
		reviews, questions int
	}{
		{"the reviewer says yes", policy.ModeAuto, "prompt", []policy.Target{unknown, fine}, &says{Answer: yes}, &says{Answer: no}, true, false, "", 1, 0},
		{"the reviewer says no", policy.ModeAuto, "prompt", []policy.Target{unknown}, &says{Answer: no}, &says{Answer: yes}, false, false, "no", 1, 0},
		{"the reviewer is silent", policy.ModeAuto, "prompt", []policy.Target{unknown}, &says{err: silent}, &says{Answer: yes}, true, true, "", 1, 1},
		{"both are silent", policy.ModeAuto, "prompt", []policy.Target{unknown}, &says{err: silent}, &says{err: silent}, false, false, "silent; no answer: silent", 1, 1},
		{"the reviewer is silent and nobody is there", policy.ModeAuto, "prompt", []policy.Target{unknown}, &says{err: silent}, nil, false, false, "silent; there is nobody to ask", 1, 0},
		{"no danger for the reviewer", policy.ModeAuto, "prompt", []policy.Target{unknown, danger}, &says{Answer: yes}, &says{Answer: no}, false, true, "no", 0, 1},
		{"no rule for the reviewer", policy.ModeAuto, "prompt", []policy.Target{rule}, &says{Answer: yes}, nil, false, false, "nobody to ask", 0, 0},
		{"no path for the reviewer", policy.ModeAuto, "prompt", []policy.Target{outside}, &says{Answer: yes}, nil, false, false, "nobody to ask", 0, 0},
		{"no reviewer in another mode", policy.ModeAsk, "prompt", []policy.Target{unknown}, &says{Answer: yes}, nil, false, false, "nobody to ask", 0, 0},
		{"nobody is asked", policy.ModeAsk, "deny", []policy.Target{unknown}, nil, &says{Answer: yes}, false, false, "nobody is asked", 0, 0},
		{"an unknown ask", policy.ModeAsk, "perhaps", []policy.Target{unknown}, nil, &says{Answer: yes}, false, false, "nobody is asked", 0, 0},
		{"a yes to everything opens nothing", policy.ModeAsk, "allow", []policy.Target{danger}, nil, &says{Answer: no}, true, false, "", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Command{}
			if test.reviewer != nil {
				c.Reviewer = test.reviewer
			}
			if test.approver != nil {
				c.Approver = test.approver
			}
			f, _ := fakeCommand(t, "")
			p := f.Profile
			p.Mode, p.Ask = test.mode, test.ask
			r := Request{Decision: policy.Decision{Verdict: policy.Ask, Targets: test.targets}, Remember: []Choice{ForProject}}
			a, shown, err := put(context.Background(), &c, p, r)
			if err != nil || a.Allow != test.allow || shown != test.shown || !strings.Contains(a.Reason, test.reason) {
				t.Errorf("got %+v, shown %v, %v", a, shown, err)
			}
			for _, who := range []struct {
				*says
				want int
			}{{test.reviewer, test.reviews}, {test.approver, test.questions}} {
				if who.says != nil && len(who.asked) != who.want {
					t.Errorf("asked %d times, want %d", len(who.asked), who.want)
				}
			}
			if test.reviews > 0 && test.reviewer.asked[0].Remember != nil {
				t.Error("the reviewer may have its answer remembered")
			}
		})
	}
}

// put is the way of a question from the reviewer to whom the profile names.
func put(ctx context.Context, c *Command, p *profiles.Profile, r Request) (a Answer, shown bool, err error) {
	reviewed, silence, err := review(ctx, c, p, r)
	if err != nil {
		return Answer{}, false, err
	}
	if reviewed != nil {
		return *reviewed, false, nil
	}
	a, err = approve(ctx, c, p, r, silence)
	return a, p.Ask == "prompt" && c.Approver != nil && !strings.Contains(a.Reason, "no answer"), err
}

func TestPutEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, mode := range []policy.Mode{policy.ModeAsk, policy.ModeAuto} {
		f, _ := fakeCommand(t, "")
		f.Profile.Mode = mode
		c := Command{Approver: &says{err: context.Canceled}, Reviewer: &says{err: context.Canceled}}
		if _, _, err := put(ctx, &c, f.Profile, Request{}); !errors.Is(err, context.Canceled) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}

func TestAnswersAreRemembered(t *testing.T) {
	session := &says{Answer: Answer{Allow: true, Remember: ForSession}}
	project := &says{Answer: Answer{Allow: true, Remember: ForProject}}

	c, b := fakeCommand(t, "touch x; touch x y")
	c.Profile.Mode = policy.ModeAsk
	c.Approver, c.Session = session, &Session{}
	for range 2 {
		if _, err := Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	if len(session.asked) != 1 || b.starts != 2 {
		t.Fatalf("asked %d times for %d runs", len(session.asked), b.starts)
	}
	if got := session.asked[0]; !slices.Equal(got.Remember, []Choice{ForSession}) || len(got.Rules) == 0 || got.Profile != c.Profile.Name || got.Sandbox.Workspace != "read-write" {
		t.Errorf("the question: %+v", got)
	}
	c.Script = "touch z"
	if _, err := Run(context.Background(), c); err != nil || len(session.asked) != 2 {
		t.Errorf("another command: %v, asked %d times", err, len(session.asked))
	}
	c.Session = &Session{}
	c.Script = "touch x"
	if _, err := Run(context.Background(), c); err != nil || len(session.asked) != 3 {
		t.Errorf("another session: %v, asked %d times", err, len(session.asked))
	}

	c.Session, c.Approver = nil, project
	c.Script, c.Args = "", []string{"touch", "a b", "it's"}
	c.Settings = settings(t, c.Dir)
	if _, err := Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(project.asked[0].Remember, ForProject) || len(settings(t, c.Dir).Grants) != 0 {
		t.Errorf("a word that cannot stand in a rule: %+v", project.asked[0].Rules)
	}
	c.Args = []string{"touch", "a b"}
	if _, err := Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	stored := settings(t, c.Dir)
	c.Profile.Rules = stored.holding(stored.Grants)
	c.Approver = nil
	if _, err := Run(context.Background(), c); err != nil {
		t.Errorf("the stored rules %+v do not answer: %v", c.Profile.Rules, err)
	}
	c.Args = []string{"touch", "a", "b"}
	if _, err := Run(context.Background(), c); err == nil {
		t.Error("the stored rules answer for other words")
	}
}

// What must not be remembered is not offered, and an approver that answers so
// all the same does not get it.
func TestAnswersThatAreNotRemembered(t *testing.T) {
	for _, script := range []string{
		"rm -rf x",          // danger
		"touch $x",          // known only when it runs
		"touch x*",          // a pattern
		"touch 'x*'",        // would be one in a rule
		"cat ../hidden",     // what a yes opens is for one run
		"touch x; rm -rf x", // in part
	} {
		c, _ := fakeCommand(t, script)
		c.Profile.Mode = policy.ModeAsk
		c.Profile.Hide = []string{filepath.Join(os.Getenv("HOME"), "hidden")}
		write(t, "", os.Getenv("HOME"), "hidden")
		s := &says{Answer: Answer{Allow: true, Remember: ForProject}}
		c.Approver, c.Session, c.Settings = s, &Session{}, settings(t, c.Dir)
		if _, err := Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		if len(s.asked) != 1 || s.asked[0].Remember != nil || len(settings(t, c.Dir).Grants) != 0 {
			t.Errorf("%s: offered %+v, stored %+v", script, s.asked, settings(t, c.Dir).Grants)
		}
	}
}

// Between the question and its answer everything may change.
func TestAnswersToWhatWasDifferent(t *testing.T) {
	c, b := fakeCommand(t, "touch link/x")
	c.Profile.Mode = policy.ModeAsk
	link := filepath.Join(c.Dir, "link")
	if err := os.Symlink(mkdir(t, c.Dir, "inside"), link); err != nil {
		t.Fatal(err)
	}
	c.Approver = approver(func(Request) (Answer, error) {
		if err := errors.Join(os.Remove(link), os.Symlink(filepath.Dir(c.Dir), link)); err != nil {
			t.Fatal(err)
		}
		return Answer{Allow: true}, nil
	})
	var refused *RefusedError
	if _, err := Run(context.Background(), c); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "changed") || b.starts != 0 {
		t.Errorf("got %v, started %d", err, b.starts)
	}
}

// Of the paths of a question a yes opens those that are not open anyway.
func TestHolds(t *testing.T) {
	c, _ := fakeCommand(t, "")
	outside := write(t, "", filepath.Dir(c.Dir), "out")
	c.Script = "echo x >in; echo x >" + outside
	c.Profile.Mode = policy.ModeAsk
	s := &says{}
	c.Approver = s
	var refused *RefusedError
	if _, err := Run(context.Background(), c); !errors.As(err, &refused) || len(s.asked) != 1 {
		t.Fatalf("asked %d times, %v", len(s.asked), err)
	}
	if h := s.asked[0].Sandbox; h.Workspace != "read-write" || h.Network != "off" || len(h.Read) != 0 || !slices.Equal(h.Write, []string{outside}) {
		t.Errorf("%+v", h)
	}
}

func TestRequestKind(t *testing.T) {
	target := func(a policy.Action, v policy.Verdict) policy.Target { return policy.Target{Action: a, Verdict: v} }
	for _, test := range []struct {
		targets []policy.Target
		want    string
	}{
		{nil, "command"},
		{[]policy.Target{target(policy.Exec, policy.Ask)}, "command"},
		{[]policy.Target{target(policy.FileRead, policy.Ask), target(policy.FileWrite, policy.Ask), target(policy.Exec, policy.Allow)}, "path"},
		{[]policy.Target{target(policy.FileRead, policy.Ask), target(policy.Exec, policy.Ask)}, "command"},
		{[]policy.Target{target(policy.NetworkTo, policy.Ask)}, "host"},
		{[]policy.Target{target(policy.Tool, policy.Ask)}, "tool"},
		{[]policy.Target{target(policy.Tool, policy.Ask), target(policy.NetworkTo, policy.Ask)}, "command"},
		{[]policy.Target{target(policy.EnvSet, policy.Ask)}, "command"},
	} {
		r := Request{Decision: policy.Decision{Targets: test.targets}}
		if got := r.kind(); got != test.want {
			t.Errorf("%v: %s, want %s", test.targets, got, test.want)
		}
	}
}
