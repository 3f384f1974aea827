package runner

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// shell is the one shell that runs scripts.
func shell() string {
	const bash, sh = "/bin/bash", "/bin/sh"
	if isExecutable(bash) == nil {
		return bash
	}
	return sh
}

// dialect is what shell reads.
func dialect() policy.Shell {
	if filepath.Base(shell()) == "bash" {
		return policy.Bash
	}
	return policy.POSIX
}

// lookPath finds the program that a shell in dir would start as name, by the
// PATH of the environment that the program gets.
//
// A name with a slash is left as it is: whether it can be executed is known
// only where it will be, behind the private /tmp and the hidden directories.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var found error = exec.ErrNotFound
	for _, entry := range filepath.SplitList(getenv(env, "PATH")) {
		// An empty entry is the working directory, environ(7).
		path := filepath.Join(entry, name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		err := isExecutable(path)
		if err == nil {
			return path, nil
		}
		// As shells do: a file that cannot be executed is remembered, the
		// search goes on.
		if !errors.Is(err, fs.ErrNotExist) && errors.Is(found, exec.ErrNotFound) && isFile(path) {
			found = err
		}
	}
	return "", &sandbox.ExecError{Path: name, Err: found}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func isExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fs.ErrPermission
	}
	return nil
}

func getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// setenv returns env with the variables of more in it, each once.
func setenv(env, more []string) []string {
	set := make(map[string]bool, len(more))
	for _, v := range more {
		name, _, _ := strings.Cut(v, "=")
		set[name] = true
	}
	out := make([]string, 0, len(env)+len(more))
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); !set[name] {
			out = append(out, v)
		}
	}
	return append(out, more...)
}

// resolver tells the judge what is on the file system.
type resolver struct{}

// Resolve follows symbolic links as far as path exists.
func (resolver) Resolve(path string) (string, error) {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		// A link that leads nowhere yet is followed by whoever creates its
		// target.
		if target, err := os.Readlink(dir); err == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(dir), target)
			}
			return resolver{}.Resolve(filepath.Join(target, rest))
		}
		if dir == "/" {
			return path, nil
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// ReadFile reads a regular file of at most max bytes.
func (resolver) ReadFile(path string, max int) ([]byte, error) {
	return readSmall(path, int64(max))
}
