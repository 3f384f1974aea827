package profiles

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// maxSize bounds a profile's file, in bytes.
const maxSize = 1 << 20

// Names returns the names of the built-in profiles, sorted.
func Names() []string {
	var names []string
	for i := range builtinProfiles {
		names = append(names, builtinProfiles[i].Name)
	}
	return names
}

//go:embed builtin/*.toml
var builtinFiles embed.FS

// Text is the file of a built-in profile. The error is an *Error.
func Text(name string) ([]byte, error) {
	p, err := Load(name)
	if err == nil && isFile(name) {
		err = &Error{File: name, Err: errors.New("not a built-in profile"), Hint: "built in: " + strings.Join(Names(), ", ")}
	}
	if err != nil {
		return nil, err
	}
	return builtinFiles.ReadFile("builtin/" + p.File)
}

// Load returns a built-in profile by its name, or reads a file: a name that
// holds a slash or ends in ".toml" is a file's. The error is an *Error.
func Load(nameOrFile string) (*Profile, error) {
	if isFile(nameOrFile) {
		data, err := readFile(nameOrFile, 0)
		if err != nil {
			return nil, &Error{File: nameOrFile, Err: err, Hint: "name a file that holds a profile"}
		}
		return Parse(nameOrFile, data)
	}
	for _, p := range builtinProfiles {
		if p.Name == nameOrFile {
			return &p, nil
		}
	}
	return nil, &Error{
		File: nameOrFile,
		Err:  fmt.Errorf("no such profile: %w", fs.ErrNotExist),
		Hint: "built in: " + strings.Join(Names(), ", ") + `; a file's name holds a slash or ends in ".toml"`,
	}
}

func isFile(name string) bool { return strings.Contains(name, "/") || strings.HasSuffix(name, ".toml") }

// readFile reads a regular file of at most maxSize. It never waits: opening a
// FIFO without O_NONBLOCK would.
func readFile(name string, flags int) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = fmt.Errorf("larger than %d KiB", maxSize>>10)
	}
	return data, err
}
