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
