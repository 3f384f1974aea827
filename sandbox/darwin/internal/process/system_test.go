//go:build darwin || linux

package process

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestProcesses(t *testing.T) {
	p, ok := find(strconv.Itoa(os.Getpid()))
	session, err := unix.Getsid(0)
	if !ok || err != nil {
		t.Fatal("this process is in no list: ", err)
	}
	if p.parent != os.Getppid() || p.group != unix.Getpgrp() || p.session != session || p.zombie || p.start <= 0 {
		t.Errorf("%+v, want parent %d, group %d, session %d", p, os.Getppid(), unix.Getpgrp(), session)
	}
	// Begun later, and a zombie until it is collected.
	child := exec.Command("/bin/sh", "-c", "exit 0")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(child.Process.Pid)
	for deadline := time.Now().Add(time.Minute); alive(pid) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	c, ok := find(pid)
	if !ok || !c.zombie || c.parent != os.Getpid() || c.start < p.start {
		t.Errorf("a child that ended: %+v, %v; want a zombie", c, ok)
	}
	child.Wait()
	if _, ok := find(pid); ok {
		t.Error("a child that is collected is in the list")
	}
}

func TestFootprint(t *testing.T) {
	before, err := Footprint(os.Getpid())
	if err != nil || before < 1<<20 || before > 1<<32 {
		t.Fatalf("%d bytes, %v", before, err)
	}
	memory := make([]byte, 64<<20)
	for i := range memory {
		memory[i] = byte(i)
	}
	after, err := Footprint(os.Getpid())
	if err != nil || after < before+32<<20 {
		t.Errorf("%d bytes before, %d with 64 MiB more: %v", before, after, err)
	}
	if memory[len(memory)-1] == 0 {
		t.Error("unreachable")
	}
	if _, err := Footprint(1 << 30); err == nil {
		t.Error("a process that is not there has a footprint")
	}
}

// A fork is told at once, not when the time is over.
func TestForks(t *testing.T) {
	f, err := newForks()
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("/bin/sh", "-c", "read line; (:); read line")
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	f.add(shell.Process.Pid)
	told := make(chan bool)
	go func() { f.wait(time.Hour); told <- true }()
	in.Write([]byte("go\n"))
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Error("nothing was told of a fork")
	}
	in.Close()
	shell.Wait()
}
