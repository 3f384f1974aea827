package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What holds a case first. A layer that refuses commands where it is missing is
// always there; the other three may be missing.
const (
	namespaces  = "namespaces"
	landlock    = "landlock"
	seccomp     = "seccomp"
	cgroup      = "cgroup" // or the watch in its place
	descriptors = "descriptors"
	privileges  = "privileges"
	environment = "environment"
)

// never is an ABI of Landlock that there is not.
const never = 1 << 10

// A row is one case. What gets out is seen from outside: a secret's token in
// the output, a file that changed, a server that was reached, a process that
// was hit or that lives on. Where there is nothing to be seen from outside, as
// of a system call that should be refused, try's own word counts: it returns nil
// if the kernel let it.
type row struct {
	name, what string
	layer      string
	// alone is the ABI from which on Landlock holds it without the namespaces,
	// or without a look from seccomp; 0 = every one.
	alone int
	try   func(*inside) error
	mode  mode
	flags []string // of "sandbox-exec run"
}

type mode uint16

const (
	// word: nothing shows outside, try's own word counts.
	word mode = 1 << iota
	// work: honest work, which try returns nil for.
	work
	// root: a promise to root alone.
	root
	// within: only the sandbox's own namespaces could let it through, so that a
	// try without them proves nothing and is not made.
	within
	// network: promised while the network is off.
	network
	// terminal: on a terminal of its own.
	terminal
	// killed: sandbox-exec is killed with SIGKILL as soon as it runs.
	killed
	// victim: a process outside is attacked.
	victim
	// writes: work that wants a writable workspace.
	writes
)

