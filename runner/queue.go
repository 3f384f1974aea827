package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"golang.org/x/sys/unix"
)

// Exclusive says whether a call is to be the only one of its kind in the
// workspace: of those that ask for it, one runs at a time. Others run beside it.
type Exclusive string

const (
	Shared          Exclusive = ""
	ExclusiveWait   Exclusive = "wait"   // until the others have ended
	ExclusiveRefuse Exclusive = "refuse" // with a *BusyError, where another runs
)

// BusyError is a workspace in which another command runs exclusively. Nothing
// was run.
type BusyError struct {
	Workspace string
	Holder    string // the process that looks after it, and since when; "" if that is not known
}

func (e *BusyError) Error() string {
	text := "another command runs exclusively in " + e.Workspace
	if e.Holder != "" {
		text += ": " + e.Holder
	}
	return text
}

// exclusive takes the workspace for a call that wants it alone, and judges
// again what may have changed meanwhile.
func (k *call) exclusive(ctx context.Context) (*os.File, error) {
	if k.Exclusive == Shared || k.decision.Verdict == policy.Deny {
		return nil, nil
	}
	f, err := openLock(k.place.StateDir, "exclusive", workspaceID(k.place.Workspace))
	if err != nil {
		return nil, &StateError{Path: filepath.Join(k.place.StateDir, "exclusive"), Err: cause(err)}
	}
	err = lock(f)
	waited := errors.Is(err, unix.EWOULDBLOCK)
	if waited {
		holder, _ := readSmall(f.Name(), 1<<10)
		busy := &BusyError{Workspace: k.place.Workspace, Holder: strings.TrimSpace(string(holder))}
		if err = busy; k.Exclusive == ExclusiveWait {
			k.tellWait(busy.Error())
			err = lockWhen(ctx, f)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	// For people: where it cannot be written, nobody is told who runs.
	f.Truncate(0)
	fmt.Fprintf(f, "process %d, since %s\n", os.Getpid(), time.Now().Format(time.DateTime))
	if waited {
		k.decision = k.decide()
	}
	return f, nil
}

func (k *call) tellWait(why string) {
	if k.OnWait != nil {
		k.OnWait(why)
	}
}

// queue waits until it is this call's turn to ask: of those that share a
// Session, or the rules that are stored for a workspace, one asks at a time, in
// this process and in others. The answers that were given meanwhile hold for
// it, too.
func (k *call) queue(ctx context.Context) (done func(), err error) {
	var releases []func()
	done = func() {
		for _, release := range slices.Backward(releases) {
			release()
		}
	}
	if k.Session != nil {
		release, err := k.Session.turn(ctx)
		if err != nil {
			return nil, fmt.Errorf("waiting for another question: %w", err)
		}
		releases = append(releases, release)
	}
	if k.Settings != nil {
		f, err := openLock(k.place.StateDir, "questions", workspaceID(k.place.Workspace))
		if err == nil {
			if err = lock(f); errors.Is(err, unix.EWOULDBLOCK) {
				k.tellWait("another question about this workspace waits for its answer")
				err = lockWhen(ctx, f)
			}
			releases = append(releases, func() { f.Close() })
		}
		if err != nil {
			done()
			if ctx.Err() != nil {
				return nil, fmt.Errorf("waiting for another question: %w", err)
			}
			return nil, &StateError{Path: filepath.Join(k.place.StateDir, "questions"), Err: cause(err)}
		}
	}
	if err := k.judgeAgain(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// judgeAgain judges by the answers and the stored rules that there are now.
func (k *call) judgeAgain() error {
	rules := slices.Clone(k.Command.Profile.Rules)
	if k.Settings != nil {
		list, err := k.Settings.readGrants()
		if err != nil {
			return err
		}
		stored := k.Settings.GrantsFile() + ":"
		rules = slices.DeleteFunc(rules, func(r policy.Rule) bool { return strings.HasPrefix(r.Source, stored) })
		rules = append(rules, k.Settings.holding(list)...)
	}
	k.profile.Rules = slices.Concat(rules, k.Session.allowed())
	k.decision = k.decide()
	return nil
}

// openLock opens a file to be locked, in a directory of ours.
func openLock(root, dir, name string) (*os.File, error) {
	dir = filepath.Join(root, dir)
	if err := ownDir(root, dir); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

// lockWhen takes the lock that lock takes, as soon as it is free.
func lockWhen(ctx context.Context, f *os.File) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := lock(f)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// turn waits until no other call of the session asks.
func (s *Session) turn(ctx context.Context) (release func(), err error) {
	s.mu.Lock()
	if s.asking == nil {
		s.asking = make(chan struct{}, 1)
	}
	asking := s.asking
	s.mu.Unlock()
	select {
	case asking <- struct{}{}:
		return func() { <-asking }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sameTargets compares what two decisions are about, and how it is settled; not
// by which line of a file.
func sameTargets(a, b []policy.Target) bool {
	return slices.EqualFunc(a, b, func(x, y policy.Target) bool {
		return x.Action == y.Action && slices.Equal(x.Argv, y.Argv) && x.Resource == y.Resource && x.Span == y.Span &&
			x.Verdict == y.Verdict && x.Stage == y.Stage && x.Reason == y.Reason && x.Dynamic == y.Dynamic &&
			x.Detail == y.Detail && slices.Equal(x.Wrappers, y.Wrappers)
	})
}
