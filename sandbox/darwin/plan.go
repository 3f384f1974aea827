//go:build unix

package darwin

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/internal/rundir"
	"golang.org/x/sys/unix"
)

// canary is something that the helper inside tries before the program runs.
type canary struct {
	what string
	op   op
	path string
	want syscall.Errno
}

type op uint8

const (
	read op = iota
	create
	connect
)

// canaries are one of each kind of promise, tried on files that only this run
// has. Without the second a profile under which nothing works would pass.
func canaries(dir private, spec sandbox.Spec) []canary {
	list := []canary{
		{"read a file that is hidden", read, dir.hidden(), unix.EPERM},
		{"read a file that is read-only", read, dir.shown(), 0},
		{"make a file in a directory that is read-only", create, dir.readOnly() + "/new", unix.EPERM},
		{"make a file in a directory that is hidden", create, dir.path + "/new", unix.EPERM},
		{"make a file in the temporary directory", create, spec.Tmp + "/" + prefix + "canary-" + dir.tag, 0},
	}
	if spec.Network == sandbox.NetworkOff {
		// Nothing listens there: without a sandbox it is refused with another
		// error.
		list = append(list, canary{"connect to a port of this machine", connect, "127.0.0.1:9", unix.EPERM})
	}
	return list
}

// private is a directory of one run: it holds the profile, what the canaries
// try, and the temporary directory if that goes with the run.
type private struct {
	path string
	tag  string // names the run
	lock *os.File
}

func (d private) profile() string  { return d.path + "/profile.sb" }
func (d private) hidden() string   { return d.path + "/hidden" }
func (d private) readOnly() string { return d.path + "/read-only" }
func (d private) shown() string    { return d.path + "/read-only/shown" }
func (d private) tmp() string      { return d.path + "/tmp" }

const prefix = "sandbox-exec-"

// newPrivate makes the directory of a run in base, whose path has no links in it.
// It is locked for as long as we live; what killed runs of ours left is removed
// first. base must be out of the command's reach: whoever writes there writes the
// profile.
func newPrivate(base string, spec sandbox.Spec) (private, error) {
	if sandbox.AccessOf(spec.Files, base) == sandbox.ReadWrite {
		return private{}, &sandbox.SpecError{
			Field: "TMPDIR", Value: base, Err: errors.New("the command could write to it, and so to the profile that confines it"),
			Hint: "unset TMPDIR, or set it to a directory outside of all that the command may write to",
		}
	}
	d, err := makePrivate(base)
	if err != nil {
		return private{}, &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: "make a private directory in " + base, Err: err, Hint: "TMPDIR must name a directory that you can write to"}
	}
	return d, nil
}

func makePrivate(base string) (d private, err error) {
	if d.lock, err = rundir.Make(base, prefix+"run-"); err != nil {
		return d, err
	}
	d.path = d.lock.Name()
	var tag [8]byte
	rand.Read(tag[:])
	d.tag = hex.EncodeToString(tag[:])
	for _, dir := range []string{d.readOnly(), d.tmp()} {
		err = errors.Join(err, os.Mkdir(dir, 0o700))
	}
	for _, file := range []string{d.hidden(), d.shown()} {
		err = errors.Join(err, os.WriteFile(file, []byte(d.tag), 0o600))
	}
	if err != nil {
		return d, errors.Join(err, d.remove())
	}
	return d, nil
}

// remove takes the directory away. What the command made in it may be closed to
// its owner.
func (d private) remove() error {
	err := os.RemoveAll(d.path)
	if err != nil {
		filepath.WalkDir(d.path, func(path string, entry os.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(d.path)
	}
	d.lock.Close()
	return err
}

// confine adds to spec what holds for this run. A session's directory is in our
// own state, which is hidden.
func confine(spec sandbox.Spec, dir private) sandbox.Spec {
	rule := func(path string, access sandbox.Access, reason string) {
		spec.Files = append(spec.Files, sandbox.FileRule{Path: path, Access: access, Sort: sandbox.Hard, Reason: reason})
	}
	spec.Files = slices.Clip(spec.Files)
	rule(dir.path, sandbox.None, "this run's profile")
	rule(dir.readOnly(), sandbox.ReadOnly, "tried before the command runs")
	if spec.Tmp == "" {
		spec.Tmp = dir.tmp()
	}
	rule(spec.Tmp, sandbox.ReadWrite, "TMPDIR")
	return spec
}

// retarget points what an environment has of /tmp, which is everybody's here, to
// the command's own temporary directory.
func retarget(env []string, to string) []string {
	out := make([]string, 0, len(env)+1)
	prefixed := false
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		rest, below := strings.CutPrefix(value, "/tmp")
		temporary := strings.Contains(name, "TMP") || name == "TEMP" || name == "TEMPDIR"
		if below && (rest == "" || rest[0] == '/') && (temporary || rest == "/cache" || strings.HasPrefix(rest, "/cache/")) {
			e = name + "=" + to + rest
		}
		prefixed = prefixed || name == "TMPPREFIX"
		out = append(out, e)
	}
	if !prefixed {
		out = append(out, "TMPPREFIX="+to+"/zsh") // here-documents of zsh, zshparam(1)
	}
	return out
}
