//go:build linux

// Package filters holds the rules that the seccomp filters of sandbox/linux
// are compiled from, and the compiled filters. The product embeds the latter
// and never imports this package; go generate and the tests do.
//
// To refuse another system call, add a row to Rules and run
//
//	go generate ./sandbox/linux
package filters

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Newest is the highest system call number that was reviewed for these rules:
// mseal, of Linux 6.10. Every later one is answered with ENOSYS, as by a kernel
// that does not have it yet, so that programs fall back to what they did
// before. From 424 on, all architectures share their numbers
// (include/uapi/asm-generic/unistd.h in the kernel).
const Newest = 462

// Variant is a filter for one way of confining. Its name is that of the files.
type Variant string

const (
	// Namespaces is for a tree with a pid, ipc and mount namespace of its own.
	Namespaces Variant = "namespaces"
	// NamespacesNoUnix is the same in the host's network namespace, where nothing
	// keeps the tree from abstract sockets: below Landlock ABI 6.
	NamespacesNoUnix Variant = "namespaces-nounix"
	// Landlock is for a tree in the host's namespaces: what they would keep
	// apart has to be refused.
	Landlock Variant = "landlock"
	// LandlockOffline is Landlock without any network: the host's network
	// namespace is the command's too, so it gets no socket.
	LandlockOffline Variant = "landlock-offline"

	// LandlockUnix and LandlockUnixOffline are the same where Landlock itself
	// keeps the tree from sockets of others that have a path (ABI 9).
	LandlockUnix        Variant = "landlock-unix"
	LandlockUnixOffline Variant = "landlock-unix-offline"

	// The same for a tree of root's, whose files are those of the host's root.
	NamespacesRoot          Variant = "namespaces-root"
	NamespacesNoUnixRoot    Variant = "namespaces-nounix-root"
	LandlockRoot            Variant = "landlock-root"
	LandlockOfflineRoot     Variant = "landlock-offline-root"
	LandlockUnixRoot        Variant = "landlock-unix-root"
	LandlockUnixOfflineRoot Variant = "landlock-unix-offline-root"
)

// Variants are all filters that are compiled for an architecture.
var Variants = []Variant{
	Namespaces, NamespacesNoUnix, Landlock, LandlockOffline, LandlockUnix, LandlockUnixOffline,
	NamespacesRoot, NamespacesNoUnixRoot, LandlockRoot, LandlockOfflineRoot, LandlockUnixRoot, LandlockUnixOfflineRoot,
}

var (
	inNamespaces       = []Variant{Namespaces, NamespacesRoot}
	inNamespacesNoUnix = []Variant{NamespacesNoUnix, NamespacesNoUnixRoot}
	inLandlockOnline   = []Variant{Landlock, LandlockRoot}
	inLandlockOffline  = []Variant{LandlockOffline, LandlockOfflineRoot}
	inUnixOnline       = []Variant{LandlockUnix, LandlockUnixRoot}
	inUnixOffline      = []Variant{LandlockUnixOffline, LandlockUnixOfflineRoot}
	withUnix           = slices.Concat(inNamespaces, inUnixOnline, inUnixOffline)
	withoutUnix        = slices.Concat(inNamespacesNoUnix, inLandlockOnline, inLandlockOffline)
	inLandlock         = slices.Concat(inLandlockOnline, inLandlockOffline, inUnixOnline, inUnixOffline)
	online             = slices.Concat(inNamespaces, inNamespacesNoUnix, inLandlockOnline, inUnixOnline)
	asRoot             = []Variant{NamespacesRoot, NamespacesNoUnixRoot, LandlockRoot, LandlockOfflineRoot, LandlockUnixRoot, LandlockUnixOfflineRoot}
)

// Arg is a condition on an argument: its bits under Mask are Value. Masks are
// 32 bits wide, because the kernel ignores the upper half of every argument
// that a rule here looks at.
type Arg struct {
	Index       uint
	Mask, Value uint32
}

