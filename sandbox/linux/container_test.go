//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// refuseNamespaces does to this process what the default profiles of container
// engines do: clone(2) and unshare(2) with namespaces fail, clone3(2) looks as if
// the kernel had none, because its flags cannot be seen.
func refuseNamespaces(errno syscall.Errno) error {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	const load, equal, set, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_JMP | unix.BPF_JSET, unix.BPF_RET
	prog := []unix.SockFilter{
		{Code: load, K: 0},
		{Code: equal, K: unix.SYS_UNSHARE, Jt: 5},
		{Code: equal, K: unix.SYS_CLONE3, Jt: 5},
		{Code: equal, K: unix.SYS_CLONE, Jf: 2},
		{Code: load, K: 16}, // the lower half of the first argument
		{Code: set, K: namespaces, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if e != 0 {
		return e
	}
	return nil
}

// contained runs a command in the workspace, where namespaces and cgroups may be
// missing as may says, and returns the tier and how far namespaces hold.
func contained(workspace string, may ...string) error {
	p, err := New().Start(context.Background(), &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", "echo >in; echo >../out"}, Dir: workspace, Env: []string{"PATH=/bin:/usr/bin"},
	}, sandbox.Spec{
		Workspace:    workspace,
		Files:        []sandbox.FileRule{{Path: "/", Access: sandbox.ReadOnly}, {Path: workspace, Access: sandbox.ReadWrite}},
		AllowMissing: append(may, sandbox.LayerCgroup),
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return errors.New("unsupported")
	}
	if err != nil {
		return err
	}
	_, err = p.Wait()
	r := p.Report()
	return errors.Join(err, fmt.Errorf("%s, %v", r.Tier, r.Layers[0].State))
}

// TestContainers: where namespaces are refused, in either way, Landlock holds
// alone if it may, and nothing runs else.
func TestContainers(t *testing.T) {
	if landlockABI() == 0 {
		skip(t, "no Landlock here")
	}
	for _, errno := range []string{"EPERM", "ENOSYS"} {
		for _, may := range []string{sandbox.LayerNamespaces, ""} {
			f := newFixture(t)
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), probeEnv+"="+strings.Join([]string{"contained", errno, f.ws, may}, "\x01"))
			out, _ := cmd.CombinedOutput()
			want, ran := "landlock, missing", true
			if may == "" {
				want, ran = "unsupported", false
			}
			if string(out) != want {
				t.Errorf("%s, allowed to be missing: %q: %q, want %q", errno, may, out, want)
			}
			if _, err := os.Stat(f.ws + "/in"); (err == nil) != ran {
				t.Errorf("%s, allowed to be missing: %q: in the workspace: %v", errno, may, err)
			}
			if _, err := os.Stat(f.home + "/out"); err == nil {
				t.Errorf("%s, allowed to be missing: %q: it wrote outside", errno, may)
			}
		}
	}
}

// TestMaskedProc is what podman does to /proc, so that no other can be mounted.
func TestMaskedProc(t *testing.T) {
	if os.Geteuid() != 0 || !isAdmin() || landlockABI() == 0 {
		t.Skip("only root can mask /proc, and an ordinary user be in want of it")
	}
	f := newFixture(t)
	if err := errors.Join(os.Chmod(f.home, 0o755), os.Chown(f.ws, plainUID, plainUID)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-c",
		"mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec setpriv --reuid 54321 --regid 54321 --clear-groups "+base+"/probe")
	cmd.Env = append(os.Environ(), probeEnv+"="+strings.Join([]string{"masked", f.ws}, "\x01"))
	out, _ := cmd.CombinedOutput()
	if string(out) != "namespaces, weaker" {
		t.Errorf("%q", out)
	}
	if _, err := os.Stat(f.ws + "/in"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.home + "/out"); err == nil {
		t.Error("it wrote outside")
	}
}
