package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sandbox-exec/sandbox-exec/cmd/sandbox-exec/selftest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sandbox-exec":   main,
		supervisorName:   main,
		"interrupts":     interrupts,
		selftest.Program: main,
		"testnet":        testnet,
	})
}

// interrupts counts the interrupts of half a second after the first.
func interrupts() {
	ch := make(chan os.Signal, 10)
	signal.Notify(ch, os.Interrupt)
	fmt.Println("ready")
	<-ch
	n := 1
	for end := time.After(500 * time.Millisecond); ; {
		select {
		case <-ch:
			n++
		case <-end:
			fmt.Println(n, "interrupts, end")
			return
		}
	}
}

func TestScripts(t *testing.T) {
	// Workspaces are not below /tmp, which is another one for a command.
	t.Setenv("TMPDIR", "/var/tmp")
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("LANG", "C")
			e.Setenv("GORACE", os.Getenv("GORACE"))
			if home, err := os.UserHomeDir(); err == nil { // where cargo of rustup finds its toolchains
				e.Setenv("RUSTUP_HOME", filepath.Join(home, ".rustup"))
			}
			e.Cd = filepath.Join(e.WorkDir, "home", "ws")
			return os.MkdirAll(e.Cd, 0o755) // a file "x" of the workspace is home/ws/x in an archive
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "race":
				return raceDetector, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"mkfifo": mkfifo,
		},
	})
}

// exits STATUS COMMAND... runs a command that must end with this exit status,
// or by this signal. What it writes is there for stdout and stderr.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	got := "0"
	err := ts.Exec(args[1], args[2:]...)
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		status := failed.Sys().(syscall.WaitStatus)
		got = strconv.Itoa(status.ExitStatus())
		if status.Signaled() {
			got = unix.SignalName(status.Signal())
		}
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("%s ended with %s, want %s", args[1], got, args[0])
	}
}

func mkfifo(ts *testscript.TestScript, neg bool, args []string) {
	for _, path := range args {
		ts.Check(syscall.Mkfifo(ts.MkAbs(path), 0o600))
	}
}