// Rule refuses a system call.
type Rule struct {
	Name  string
	Group string        // what it is about
	Why   string        // why it is refused
	Errno syscall.Errno // 0 is EPERM
	In    []Variant     // nil is all

	// At most one of them. Neither: every call is refused.
	When   []Arg   // refused if all of them hold
	Unless [][]Arg // refused unless all of one row hold
}

// For are the rules of one variant.
func For(v Variant) []Rule {
	var rules []Rule
	for _, r := range Rules {
		if r.In != nil && !slices.Contains(r.In, v) {
			continue
		}
		if r.Errno == 0 {
			r.Errno = unix.EPERM
		}
		rules = append(rules, r)
	}
	return rules
}

func is(index uint, value uint32) Arg   { return Arg{index, ^uint32(0), value} }
func has(index uint, flag uint32) Arg   { return Arg{index, flag, flag} }
func kind(index uint, value uint32) Arg { return Arg{index, 0xf, value} } // SOCK_TYPE_MASK
func none(index uint, bits uint32) Arg  { return Arg{index, bits, 0} }

const (
	setID = unix.S_ISUID | unix.S_ISGID
	// Without one of these bits open(2) does not look at its mode, and the
	// register may hold anything. O_TMPFILE has O_DIRECTORY in it, which others
	// use too.
	creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// personality(2): values of <linux/personality.h>.
const (
	perLinux32       = 0x0008
	addrNoRandomize  = 0x0040000
	personalityQuery = 0xffffffff
)

// Rules are all that is refused. What is not named here is allowed.
var Rules = []Rule{
	// Code and data in the kernel.
	{Name: "bpf", Group: "kernel", Why: "loads programs into the kernel"},
	{Name: "init_module", Group: "kernel", Why: "loads code into the kernel"},
	{Name: "finit_module", Group: "kernel", Why: "loads code into the kernel"},
	{Name: "delete_module", Group: "kernel", Why: "removes code from the kernel"},
	{Name: "kexec_load", Group: "kernel", Why: "replaces the kernel"},
	{Name: "kexec_file_load", Group: "kernel", Why: "replaces the kernel"},
	{Name: "perf_event_open", Group: "kernel", Why: "observes the kernel and other processes; a long record of holes"},
	{Name: "userfaultfd", Group: "kernel", Why: "stops the kernel in the middle of a copy: makes races in it exploitable"},
	{Name: "memfd_secret", Group: "kernel", Why: "memory that neither the kernel nor an administrator can look into"},
	{Name: "lookup_dcookie", Group: "kernel", Why: "names of files opened by anybody, for profilers"},
	{Name: "io_uring_setup", Group: "kernel", Why: "does what other system calls do, past every rule here; a long record of holes"},
	{Name: "io_uring_enter", Group: "kernel", Why: "as io_uring_setup, for a ring that came from outside"},
	{Name: "io_uring_register", Group: "kernel", Why: "as io_uring_setup, for a ring that came from outside"},
	{Name: "fanotify_init", Group: "kernel", Why: "watches whole file systems; inotify is there for the own files"},
	{Name: "modify_ldt", Group: "kernel", Why: "16-bit segments; a long record of holes"},
	{Name: "uselib", Group: "kernel", Why: "maps libraries of the a.out time"},

	// Keyrings know no namespaces.
	{Name: "add_key", Group: "keyring", Why: "the user's and session's keyrings are shared with all processes of the user"},
	{Name: "request_key", Group: "keyring", Why: "reads keys of the user, and starts a program of the host"},
	{Name: "keyctl", Group: "keyring", Why: "reads and changes keys of the user"},

	// Mounts decide what every path means.
	{Name: "mount", Group: "mount", Why: "changes what paths mean"},
	{Name: "umount2", Group: "mount", Why: "uncovers what a mount hides"},
	{Name: "pivot_root", Group: "mount", Why: "changes what paths mean"},
	{Name: "chroot", Group: "mount", Why: "changes what paths mean"},
	{Name: "open_tree", Group: "mount", Why: "copies mounts without what covers them"},
	{Name: "move_mount", Group: "mount", Why: "changes what paths mean"},
	{Name: "mount_setattr", Group: "mount", Why: "makes read-only mounts writable"},
	{Name: "fsopen", Group: "mount", Why: "mounts by the newer interface"},
	{Name: "fsconfig", Group: "mount", Why: "mounts by the newer interface"},
	{Name: "fsmount", Group: "mount", Why: "mounts by the newer interface"},
	{Name: "fspick", Group: "mount", Why: "changes mounted file systems"},
	{Name: "open_by_handle_at", Group: "mount", Why: "opens files by number, past every directory above them"},

	// A user namespace gives every capability inside of it, and with them the
	// parts of the kernel that only root could reach.
	{Name: "unshare", Group: "namespace", Why: "new namespaces"},
	{Name: "setns", Group: "namespace", Why: "enters namespaces of others"},
	{Name: "clone", Group: "namespace", Why: "new mount namespace", When: []Arg{has(0, unix.CLONE_NEWNS)}},
	{Name: "clone", Group: "namespace", Why: "new cgroup namespace", When: []Arg{has(0, unix.CLONE_NEWCGROUP)}},
	{Name: "clone", Group: "namespace", Why: "new UTS namespace", When: []Arg{has(0, unix.CLONE_NEWUTS)}},
	{Name: "clone", Group: "namespace", Why: "new IPC namespace", When: []Arg{has(0, unix.CLONE_NEWIPC)}},
	{Name: "clone", Group: "namespace", Why: "new user namespace", When: []Arg{has(0, unix.CLONE_NEWUSER)}},
	{Name: "clone", Group: "namespace", Why: "new pid namespace", When: []Arg{has(0, unix.CLONE_NEWPID)}},
	{Name: "clone", Group: "namespace", Why: "new network namespace", When: []Arg{has(0, unix.CLONE_NEWNET)}},
	// A filter cannot look at flags behind a pointer. ENOSYS makes libraries
	// use clone; they take EPERM for final.
	{Name: "clone3", Group: "namespace", Why: "its flags are behind a pointer", Errno: unix.ENOSYS},

	// What only an administrator may do; refused here too, in case a
	// capability was left.
	{Name: "acct", Group: "administration", Why: "process accounting"},
	{Name: "adjtimex", Group: "administration", Why: "sets the clock"},
	{Name: "clock_adjtime", Group: "administration", Why: "sets the clock"},
	{Name: "clock_settime", Group: "administration", Why: "sets the clock"},
	{Name: "settimeofday", Group: "administration", Why: "sets the clock"},
	{Name: "ioperm", Group: "administration", Why: "direct access to devices"},
	{Name: "iopl", Group: "administration", Why: "direct access to devices"},
	{Name: "quotactl", Group: "administration", Why: "disk quotas"},
	{Name: "quotactl_fd", Group: "administration", Why: "disk quotas"},
	{Name: "reboot", Group: "administration", Why: "stops the machine"},
	{Name: "setdomainname", Group: "administration", Why: "renames the machine"},
	{Name: "sethostname", Group: "administration", Why: "renames the machine"},
	{Name: "swapoff", Group: "administration", Why: "swap space"},
	{Name: "swapon", Group: "administration", Why: "swap space"},
	{Name: "syslog", Group: "administration", Why: "the kernel's log: addresses, and what others do"},
	{Name: "vhangup", Group: "administration", Why: "hangs up the terminal"},

	// Root's files are those of the host's root. One that has these bits and is
	// left behind gives root's rights to whoever runs it outside. open(2) makes
	// unnamed files too, which linkat(2) then names.
	{Name: "chmod", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(1, setID)}}},
	{Name: "fchmod", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(1, setID)}}},
	{Name: "fchmodat", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(2, setID)}}},
	{Name: "fchmodat2", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(2, setID)}}},
	{Name: "open", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(1, creates)}, {none(2, setID)}}},
	{Name: "openat", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(2, creates)}, {none(3, setID)}}},
	{Name: "openat2", Group: "set-user-ID", Why: "its mode is behind a pointer", Errno: unix.ENOSYS, In: asRoot},
	{Name: "creat", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(1, setID)}}},
	{Name: "mknod", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(1, setID)}}},
	{Name: "mknodat", Group: "set-user-ID", Why: "makes programs that run as root", In: asRoot, Unless: [][]Arg{{none(2, setID)}}},
	{Name: "mkdir", Group: "set-user-ID", Why: "makes directories that hand their group on", In: asRoot, Unless: [][]Arg{{none(1, setID)}}},
	{Name: "mkdirat", Group: "set-user-ID", Why: "makes directories that hand their group on", In: asRoot, Unless: [][]Arg{{none(2, setID)}}},

	// The terminal belongs to the caller.
	{Name: "ioctl", Group: "terminal", Why: "TIOCSTI types into the caller's shell", When: []Arg{is(1, unix.TIOCSTI)}},
	{Name: "ioctl", Group: "terminal", Why: "TIOCLINUX pastes into the caller's shell", When: []Arg{is(1, unix.TIOCLINUX)}},
	{Name: "ioctl", Group: "terminal", Why: "TIOCSETD loads line disciplines; a long record of holes", When: []Arg{is(1, unix.TIOCSETD)}},

	// Debuggers switch the randomisation of addresses off, builds ask for a
	// 32-bit uname. The rest undoes protections that exploits have to get past.
	{Name: "personality", Group: "memory", Why: "executable data, a page at address 0", Unless: [][]Arg{
		{is(0, 0)},
		{is(0, perLinux32)},
		{is(0, addrNoRandomize)},
		{is(0, perLinux32|addrNoRandomize)},
		{is(0, personalityQuery)},
	}},

	// Socket families. Each other one is code of its own in the kernel; some
	// leave the network namespace (AF_VSOCK), some reach the host's services
	// (NETLINK_AUDIT, NETLINK_KOBJECT_UEVENT). The errno is that of a kernel
	// without them, which programs know how to go on from. getifaddrs(3) needs
	// NETLINK_ROUTE. Types above 3 are those of DCCP and SCTP, and SOCK_PACKET.
	{
		Name: "socket", Group: "socket", Why: "families that the command does not need", Errno: unix.EAFNOSUPPORT,
		In: slices.Concat(inNamespaces, inUnixOnline), Unless: [][]Arg{
			{is(0, unix.AF_UNIX)},
			{is(0, unix.AF_INET), {1, 0xc, 0}},
			{is(0, unix.AF_INET6), {1, 0xc, 0}},
			{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)},
		},
	},
	// Landlock before its ABI 9 does not keep a process from sockets that have
	// a path: the session bus and the container engine's start programs
	// outside for whoever connects.
	{
		Name: "socket", Group: "socket", Why: "AF_UNIX reaches services that run programs outside; other families are not needed",
		In: slices.Concat(inNamespacesNoUnix, inLandlockOnline), Unless: [][]Arg{
			{is(0, unix.AF_INET), {1, 0xc, 0}},
			{is(0, unix.AF_INET6), {1, 0xc, 0}},
			{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)},
		},
	},
	{Name: "socket", Group: "socket", Why: "no network namespace cuts the network off", In: inLandlockOffline},
	{Name: "socket", Group: "socket", Why: "no network namespace cuts the network off", In: inUnixOffline, Unless: [][]Arg{{is(0, unix.AF_UNIX)}}},
	{Name: "socket", Group: "socket", Why: "SCTP", Errno: unix.EPROTONOSUPPORT, In: online, When: []Arg{is(2, unix.IPPROTO_SCTP)}},
	{Name: "socket", Group: "socket", Why: "SMC", Errno: unix.EPROTONOSUPPORT, In: online, When: []Arg{is(2, unix.IPPROTO_SMC)}},
	{Name: "socket", Group: "socket", Why: "L2TP", Errno: unix.EPROTONOSUPPORT, In: online, When: []Arg{is(2, unix.IPPROTO_L2TP)}},
	{Name: "socket", Group: "socket", Why: "UDP-Lite", Errno: unix.EPROTONOSUPPORT, In: online, When: []Arg{is(2, unix.IPPROTO_UDPLITE)}},
	{
		Name: "socketpair", Group: "socket", Why: "families that the command does not need", Errno: unix.EAFNOSUPPORT,
		In: withUnix, Unless: [][]Arg{{is(0, unix.AF_UNIX)}},
	},
	// One end of a datagram pair can still send to, and connect to, any path.
	{
		Name: "socketpair", Group: "socket", Why: "a datagram pair reaches services as AF_UNIX sockets do",
		In: withoutUnix, Unless: [][]Arg{
			{is(0, unix.AF_UNIX), kind(1, unix.SOCK_STREAM)},
			{is(0, unix.AF_UNIX), kind(1, unix.SOCK_SEQPACKET)},
		},
	},

	// Also in a pid namespace: its first process, which watches the others, is in
	// it. Nobody's own number is known here, so that only 0 stands for oneself.
	{Name: "prlimit64", Group: "processes", Why: "takes limits of other processes away, which blinds or ends them", Unless: [][]Arg{{is(0, 0)}}},

	// Without a pid namespace the user's other processes are in reach.
	// Landlock refuses to trace them; this holds if it should not.
	{Name: "ptrace", Group: "processes", Why: "takes over processes of the user", In: inLandlock},
	{Name: "process_vm_readv", Group: "processes", Why: "reads memory of processes of the user", In: inLandlock},
	{Name: "process_vm_writev", Group: "processes", Why: "writes memory of processes of the user", In: inLandlock},
	{Name: "pidfd_getfd", Group: "processes", Why: "takes descriptors of processes of the user", In: inLandlock},
	{Name: "kcmp", Group: "processes", Why: "compares kernel objects of processes of the user", In: inLandlock},
	// The sched_setaffinity of other processes stays: threads pin each other by it.
	{Name: "setpriority", Group: "processes", Why: "slows processes of the user", In: inLandlock, Unless: [][]Arg{{is(0, unix.PRIO_PROCESS), is(1, 0)}}},
	{Name: "ioprio_set", Group: "processes", Why: "slows processes of the user", In: inLandlock, Unless: [][]Arg{{is(0, 1), is(1, 0)}}}, // IOPRIO_WHO_PROCESS
	{Name: "sched_setattr", Group: "processes", Why: "slows processes of the user", In: inLandlock, Unless: [][]Arg{{is(0, 0)}}},
	{Name: "sched_setparam", Group: "processes", Why: "slows processes of the user", In: inLandlock, Unless: [][]Arg{{is(0, 0)}}},
	{Name: "sched_setscheduler", Group: "processes", Why: "slows processes of the user", In: inLandlock, Unless: [][]Arg{{is(0, 0)}}},

	// Without an ipc namespace these objects are shared with all processes of
	// the user, and Landlock does not know them.
	{Name: "shmget", Group: "ipc", Why: "System V shared memory of the user", In: inLandlock},
	{Name: "shmat", Group: "ipc", Why: "System V shared memory of the user", In: inLandlock},
	{Name: "shmctl", Group: "ipc", Why: "System V shared memory of the user", In: inLandlock},
	{Name: "semget", Group: "ipc", Why: "System V semaphores of the user", In: inLandlock},
	{Name: "semop", Group: "ipc", Why: "System V semaphores of the user", In: inLandlock},
	{Name: "semtimedop", Group: "ipc", Why: "System V semaphores of the user", In: inLandlock},
	{Name: "semctl", Group: "ipc", Why: "System V semaphores of the user", In: inLandlock},
	{Name: "msgget", Group: "ipc", Why: "System V messages of the user", In: inLandlock},
	{Name: "msgsnd", Group: "ipc", Why: "System V messages of the user", In: inLandlock},
	{Name: "msgrcv", Group: "ipc", Why: "System V messages of the user", In: inLandlock},
	{Name: "msgctl", Group: "ipc", Why: "System V messages of the user", In: inLandlock},
	{Name: "mq_open", Group: "ipc", Why: "POSIX message queues of the user", In: inLandlock},
	{Name: "mq_unlink", Group: "ipc", Why: "POSIX message queues of the user", In: inLandlock},
}