// rows are the cases. Whoever adds one adds a line here; see row.
var rows = []row{
	{name: "work-files", what: "files of the workspace are made, renamed and removed", try: workFiles, mode: work | writes},
	{name: "work-home", what: "a file of the home that is no secret is read", try: workHome, mode: work},
	{name: "work-tmp", what: "the temporary directory is written to and read", try: workTmp, mode: work},
	{name: "work-devices", what: "/dev/null, /dev/zero and /dev/urandom are used", try: workDevices, mode: work},
	{name: "work-localhost", what: "a server of the command's own is reached at 127.0.0.1", layer: namespaces, alone: never, try: workLocalhost, mode: work},
	{name: "work-pty", what: "a pseudo terminal is opened", layer: namespaces, alone: never, try: workPty, mode: work},
	{name: "work-child", what: "a child is started, signalled and waited for", try: workChild, mode: work},

	{name: "read-secret", what: "~/.ssh/id_ed25519 is read", layer: namespaces, try: func(in *inside) error { return in.show(in.Home + "/.ssh/id_ed25519") }},
	{name: "read-secret-file", what: "~/.netrc is read", layer: namespaces, try: func(in *inside) error { return in.show(in.Home + "/.netrc") }},
	{name: "read-symlink", what: "~/.aws/credentials is read through a link in the workspace", layer: namespaces, try: func(in *inside) error { return in.show(in.WS + "/planted-link") }},
	{name: "read-hardlink", what: "~/.netrc is linked into the workspace and read there", layer: namespaces, try: readHardlink},
	{name: "read-proc-root", what: "a secret is read through /proc/self/root and /proc/1/root", layer: namespaces, try: readProcRoot},
	{name: "read-handle", what: "a secret is opened by its file handle, past all paths", layer: seccomp, try: readHandle},
	{name: "read-unmount", what: "what hides a secret is unmounted", layer: namespaces, try: readUnmount},
	{name: "read-config", what: "sandbox-exec's own configuration is read", layer: namespaces, try: func(in *inside) error { return in.show(in.Home + "/.config/sandbox-exec/config.toml") }},
	{name: "read-names", what: "names and sizes of hidden files are seen", layer: namespaces, alone: never, try: readNames, mode: word},
	{name: "read-descriptor", what: "a secret is read from descriptors that a careless caller left open", layer: descriptors, try: readDescriptor},
	{name: "read-environment", what: "a token is read from the environment", layer: environment, try: readEnvironment},

	{name: "write-append", what: "~/.bashrc is appended to", layer: namespaces, try: func(in *inside) error { return appendTo(in.Home + "/.bashrc") }},
	{name: "write-new", what: "a file is made in another project", layer: namespaces, try: func(in *inside) error { return os.WriteFile(in.Home+"/other/new", []byte("x"), 0o600) }},
	{name: "write-symlink", what: "~/.profile is written through a link in the workspace", layer: namespaces, try: writeSymlink},
	{name: "write-rename", what: "a file is renamed over ~/.bashrc", layer: namespaces, try: writeRename},
	{name: "write-remove", what: "another project is removed", layer: namespaces, try: func(in *inside) error { return os.RemoveAll(in.Home + "/other") }},
	{name: "write-truncate", what: "~/.profile is truncated by its path", layer: namespaces, alone: 3, try: func(in *inside) error { return unix.Truncate(in.Home+"/.profile", 0) }},
	{name: "write-mode", what: "the mode of a file of the home is changed", layer: namespaces, alone: never, try: func(in *inside) error { return os.Chmod(in.Home+"/diary", 0o777) }},
	{name: "write-times", what: "the times of a file of the home are changed", layer: namespaces, alone: never, try: writeTimes},
	{name: "write-fifo", what: "a FIFO of the home is written to", layer: landlock, try: writeFIFO},
	{name: "write-remount", what: "the file system is mounted writable again", layer: namespaces, try: writeRemount},
	{name: "write-sysctl", what: "the kernel's settings in /proc/sys are opened for writing", layer: namespaces, try: writeSysctl, mode: word},
	{name: "write-device", what: "a device node is made", layer: privileges, try: writeDevice, mode: word},
	{name: "write-setuid", what: "a file becomes set-user-ID root", layer: seccomp, try: func(in *inside) error { return unix.Chmod(in.WS+"/own", 0o4755) }, mode: word | root},

	{name: "protected-hook", what: "a git hook is written", layer: namespaces, alone: never, try: func(in *inside) error { return os.WriteFile(in.WS+"/.git/hooks/pre-commit", []byte("x"), 0o755) }},
	{name: "protected-config", what: ".git/config is changed", layer: namespaces, alone: never, try: func(in *inside) error { return appendTo(in.WS + "/.git/config") }},
	{name: "protected-swap", what: ".git is renamed away and another one put in its place", layer: namespaces, alone: never, try: protectedSwap},
	{name: "protected-new", what: "an .envrc that was not there is left in the workspace", layer: namespaces, alone: never, try: func(in *inside) error { return os.WriteFile(in.WS+"/.envrc", []byte("x"), 0o755) }},

	{name: "net-tcp", what: "a server at 127.0.0.1 is reached", layer: namespaces, try: func(in *inside) error { return connectTCP(in.TCP, 0) }, mode: network},
	{name: "net-tcp6", what: "a server at ::1 is reached", layer: namespaces, try: connectTCP6, mode: network},
	{name: "net-udp", what: "a datagram reaches a server at 127.0.0.1", layer: namespaces, try: sendUDP, mode: network},
	{name: "net-mptcp", what: "a server is reached by Multipath TCP", layer: namespaces, try: func(in *inside) error { return connectTCP(in.TCP, unix.IPPROTO_MPTCP) }, mode: network},
	{name: "net-packet", what: "a raw packet socket is opened", layer: seccomp, try: func(*inside) error { return opens(unix.AF_PACKET, unix.SOCK_RAW, 0) }, mode: word},
	{name: "net-vsock", what: "a socket to the hypervisor is opened", layer: seccomp, try: func(*inside) error { return opens(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }, mode: word},
	{name: "net-crypto", what: "a socket of the kernel's cryptography is opened", layer: seccomp, try: func(*inside) error { return opens(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }, mode: word},
	{name: "net-uevent", what: "the kernel's device messages are listened to", layer: seccomp, try: func(*inside) error { return opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) }, mode: word},

	{name: "socket-agent", what: "the socket that SSH_AUTH_SOCK names is reached", layer: namespaces, try: func(in *inside) error { return connectUnix(in.Agent) }, mode: network},
	{name: "socket-path", what: "a socket of another program in the home is reached", layer: namespaces, try: func(in *inside) error { return connectUnix(in.Socket) }, mode: network},
	{name: "socket-abstract", what: "an abstract socket is reached", layer: namespaces, try: func(in *inside) error { return connectUnix("@" + in.Abstract) }, mode: network},

	{name: "process-signal", what: "a process outside is signalled", layer: namespaces, alone: 6, try: func(in *inside) error { return unix.Kill(in.Victim, unix.SIGUSR1) }, mode: victim},
	{name: "process-see", what: "the command line of a process outside is read", layer: namespaces, alone: never, try: func(in *inside) error { return in.show(fmt.Sprintf("/proc/%d/cmdline", in.Victim)) }, mode: victim},
	{name: "process-environment", what: "the environment of a process outside is read", layer: namespaces, try: func(in *inside) error { return in.show(fmt.Sprintf("/proc/%d/environ", in.Victim)) }, mode: victim},
	{name: "process-memory", what: "the memory of a process outside is read", layer: namespaces, try: processMemory, mode: word | victim},
	{name: "process-priority", what: "the priority of a process outside is changed", layer: namespaces, alone: never, try: func(in *inside) error { return unix.Setpriority(unix.PRIO_PROCESS, in.Victim, 19) }, mode: victim},
	{name: "process-shm", what: "the shared memory of another program is read", layer: namespaces, alone: never, try: processShm},
	{name: "process-outlives", what: "a daemon lives on behind the command", layer: namespaces, try: daemon},
	{name: "process-killed", what: "the command lives on after SIGKILL of sandbox-exec", layer: namespaces, alone: never, try: stay, mode: killed},

	{name: "limit-processes", what: "more processes run than --pids allows", layer: cgroup, try: manyThreads, mode: word, flags: []string{"--pids", "48"}},
	{name: "limit-memory", what: "more memory is used than --memory allows", layer: cgroup, try: muchMemory, mode: word, flags: []string{"--memory", "64M"}},

	{name: "kernel-user-namespace", what: "a user namespace is made", layer: seccomp, try: userNamespace, mode: word},
	{name: "kernel-mount", what: "a file system is mounted", layer: seccomp, try: mounts, mode: word | within},
	{name: "kernel-io-uring", what: "an io_uring is set up", layer: seccomp, try: ioUring, mode: word},
	{name: "kernel-bpf", what: "a bpf map is made", layer: seccomp, try: bpf, mode: word},
	{name: "kernel-perf", what: "a perf event is opened", layer: seccomp, try: perf, mode: word},
	{name: "kernel-userfaultfd", what: "a userfaultfd is opened", layer: seccomp, try: userfault, mode: word},
	{name: "kernel-keyring", what: "a key is put into a keyring", layer: seccomp, try: keyring, mode: word},
	{name: "kernel-x32", what: "a system call of another ABI is made (x32)", layer: seccomp, try: x32, mode: word},
	{name: "kernel-privileges", what: "new privileges could be had by a set-user-ID program", layer: privileges, try: privilegesOpen, mode: word},
	{name: "kernel-capabilities", what: "power over the system is held (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SYS_PTRACE)", layer: privileges, try: capabilities, mode: word},
	{name: "terminal-type", what: "keys are typed into the terminal (TIOCSTI)", layer: seccomp, try: typeKeys, mode: word | terminal},
}

// inside is what an attempt knows of the world that it attacks.
type inside struct {
	Home, WS        string
	Confined        bool // else it is the try without a sandbox
	TCP, TCP6, UDP  int  // ports
	Agent, Socket   string
	Abstract        string
	Victim          int     // process
	VictimAddress   uintptr // of its token in its memory
	TokenLength     int
	Shm             int // segment
	Handle          []byte
	HandleType      int32
	Directory, File int // descriptors that the caller left open
}

// show prints what a file holds.
func (in *inside) show(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, io.LimitReader(f, 1<<16))
	return err
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("# attempt\n")
	return errors.Join(err, f.Close())
}

