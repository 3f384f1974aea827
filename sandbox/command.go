package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// CheckCommand refuses what no backend can start under spec, with a *SpecError.
func CheckCommand(cmd *exec.Cmd, spec Spec) error {
	switch {
	case spec.Workspace == "" || spec.Workspace[0] != '/':
		return &SpecError{Field: "workspace", Value: spec.Workspace, Err: errors.New("not an absolute path")}
	case spec.Workspace == "/":
		return &SpecError{
			Field: "workspace", Value: "/", Err: errors.New("the whole system cannot be a workspace"),
			Hint: "name a directory",
		}
	case len(cmd.Args) == 0 || cmd.Path == "" || cmd.Dir == "":
		return &SpecError{Field: "command", Value: cmd.Path, Err: errors.New("path, arguments and directory are needed")}
	}
	for i, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		f, ok := stream.(*os.File)
		if !ok || f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return &SpecError{
				Field: "descriptor", Value: fmt.Sprint(i), Err: errors.New("is a directory, from which a program reaches all that lies below"),
				Hint: "give a file, a pipe or nothing",
			}
		}
	}
	for _, s := range slices.Concat([]string{cmd.Path, cmd.Dir}, cmd.Args, cmd.Env) {
		if strings.IndexByte(s, 0) >= 0 {
			return &SpecError{
				Field: "argument", Value: s, Err: errors.New("holds a NUL byte"),
				Hint: "no program can be given one",
			}
		}
	}
	return nil
}

// MayMiss says whether the command may run without a layer.
func (s Spec) MayMiss(layer string) bool {
	return slices.Contains(s.AllowMissing, layer) && !slices.Contains(s.Require, layer)
}

// Check refuses, with an *UnsupportedError, a report of a layer that is missing
// and may not be, or is less than spec requires.
func (r Report) Check(spec Spec) error {
	for _, name := range spec.Require {
		i := slices.IndexFunc(r.Layers, func(l Layer) bool { return l.Name == name })
		if i < 0 {
			return &UnsupportedError{
				Layer: name, Want: "a layer that was required", Have: "none of that name on this system",
				Hint: "sandbox-exec doctor lists the layers that are here",
			}
		}
		if l := r.Layers[i]; l.State != Enforced {
			return &UnsupportedError{Layer: name, Want: "all of it, as required", Have: l.State.String() + ": " + l.Why, Hint: l.Fix}
		}
	}
	for _, l := range r.Layers {
		if l.State == Missing && !spec.MayMiss(l.Name) {
			return &UnsupportedError{Layer: l.Name, Want: "it", Have: l.Why, Hint: l.Fix + ", or allow the layer to be missing"}
		}
	}
	return nil
}

// Trial is a shell that does nothing, in dir and with limits, for finding out
// what holds here. The layers named may be missing.
func Trial(dir string, allowMissing ...string) (*exec.Cmd, Spec) {
	cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", ":"}, Env: []string{}, Dir: dir}
	return cmd, Spec{
		Workspace:    dir,
		Files:        []FileRule{{Path: "/", Access: ReadOnly}, {Path: dir, Access: ReadWrite}},
		Limits:       Limits{Memory: 1 << 30, PIDs: 64},
		AllowMissing: allowMissing,
	}
}
