//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sandbox-exec/sandbox-exec/runner"
)

// helpers are what this program is when it is started with their name: the work
// inside of a sandbox, and workers.
var helpers = map[string]func(args []string) error{
	"inside-creates": insideCreates,
	"inside-opens":   insideOpens,
	"inside-time":    insideTime,
	"inside-wait":    func([]string) error { time.Sleep(time.Minute); return nil },
	"worker-spawn":   workerSpawn,
	"worker-library": workerLibrary,
	"library-once":   func(args []string) error { _, err := libraryRun(args[0]); return err },
}

// insideCreates makes N files and says how long one took, in µs.
func insideCreates(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(".", "creates-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	begin := time.Now()
	for i := range n {
		f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		f.Close()
	}
	fmt.Println(float64(time.Since(begin).Microseconds()) / float64(n))
	return nil
}

// insideOpens opens and closes a file N times and says how long once took, in µs.
func insideOpens(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	const name = "opened"
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		return err
	}
	begin := time.Now()
	for range n {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		f.Close()
	}
	fmt.Println(float64(time.Since(begin).Nanoseconds()) / 1e3 / float64(n))
	return nil
}

// insideTime runs a program and says how long it took, in ms.
func insideTime(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return err
	}
	fmt.Println(float64(time.Since(begin).Microseconds()) / 1e3)
	return nil
}

// answer replies to requests until there are no more.
func answer[T any](f func(T) (float64, error)) error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var request T
		if err := in.Decode(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r reply
		v, err := f(request)
		if r.Value = v; err != nil {
			r.Err = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

type spawnRequest struct {
	Dir  string
	Argv []string
}

func workerSpawn([]string) error {
	return answer(func(r spawnRequest) (float64, error) { return spawn(r.Dir, r.Argv) })
}

// workerLibrary runs commands by the library in a process with a heap of
// args[0] MiB.
func workerLibrary(args []string) error {
	mib, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	heap := make([]byte, mib<<20)
	for i := 0; i < len(heap); i += 4096 {
		heap[i] = 1
	}
	err = answer(func(ws string) (float64, error) { return libraryRun(ws) })
	heap[0] = 2 // it lives until here
	return err
}

// libraryRun is one call of the library, in ms.
func libraryRun(ws string) (float64, error) {
	begin := time.Now()
	result, err := runner.Run(context.Background(), runner.Command{Args: []string{"/bin/sh", "-c", "true"}, Dir: ws, Workspace: ws})
	spent := time.Since(begin)
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("%s, status %d", result.Cause, result.ExitCode)
	}
	return float64(spent) / float64(time.Millisecond), err
}