func readHardlink(in *inside) error {
	if err := os.Link(in.Home+"/.netrc", in.WS+"/linked"); err != nil {
		return err
	}
	return in.show(in.WS + "/linked")
}

func readProcRoot(in *inside) error {
	err := in.show("/proc/1/root" + in.Home + "/.netrc")
	return errors.Join(err, in.show("/proc/self/root"+in.Home+"/.netrc"), in.show("/proc/self/cwd/../.netrc"))
}

func readHandle(in *inside) error {
	dir, err := unix.Open(in.WS, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(in.HandleType, in.Handle), unix.O_RDONLY)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, os.NewFile(uintptr(fd), "handle"))
	return err
}

func readUnmount(in *inside) error {
	err := errors.Join(unix.Unmount(in.Home+"/.ssh", unix.MNT_DETACH), unix.Unmount(in.Home+"/.netrc", unix.MNT_DETACH))
	return errors.Join(err, in.show(in.Home+"/.ssh/id_ed25519"), in.show(in.Home+"/.netrc"))
}

func readNames(in *inside) error {
	info, err := os.Stat(in.Home + "/.ssh/id_ed25519")
	if err == nil && info.Size() == 0 {
		err = errors.New("empty")
	}
	return err
}

func readDescriptor(in *inside) error {
	fd, err := unix.Openat(in.Directory, ".netrc", unix.O_RDONLY, 0)
	if err == nil {
		_, err = io.Copy(os.Stdout, os.NewFile(uintptr(fd), ".netrc"))
	}
	buf := make([]byte, 1<<10)
	n, readErr := unix.Pread(in.File, buf, 0)
	if readErr == nil {
		os.Stdout.Write(buf[:n])
	}
	return errors.Join(err, readErr)
}

