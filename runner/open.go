package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// Tools judges what the embedding program's own tools do, by the rules and the
// roots that hold for the commands of the same profile and place. No sandbox
// holds these tools, so that what it asks or denies must not be done.
//
// Each method judges, asks the Approver where the policy asks, and returns a
// *RefusedError if the answer is no.
type Tools struct {
	command Command
	profile profiles.Profile
	place   profiles.Place
	scope   policy.Scope
}

// NewTools makes Tools of the Dir, Workspace, Env, Profile, Approver and
// Session of a Command without Script and Args.
func NewTools(c Command) (*Tools, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	where, _, err := place(&c)
	if err != nil {
		return nil, err
	}
	t := &Tools{command: c, profile: *c.Profile, place: where}
	t.profile.Rules = slices.Concat(t.profile.Rules, c.Session.allowed())
	t.scope = t.profile.Scope(where)
	t.scope.Resolver = resolver{}
	return t, nil
}

// Invoke judges the use of a tool by its name.
func (t *Tools) Invoke(ctx context.Context, name string) error {
	return t.settle(ctx, func() policy.Decision { return t.profile.Policy().CheckTool(name, t.scope) })
}

// Connect judges a connection to a host; port 0 means any. It opens none: dial
// the name that was judged, and judge again what a redirect names.
func (t *Tools) Connect(ctx context.Context, host string, port int) error {
	return t.settle(ctx, func() policy.Decision { return t.profile.Policy().CheckHost(host, port, t.scope) })
}

// OpenRead judges the reading of a regular file and opens it. The file that is
// returned is the one that was judged, whatever happens to the links and names
// on the way meanwhile. A relative path is below the working directory.
//
// A path below /tmp is that of the commands: with a session's /tmp its files
// are there, with a private one there are none.
func (t *Tools) OpenRead(ctx context.Context, path string) (*os.File, error) {
	return t.open(ctx, path, sandbox.ReadOnly, unix.O_RDONLY)
}

// OpenWrite is OpenRead for a file that is read and written. It makes the file
// if it is not there, and truncates none; its directory must be there.
func (t *Tools) OpenWrite(ctx context.Context, path string) (*os.File, error) {
	return t.open(ctx, path, sandbox.ReadWrite, unix.O_RDWR|unix.O_CREAT)
}

func (t *Tools) open(ctx context.Context, path string, access sandbox.Access, flags int) (*os.File, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, &CommandError{Field: "path", Value: path, Err: errors.New("no path")}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.place.Cwd, path)
	}
	check := t.profile.Policy().CheckRead
	if access == sandbox.ReadWrite {
		check = t.profile.Policy().CheckWrite
	}
	flags |= unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NOCTTY

	if rest, ok := t.inTmp(path); ok {
		if err := t.settle(ctx, func() policy.Decision { return check(path, t.scope) }); err != nil {
			return nil, err
		}
		return openIn(t.place.TmpDir, rest, flags)
	}

	// Where the path leads is looked up once; that is judged beside the path as
	// it is written, and opened without following any link.
	real, err := resolver{}.Resolve(path)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if within(real, dir) {
			return nil, &CommandError{Field: "path", Value: path, Err: fmt.Errorf("in %s a command sees other files than this program", dir), Hint: "read it with a command"}
		}
	}
	scope := t.scope
	scope.Resolver = nil
	profile := t.profile
	err = t.settle(ctx, func() policy.Decision {
		return stricter(check(path, t.scope), check(real, scope))
	}, func(target policy.Target) {
		if access == sandbox.ReadWrite {
			profile.Write = append(profile.Write[:len(profile.Write):len(profile.Write)], target.Resource)
		} else {
			profile.Read = append(profile.Read[:len(profile.Read):len(profile.Read)], target.Resource)
		}
	})
	if err != nil {
		return nil, err
	}
	// A rule may allow what no command could open.
	spec, err := profile.Spec(t.place)
	if err != nil {
		return nil, err
	}
	if have := sandbox.AccessOf(spec.Files, real); have < access {
		return nil, &CommandError{
			Field: "path", Value: path, Err: fmt.Errorf("for commands it is %v", have),
			Hint: "a rule only answers a question; the profile or a flag opens a path",
		}
	}
	for _, name := range spec.Protect {
		if access == sandbox.ReadWrite && name.Guard == sandbox.Block && sandbox.Covers(name.Path, real) {
			return nil, &CommandError{
				Field: "path", Value: path, Err: fmt.Errorf("%s is protected: %s", name.Path, name.Reason),
				Hint: "take it out of the protected names, with Profile.Unprotect",
			}
		}
	}
	return openReal(real, flags)
}

