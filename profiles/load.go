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

// One file a profile.
//
//go:embed builtin/*.toml
var builtin embed.FS

// maxSize bounds a profile's file, in bytes.
const maxSize = 1 << 20

// Names returns the names of the built-in profiles, sorted.
func Names() []string {
	entries, _ := builtin.ReadDir("builtin")
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// Load returns a built-in profile by its name, or reads a file: a name that
// holds a slash or ends in ".toml" is a file's. The error is an *Error.
func Load(nameOrFile string) (*Profile, error) {
	if strings.Contains(nameOrFile, "/") || strings.HasSuffix(nameOrFile, ".toml") {
		data, err := readFile(nameOrFile)
		if err != nil {
			return nil, &Error{File: nameOrFile, Err: err, Hint: "name a file that holds a profile"}
		}
		return Parse(nameOrFile, data)
	}
	data, err := builtin.ReadFile("builtin/" + nameOrFile + ".toml")
	if err != nil {
		return nil, &Error{
			File: nameOrFile,
			Err:  fmt.Errorf("no such profile: %w", fs.ErrNotExist),
			Hint: "built in: " + strings.Join(Names(), ", ") + `; a file's name holds a slash or ends in ".toml"`,
		}
	}
	return Parse(nameOrFile+".toml", data)
}

// readFile reads a regular file of at most maxSize. It never waits: opening a
// FIFO without O_NONBLOCK would.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
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