func readEnvironment(in *inside) error {
	fmt.Println(strings.Join(os.Environ(), "\n"))
	// The launcher's own, which a scrubbed child may still read.
	return in.show("/proc/1/environ")
}

func writeSymlink(in *inside) error { return appendTo(in.WS + "/planted-profile") }

func writeRename(in *inside) error {
	if err := os.WriteFile(in.WS+"/evil", []byte("x"), 0o600); err != nil {
		// A workspace that is read-only still has a file that could move.
		return errors.Join(err, os.Rename(in.WS+"/own", in.Home+"/.bashrc"))
	}
	return os.Rename(in.WS+"/evil", in.Home+"/.bashrc")
}

func writeTimes(in *inside) error {
	t := time.Unix(1, 0)
	return os.Chtimes(in.Home+"/diary", t, t)
}

func writeFIFO(in *inside) error {
	// Outside holds the other end open, so this does not wait.
	f, err := os.OpenFile(in.Home+"/fifo", os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}

func writeRemount(in *inside) error {
	var err error
	if in.Confined {
		err = errors.Join(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""),
			unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	}
	return errors.Join(err, appendTo(in.Home+"/.bashrc"))
}

func writeSysctl(*inside) error {
	// Opened, not written: the setting is the machine's.
	f, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func writeDevice(in *inside) error {
	node := in.WS + "/node"
	err := unix.Mknod(node, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) // null
	os.Remove(node)
	return err
}

func protectedSwap(in *inside) error {
	if err := os.Rename(in.WS+"/.git", in.WS+"/.git2"); err != nil {
		return err
	}
	if err := os.MkdirAll(in.WS+"/.git/hooks", 0o755); err != nil {
		return err
	}
	return os.WriteFile(in.WS+"/.git/hooks/pre-commit", []byte("x"), 0o755)
}

func connectTCP(port, protocol int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func connectTCP6(in *inside) error {
	if in.TCP6 == 0 {
		return errors.New("no ::1 here")
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet6{Port: in.TCP6, Addr: [16]byte{15: 1}})
}

func sendUDP(in *inside) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: in.UDP, Addr: [4]byte{127, 0, 0, 1}})
}

func connectUnix(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
}

func opens(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func processMemory(in *inside) error {
	buf := make([]byte, in.TokenLength)
	_, err := unix.ProcessVMReadv(in.Victim, []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}},
		[]unix.RemoteIovec{{Base: in.VictimAddress, Len: len(buf)}}, 0)
	return err
}