// inTmp says whether a path is in the /tmp of the commands, and where.
func (t *Tools) inTmp(path string) (rest string, ok bool) {
	path = filepath.Clean(path)
	if t.place.OS == "darwin" || !within(path, "/tmp") {
		return "", false
	}
	for _, dir := range append([]string{t.place.Workspace}, t.place.GitDirs...) {
		if within(path, dir) {
			return "", false
		}
	}
	rest, err := filepath.Rel("/tmp", path)
	return rest, err == nil
}

// openIn opens a file of the session's /tmp. Links that lead out of it, as
// those with an absolute path do, are not followed.
func openIn(dir, name string, flags int) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return regular(f)
}

// openReal opens an absolute path of which no part is a link. Every directory
// on the way is held while the next name is looked up in it, so that nobody can
// put another one in its place.
func openReal(path string, flags int) (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			err = errors.New("it was replaced while it was judged")
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	dir, err := openat(unix.AT_FDCWD, "/", dirFlags)
	if err != nil {
		return fail(err)
	}
	names := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, name := range names[:len(names)-1] {
		next, err := openat(dir, name, dirFlags)
		unix.Close(dir)
		if err != nil {
			return fail(err)
		}
		dir = next
	}
	fd, err := openat(dir, names[len(names)-1], flags)
	unix.Close(dir)
	if err != nil {
		return fail(err)
	}
	return regular(os.NewFile(uintptr(fd), path))
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0o666)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// regular returns f if it is a regular file.
func regular(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if err == nil {
		err = unix.SetNonblock(int(f.Fd()), false)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// settle judges, asks, and judges again after an answer. Each path that an
// approver was shown and allowed is given to opened.
func (t *Tools) settle(ctx context.Context, decide func() policy.Decision, opened ...func(policy.Target)) error {
	d := decide()
	why := d.Err()
	if why == nil {
		return nil
	}
	refuse := func(reason string) error { return &RefusedError{Decision: d, Reason: reason, Err: why} }
	var ask *policy.NeedsApprovalError
	if !errors.As(why, &ask) {
		return refuse("")
	}
	r := Request{
		Dir: t.place.Cwd, Workspace: t.place.Workspace, Decision: d,
		Profile: t.profile.Name, Sandbox: holds(&t.profile, ask.Targets),
	}
	answer, silence, err := review(ctx, &t.command, &t.profile, r)
	shown := false
	if err == nil && answer == nil {
		if t.command.Session != nil && t.profile.Ask == "prompt" && t.command.Approver != nil {
			release, err := t.command.Session.turn(ctx)
			if err != nil {
				return fmt.Errorf("waiting for another question: %w", err)
			}
			defer release()
		}
		var a Answer
		a, err = approve(ctx, &t.command, &t.profile, r, silence)
		answer, shown = &a, t.profile.Ask == "prompt"
	}
	switch {
	case err != nil:
		return err
	case !answer.Allow:
		return refuse(answer.Reason)
	case !reflect.DeepEqual(decide().Targets, d.Targets):
		return refuse("what it would do has changed since the question")
	}
	for _, target := range ask.Targets {
		if shown && opens(target) {
			for _, open := range opened {
				open(target)
			}
		}
	}
	return nil
}

// stricter joins two decisions about one path.
func stricter(a, b policy.Decision) policy.Decision {
	for _, t := range b.Targets {
		if !slices.ContainsFunc(a.Targets, func(o policy.Target) bool { return o.Resource == t.Resource && o.Verdict == t.Verdict }) {
			a.Targets = append(a.Targets, t)
		}
	}
	a.Verdict = max(a.Verdict, b.Verdict)
	return a
}