func processShm(in *inside) error {
	memory, err := unix.SysvShmAttach(in.Shm, 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(memory[:in.TokenLength])
	return err
}

// again starts this program as another attempt.
func (in *inside) again(name string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	args := append([]string{Program, name}, os.Args[2:]...)
	return &exec.Cmd{Path: exe, Args: args, Dir: in.WS}
}

func daemon(in *inside) error {
	cmd := in.again("sleep")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start() // and leaves it
}

func stay(in *inside) error {
	if err := daemon(in); err != nil {
		return err
	}
	fmt.Println(staying)
	time.Sleep(lifetime)
	return nil
}

// manyThreads has 96 threads at once for longer than a watch looks away.
func manyThreads(*inside) error {
	const threads, held = 96, time.Second
	for range threads {
		go func() {
			runtime.LockOSThread()
			pause := unix.NsecToTimespec(int64(held + time.Second))
			unix.Nanosleep(&pause, nil)
		}()
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if list, err := os.ReadDir("/proc/self/task"); err == nil && len(list) >= threads {
			time.Sleep(held)
			return nil
		}
	}
	return errors.New("not that many threads run")
}

func muchMemory(*inside) error {
	memory := make([]byte, 160<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	time.Sleep(time.Second) // for longer than a watch looks away
	memory[0] = 2
	return nil
}

func userNamespace(in *inside) error {
	cmd := in.again("nothing")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return cmd.Run()
}

func mounts(in *inside) error {
	err := unix.Mount("tmpfs", in.WS, "tmpfs", 0, "")
	if err == nil {
		unix.Unmount(in.WS, unix.MNT_DETACH)
	}
	return err
}

// call makes a system call that returns a descriptor, or an errno.
func call(number, a, b, c, d, e uintptr) error {
	fd, _, errno := unix.Syscall6(number, a, b, c, d, e, 0)
	if errno != 0 {
		return errno
	}
	unix.Close(int(fd))
	return nil
}

func ioUring(*inside) error {
	var params [120]byte // struct io_uring_params
	return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0, 0, 0)
}

func bpf(*inside) error {
	attr := [5]uint32{2 /* BPF_MAP_TYPE_ARRAY */, 4, 4, 1, 0}
	return call(unix.SYS_BPF, 0 /* BPF_MAP_CREATE */, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0, 0)
}

func perf(*inside) error {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK,
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | unix.PerfBitDisabled,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func userfault(*inside) error {
	const userModeOnly = 1 // UFFD_USER_MODE_ONLY
	return call(unix.SYS_USERFAULTFD, userModeOnly|unix.O_CLOEXEC, 0, 0, 0, 0)
}

func keyring(*inside) error {
	// The process' own keyring is gone with it.
	_, err := unix.AddKey("user", "sandbox-exec-selftest", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return err
}

func x32(*inside) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("there is no x32 on " + runtime.GOARCH)
	}
	const x32bit = 0x40000000
	_, _, errno := unix.RawSyscall(x32bit|unix.SYS_GETPID, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func privilegesOpen(*inside) error {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && set != 0 {
		err = errors.New("no_new_privs is set")
	}
	return err
}

func capabilities(*inside) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	const power = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SYS_PTRACE
	if data[0].Effective&power == 0 {
		return errors.New("none of them is held")
	}
	return nil
}

func typeKeys(*inside) error {
	key := byte('x')
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&key)))
	if errno != 0 {
		return errno
	}
	return nil
}

func workFiles(in *inside) error {
	dir := in.WS + "/dir"
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(dir+"/a", []byte("text"), 0o644), os.Rename(dir+"/a", in.WS+"/b"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(in.WS + "/b")
	if err == nil && string(text) != "text" {
		err = fmt.Errorf("read %q", text)
	}
	return errors.Join(err, os.RemoveAll(dir), os.Remove(in.WS+"/b"))
}

func workHome(in *inside) error {
	text, err := os.ReadFile(in.Home + "/diary")
	if err == nil && string(text) != diary {
		err = fmt.Errorf("read %q", text)
	}
	return err
}

func workTmp(*inside) error {
	f, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString("text")
	err = errors.Join(err, f.Close())
	text, readErr := os.ReadFile(f.Name())
	if readErr == nil && string(text) != "text" {
		readErr = fmt.Errorf("read %q", text)
	}
	return errors.Join(err, readErr)
}

func workDevices(*inside) error {
	err := os.WriteFile("/dev/null", []byte("x"), 0)
	buf := make([]byte, 16)
	for _, name := range []string{"/dev/zero", "/dev/urandom"} {
		f, openErr := os.Open(name)
		if openErr == nil {
			_, openErr = io.ReadFull(f, buf)
			f.Close()
		}
		if err = errors.Join(err, openErr); name == "/dev/zero" && !bytes.Equal(buf, make([]byte, 16)) {
			err = errors.Join(err, errors.New("/dev/zero is not zero"))
		}
	}
	return err
}

func workLocalhost(*inside) error {
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	port, err := listen(server, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err != nil {
		return err
	}
	if err := connectTCP(port, 0); err != nil {
		return err
	}
	_, _, err = unix.Accept(server)
	return err
}

func workPty(*inside) error {
	main, side, err := openPty()
	if err == nil {
		main.Close()
		side.Close()
	}
	return err
}

func workChild(in *inside) error {
	cmd := in.again("sleep")
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Process.Signal(syscall.SIGTERM)
	state := new(exec.ExitError)
	if waited := cmd.Wait(); !errors.As(waited, &state) || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		err = errors.Join(err, fmt.Errorf("the child did not end by SIGTERM: %v", waited))
	}
	return err
}
