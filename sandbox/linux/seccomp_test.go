//go:build linux

package linux

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/sandbox-exec/sandbox-exec/sandbox/linux/filters"
	"golang.org/x/sys/unix"
)

// numbers reads the names and numbers of an architecture's system calls from
// the source of x/sys, which has them from the kernel's headers: a second
// opinion on libseccomp's tables.
func numbers(t testing.TB, arch string) map[uint32]string {
	t.Helper()
	if _, err := os.Stat("filters/rules.go"); err != nil {
		t.Skip("needs the source:", err)
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal("go list:", err)
	}
	src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[uint32]string)
	for _, m := range regexp.MustCompile(`(?m)^\s*SYS_(\w+)\s*=\s*(\d+)`).FindAllStringSubmatch(string(src), -1) {
		nr, _ := strconv.ParseUint(m[2], 10, 32)
		names[uint32(nr)] = strings.ToLower(m[1])
	}
	if len(names) < 250 {
		t.Fatalf("found only %d system calls for %s", len(names), arch)
	}
	return names
}

// wantVerdict is what the rules say about a call, in plain Go.
func wantVerdict(arch filters.Arch, rules []filters.Rule, name string, c filters.Call) uint32 {
	switch {
	case c.Arch != arch.Audit:
		return filters.Kill
	case c.NR == math.MaxUint32:
		return filters.Allow // the kernel skips it
	case arch.X32 && c.NR >= filters.X32Bit:
		return filters.Kill
	case c.NR >= filters.X32Bit:
		return filters.Allow // the kernel has none
	case c.NR > filters.Newest:
		return filters.Refuse(uint32(unix.ENOSYS))
	}
	all := func(args []filters.Arg) bool {
		for _, a := range args {
			if uint32(c.Args[a.Index])&a.Mask != a.Value {
				return false
			}
		}
		return true
	}
	for _, r := range rules {
		if r.Name != name {
			continue
		}
		refused := all(r.When)
		if r.Unless != nil {
			refused = true
			for _, row := range r.Unless {
				refused = refused && !all(row)
			}
		}
		if refused {
			return filters.Refuse(uint32(r.Errno))
		}
	}
	return filters.Allow
}

// samples are arguments at, next to and above every value that a rule for name
// looks at.
func samples(rules []filters.Rule, name string) [][6]uint64 {
	var values [6][]uint64
	for _, r := range rules {
		if r.Name != name {
			continue
		}
		for _, row := range append([][]filters.Arg{r.When}, r.Unless...) {
			for _, a := range row {
				v := uint64(a.Value)
				values[a.Index] = append(values[a.Index], v, v|1<<32, v|0xdeadbeef<<32, v+1, v-1, v|1<<10, v|1<<31, v<<32)
			}
		}
	}
	calls := [][6]uint64{{}}
	for i := range values {
		values[i] = append(values[i], 0, 2, math.MaxUint32, math.MaxUint64)
		if len(values[i]) == 4 { // no rule looks at it
			values[i] = []uint64{0}
			if i == 5 {
				values[i] = append(values[i], math.MaxUint64)
			}
		}
		var next [][6]uint64
		seen := make(map[uint64]bool)
		for _, v := range values[i] {
			if seen[v] {
				continue
			}
			seen[v] = true
			for _, c := range calls {
				c[i] = v
				next = append(next, c)
			}
		}
		calls = next
	}
	return calls
}

func TestFilterVerdicts(t *testing.T) {
	for _, arch := range filters.Archs {
		names := numbers(t, arch.Name)
		for _, v := range filters.Variants {
			t.Run(string(v)+"-"+arch.Name, func(t *testing.T) {
				filter, err := filterFiles.ReadFile("filters/" + string(v) + "-" + arch.Name + ".bpf")
				if err != nil {
					t.Fatal(err)
				}
				rules := filters.For(v)
				nrs := []uint32{math.MaxUint32, math.MaxUint32 - 1, 1 << 31, filters.X32Bit, filters.X32Bit - 1}
				for nr := range uint32(1101) {
					nrs = append(nrs, nr, nr|filters.X32Bit, nr|1<<31)
				}
				archs := []uint32{arch.Audit, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0}
				for _, other := range filters.Archs {
					if other.Audit != arch.Audit {
						archs = append(archs, other.Audit)
					}
				}
				var calls, bad int
				for _, nr := range nrs {
					for _, args := range samples(rules, names[nr]) {
						for _, audit := range archs {
							c := filters.Call{NR: nr, Arch: audit, Args: args}
							got, err := filters.Eval(filter, c)
							if err != nil {
								t.Fatal(err)
							}
							calls++
							if want := wantVerdict(arch, rules, names[nr], c); got != want {
								if bad++; bad <= 10 {
									t.Errorf("%s %+v: got %#x, want %#x", names[nr], c, got, want)
								}
							}
						}
					}
				}
				if bad > 10 {
					t.Errorf("… %d of %d calls", bad, calls)
				}
			})
		}
	}
}

func FuzzFilterVerdict(f *testing.F) {
	f.Add(uint32(unix.SYS_SOCKET), uint64(unix.AF_NETLINK), uint64(unix.SOCK_RAW), uint64(unix.NETLINK_ROUTE), uint64(0))
	f.Add(uint32(unix.SYS_SOCKET), uint64(unix.AF_INET), uint64(unix.SOCK_STREAM), uint64(unix.IPPROTO_SCTP), uint64(0))
	f.Add(uint32(unix.SYS_SOCKETPAIR), uint64(unix.AF_UNIX), uint64(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), uint64(0), uint64(0))
	f.Add(uint32(unix.SYS_IOCTL), uint64(0), uint64(1<<32|unix.TIOCSTI), uint64(0), uint64(0))
	f.Add(uint32(unix.SYS_CLONE), uint64(unix.CLONE_NEWUSER|unix.CLONE_VM), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(unix.SYS_PERSONALITY), uint64(0x40000), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(filters.Newest+1), uint64(0), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(filters.X32Bit), uint64(0), uint64(0), uint64(0), uint64(0))
	f.Add(uint32(unix.SYS_OPENAT), uint64(0), uint64(0), uint64(unix.O_CREAT|unix.O_WRONLY), uint64(0o4755))
	f.Add(uint32(unix.SYS_OPENAT), uint64(0), uint64(0), uint64(unix.O_TMPFILE|unix.O_WRONLY), uint64(1<<32|0o2755))
	f.Add(uint32(unix.SYS_FCHMOD), uint64(0), uint64(1<<31|0o6755), uint64(0), uint64(0))
	f.Add(uint32(unix.SYS_MKNODAT), uint64(0), uint64(0), uint64(unix.S_IFREG|0o4755), uint64(0))
	f.Add(uint32(unix.SYS_PRLIMIT64), uint64(1), uint64(unix.RLIMIT_NOFILE), uint64(0), uint64(0))
	type filter struct {
		arch  filters.Arch
		names map[uint32]string
		rules []filters.Rule
		bpf   []byte
	}
	var all []filter
	for _, arch := range filters.Archs {
		names := numbers(f, arch.Name)
		for _, v := range filters.Variants {
			bpf, err := filterFiles.ReadFile("filters/" + string(v) + "-" + arch.Name + ".bpf")
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, filter{arch, names, filters.For(v), bpf})
		}
	}
	f.Fuzz(func(t *testing.T, nr uint32, a, b, c, d uint64) {
		for _, f := range all {
			call := filters.Call{NR: nr, Arch: f.arch.Audit, Args: [6]uint64{a, b, c, d}}
			got, err := filters.Eval(f.bpf, call)
			if err != nil {
				t.Fatal(err)
			}
			if want := wantVerdict(f.arch, f.rules, f.names[nr], call); got != want {
				t.Errorf("%s: %s %+v: got %#x, want %#x", f.arch.Name, f.names[nr], call, got, want)
			}
		}
	})
}

// TestRules finds rows that would be without effect.
func TestRules(t *testing.T) {
	known := make(map[string]bool)
	for _, arch := range filters.Archs {
		for _, name := range numbers(t, arch.Name) {
			known[name] = true
		}
	}
	for _, r := range filters.Rules {
		if !known[r.Name] {
			t.Errorf("%s: no such system call", r.Name)
		}
		if r.Why == "" || r.Group == "" {
			t.Errorf("%s: a rule needs a group and a reason", r.Name)
		}
		if r.When != nil && r.Unless != nil {
			t.Errorf("%s: has When and Unless", r.Name)
		}
		for _, row := range append([][]filters.Arg{r.When}, r.Unless...) {
			for _, a := range row {
				if a.Value&^a.Mask != 0 || a.Index > 5 {
					t.Errorf("%s: %+v never holds", r.Name, a)
				}
			}
		}
	}
}

func isRoot(v filters.Variant) bool     { return strings.HasSuffix(string(v), "-root") }
func isLandlock(v filters.Variant) bool { return strings.HasPrefix(string(v), "landlock") }
func isUnix(v filters.Variant) bool {
	return strings.Contains(string(v), "-unix") || !isLandlock(v) && !strings.Contains(string(v), "-nounix")
}
func isOffline(v filters.Variant) bool { return strings.Contains(string(v), "-offline") }

// TestRequiredRefusals keeps rows from being lost: what each variant has to
// refuse, and what work needs, independent of the rules.
func TestRequiredRefusals(t *testing.T) {
	refusedEverywhere := strings.Fields(`acct add_key bpf chroot clone3 delete_module fanotify_init finit_module
		fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup
		kexec_file_load kexec_load keyctl memfd_secret mount mount_setattr move_mount open_by_handle_at open_tree
		perf_event_open pivot_root quotactl quotactl_fd reboot request_key setdomainname sethostname setns
		settimeofday clock_settime swapoff swapon syslog umount2 unshare userfaultfd vhangup`)
	refusedInLandlock := strings.Fields(`ptrace process_vm_readv process_vm_writev pidfd_getfd shmat semop msgrcv mq_open`)
	allowedEverywhere := strings.Fields(`execve execveat clone vfork fork wait4 openat ioctl mmap mprotect pkey_alloc
		io_setup io_submit io_getevents mbind set_mempolicy get_mempolicy move_pages memfd_create pidfd_open pidfd_send_signal
		rseq landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp prctl close_range faccessat2 statx
		copy_file_range splice tee vmsplice inotify_init1 timerfd_create eventfd2 signalfd4 getrandom membarrier
		name_to_handle_at sched_setaffinity futex futex_waitv fchmodat2 cachestat mseal link linkat symlinkat renameat2
		chown fchownat setuid setgroups kill tgkill bind connect listen accept4 sendmsg recvmsg getsockopt setsockopt`)
	for _, arch := range filters.Archs {
		nrs := make(map[string]uint32)
		for nr, name := range numbers(t, arch.Name) {
			nrs[name] = nr
		}
		for _, v := range filters.Variants {
			filter, err := filterFiles.ReadFile("filters/" + string(v) + "-" + arch.Name + ".bpf")
			if err != nil {
				t.Fatal(err)
			}
			check := func(names []string, allowed bool) {
				for _, name := range names {
					nr, ok := nrs[name]
					if !ok && arch.Name == "amd64" {
						t.Errorf("%s: no such system call", name)
					}
					if !ok {
						continue
					}
					got, err := filters.Eval(filter, filters.Call{NR: nr, Arch: arch.Audit})
					if err != nil {
						t.Fatal(err)
					}
					if (got == filters.Allow) != allowed {
						t.Errorf("%s-%s: %s: got %#x, want allowed: %v", v, arch.Name, name, got, allowed)
					}
				}
			}
			check(refusedEverywhere, false)
			check(allowedEverywhere, true)
			check(refusedInLandlock, !isLandlock(v))
			check([]string{"openat2"}, !isRoot(v))
		}
	}
}

func TestFiltersAreGenerated(t *testing.T) {
	version, err := exec.Command("pkg-config", "--modversion", "libseccomp").Output()
	if err != nil {
		t.Skip("needs libseccomp's headers:", err)
	}
	text, err := os.ReadFile("filters/namespaces-amd64.txt")
	if err != nil {
		t.Fatal(err)
	}
	if v := strings.TrimSpace(string(version)); !bytes.Contains(text, []byte("libseccomp "+v+".")) {
		t.Skipf("the filters were made by another libseccomp than %s, whose bytes may differ", v)
	}
	cmd := exec.Command("go", "run", "-tags", "libseccomp", "../../scripts/genseccomp", "-check")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The tests below run this binary again, as a child that loads a filter.

const childEnv = "SANDBOX_EXEC_SECCOMP_CHILD" // "VARIANT MODE [ARG]"

func child(v filters.Variant, mode, arg string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestSeccompChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(v)+" "+mode+" "+arg)
	return cmd
}

func TestSeccompChild(t *testing.T) {
	words := strings.SplitN(os.Getenv(childEnv), " ", 3)
	if len(words) != 3 {
		t.Skip("is run by other tests")
	}
	os.Unsetenv(childEnv)
	v := filters.Variant(words[0])
	filter, err := seccompFilter(isLandlock(v), isUnix(v), isOffline(v), isRoot(v))
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	prog := unix.SockFprog{Len: uint16(len(filter) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		t.Fatal("seccomp:", errno)
	}
	runtime.KeepAlive(filter)

	switch words[1] {
	case "modes":
		var nrs map[string]uintptr
		if err := json.Unmarshal([]byte(words[2]), &nrs); err != nil {
			t.Fatal(err)
		}
		json.NewEncoder(os.Stdout).Encode(tryModes(nrs))
		os.Exit(0)
	case "attempts":
		results := make(map[string]string)
		for _, a := range attempts {
			r, _, errno := unix.RawSyscall6(a.nr, a.args[0], a.args[1], a.args[2], a.args[3], a.args[4], a.args[5])
			if a.nr == unix.SYS_CLONE && errno == 0 && r == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // the child of a clone that should have failed
			}
			if errno == 0 && (a.nr == unix.SYS_SOCKET) {
				unix.Close(int(r))
			}
			results[a.name] = unix.ErrnoName(errno)
		}
		json.NewEncoder(os.Stdout).Encode(results)
		os.Exit(0)
	case "number":
		nr, _ := strconv.ParseUint(words[2], 0, 64)
		_, _, errno := unix.RawSyscall(uintptr(nr), 0, 0, 0)
		fmt.Println(errno)
		os.Exit(0)
	case "exec":
		err := unix.Exec("/bin/sh", []string{"sh", "-c", words[2]}, os.Environ())
		t.Fatal(err)
	}
}

var pair [2]int32

// attempts are system calls that do nothing by themselves. "ok" stands for
// every outcome but EPERM and ENOSYS.
var attempts = []struct {
	name                          string
	nr                            uintptr
	args                          [6]uintptr
	namespaces, landlock, offline string
}{
	{"getpid", unix.SYS_GETPID, [6]uintptr{}, "ok", "ok", "ok"},
	{"keyctl", unix.SYS_KEYCTL, [6]uintptr{unix.KEYCTL_GET_KEYRING_ID, negative(3)}, "EPERM", "EPERM", "EPERM"},
	{"add_key", unix.SYS_ADD_KEY, [6]uintptr{}, "EPERM", "EPERM", "EPERM"},
	{"request_key", unix.SYS_REQUEST_KEY, [6]uintptr{}, "EPERM", "EPERM", "EPERM"},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{}, "EPERM", "EPERM", "EPERM"},
	{"bpf", unix.SYS_BPF, [6]uintptr{0xffff}, "EPERM", "EPERM", "EPERM"},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{}, "EPERM", "EPERM", "EPERM"},
	{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{negative(1)}, "EPERM", "EPERM", "EPERM"},
	{"mount", unix.SYS_MOUNT, [6]uintptr{}, "EPERM", "EPERM", "EPERM"},
	{"fsopen", unix.SYS_FSOPEN, [6]uintptr{}, "EPERM", "EPERM", "EPERM"},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{negative(1)}, "EPERM", "EPERM", "EPERM"},
	{"unshare user", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}, "EPERM", "EPERM", "EPERM"},
	{"setns", unix.SYS_SETNS, [6]uintptr{negative(1)}, "EPERM", "EPERM", "EPERM"},
	{"clone user", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, "EPERM", "EPERM", "EPERM"},
	{"clone user, high bits", unix.SYS_CLONE, [6]uintptr{1<<40 | unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, "EPERM", "EPERM", "EPERM"},
	{"clone3", unix.SYS_CLONE3, [6]uintptr{}, "ENOSYS", "ENOSYS", "ENOSYS"},
	{"open_tree_attr, a newer call", 467, [6]uintptr{negative(1)}, "ENOSYS", "ENOSYS", "ENOSYS"},
	{"number 1000", 1000, [6]uintptr{}, "ENOSYS", "ENOSYS", "ENOSYS"},
	{"number -1", negative(1), [6]uintptr{}, "ENOSYS", "ENOSYS", "ENOSYS"},
	{"TIOCSTI", unix.SYS_IOCTL, [6]uintptr{negative(1), unix.TIOCSTI}, "EPERM", "EPERM", "EPERM"},
	{"TIOCSTI, high bits", unix.SYS_IOCTL, [6]uintptr{negative(1), 0xdead<<32 | unix.TIOCSTI}, "EPERM", "EPERM", "EPERM"},
	{"TIOCLINUX", unix.SYS_IOCTL, [6]uintptr{negative(1), unix.TIOCLINUX}, "EPERM", "EPERM", "EPERM"},
	{"TCGETS", unix.SYS_IOCTL, [6]uintptr{negative(1), unix.TCGETS}, "EBADF", "EBADF", "EBADF"},
	{"personality, query", unix.SYS_PERSONALITY, [6]uintptr{0xffffffff}, "ok", "ok", "ok"},
	{"personality, executable data", unix.SYS_PERSONALITY, [6]uintptr{0x400000}, "EPERM", "EPERM", "EPERM"},
	{"socket vsock", unix.SYS_SOCKET, [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, "EAFNOSUPPORT", "EPERM", "EPERM"},
	{"socket alg", unix.SYS_SOCKET, [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, "EAFNOSUPPORT", "EPERM", "EPERM"},
	{"socket packet", unix.SYS_SOCKET, [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, "EAFNOSUPPORT", "EPERM", "EPERM"},
	{"socket packet, high bits", unix.SYS_SOCKET, [6]uintptr{1<<32 | unix.AF_PACKET, unix.SOCK_RAW}, "EAFNOSUPPORT", "EPERM", "EPERM"},
	{"socket packet, by its old name", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_PACKET}, "EAFNOSUPPORT", "EPERM", "EPERM"},
	{"socket netlink audit", unix.SYS_SOCKET, [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, "EAFNOSUPPORT", "EPERM", "EPERM"},
	{"socket netlink uevent", unix.SYS_SOCKET, [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, "EAFNOSUPPORT", "EPERM", "EPERM"},
	{"socket netlink route", unix.SYS_SOCKET, [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}, "", "", "EPERM"},
	{"socket tcp", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, "", "", "EPERM"},
	{"socket udp", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_DGRAM}, "", "", "EPERM"},
	{"socket sctp", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, "EPROTONOSUPPORT", "EPROTONOSUPPORT", "EPERM"},
	{"socket unix", unix.SYS_SOCKET, [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}, "", "EPERM", "EPERM"},
	{"socketpair stream", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0, uintptr(unsafe.Pointer(&pair))}, "", "", ""},
	{"socketpair datagram", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0, uintptr(unsafe.Pointer(&pair))}, "", "EPERM", "EPERM"},
	{"socketpair raw, a datagram one", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_UNIX, unix.SOCK_RAW, 0, uintptr(unsafe.Pointer(&pair))}, "", "EPERM", "EPERM"},
	{"ptrace", unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_PEEKDATA}, "ESRCH", "EPERM", "EPERM"},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{}, "ok", "EPERM", "EPERM"},
	{"prlimit64 of itself", unix.SYS_PRLIMIT64, [6]uintptr{0, unix.RLIMIT_NOFILE}, "", "", ""},
	{"prlimit64 of its parent", unix.SYS_PRLIMIT64, [6]uintptr{uintptr(os.Getppid()), unix.RLIMIT_NOFILE}, "EPERM", "EPERM", "EPERM"},
	{"prlimit64 of process 1", unix.SYS_PRLIMIT64, [6]uintptr{1, unix.RLIMIT_NOFILE}, "EPERM", "EPERM", "EPERM"},
	{"prlimit64 of itself, high bits", unix.SYS_PRLIMIT64, [6]uintptr{1 << 32, unix.RLIMIT_NOFILE}, "", "", ""},
	{"setpriority of a user", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_USER, 0x7ffffffe}, "ESRCH", "EPERM", "EPERM"},
	{"shmget", unix.SYS_SHMGET, [6]uintptr{0x7fff1234, 4096}, "ENOENT", "EPERM", "EPERM"},
	{"memfd_create", unix.SYS_MEMFD_CREATE, [6]uintptr{}, "EFAULT", "EFAULT", "EFAULT"},
	{"io_setup", unix.SYS_IO_SETUP, [6]uintptr{}, "ok", "ok", "ok"},
	{"mbind", unix.SYS_MBIND, [6]uintptr{}, "ok", "ok", "ok"},
	{"pidfd_open", unix.SYS_PIDFD_OPEN, [6]uintptr{}, "EINVAL", "EINVAL", "EINVAL"},
	{"seccomp", unix.SYS_SECCOMP, [6]uintptr{99}, "EINVAL", "EINVAL", "EINVAL"},
	{"close_range", unix.SYS_CLOSE_RANGE, [6]uintptr{1 << 30, 1 << 30}, "ok", "ok", "ok"},
}

func negative(n uintptr) uintptr { return -n }

func TestSeccompAttempts(t *testing.T) {
	for _, v := range filters.Variants {
		t.Run(string(v), func(t *testing.T) {
			out, err := child(v, "attempts", "").Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got map[string]string
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, a := range attempts {
				want := a.namespaces
				switch unix := a.name == "socket unix" || strings.HasPrefix(a.name, "socketpair"); {
				case isLandlock(v) && isUnix(v) && (unix || !isOffline(v) && strings.HasPrefix(a.name, "socket ")):
				case isOffline(v):
					want = a.offline
				case isLandlock(v), !isUnix(v) && strings.HasPrefix(a.name, "socket"):
					want = a.landlock
				}
				g, ran := got[a.name]
				switch {
				case !ran:
					t.Errorf("%s: was not tried", a.name)
				case want == "ok" && g != "EPERM" && g != "ENOSYS":
				case g != want:
					t.Errorf("%s: got %q, want %q", a.name, g, want)
				}
			}
		})
	}
}

// modeCalls are the system calls that are given a file's mode, and which of
// their arguments that is.
var modeCalls = []struct {
	name  string
	index int
	flags int // index of the flags of open(2); 0 = has none
}{
	{"chmod", 1, 0},
	{"fchmod", 1, 0},
	{"fchmodat", 2, 0},
	{"fchmodat2", 2, 0},
	{"creat", 1, 0},
	{"open", 2, 1},
	{"openat", 3, 2},
	{"mknod", 1, 0},
	{"mknodat", 2, 0},
	{"mkdir", 1, 0},
	{"mkdirat", 2, 0},
}

// TestModeVerdicts goes through all modes, with whatever may be above them: the
// kernel looks at the lower 16 bits alone.
func TestModeVerdicts(t *testing.T) {
	const tmpfile = unix.O_TMPFILE &^ unix.O_DIRECTORY
	above := []uint64{0, 1 << 12, unix.S_IFREG, unix.S_IFDIR, 0xf000, 1 << 16, 1 << 31, 0xffff << 16, 1 << 32, 0x0c00 << 32, math.MaxUint32 << 32, math.MaxUint64 &^ 0o7777}
	for _, arch := range filters.Archs {
		nrs := make(map[string]uint32)
		for nr, name := range numbers(t, arch.Name) {
			nrs[name] = nr
		}
		for _, v := range filters.Variants {
			filter, err := filterFiles.ReadFile("filters/" + string(v) + "-" + arch.Name + ".bpf")
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range modeCalls {
				nr, ok := nrs[m.name]
				if !ok {
					if arch.Name == "amd64" {
						t.Errorf("%s: no such system call", m.name)
					}
					continue
				}
				flags := []uint64{0}
				if m.flags != 0 {
					flags = []uint64{
						0, unix.O_RDWR | unix.O_TRUNC, unix.O_DIRECTORY, 1<<32 | unix.O_CREAT<<32,
						unix.O_CREAT, unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY, 1<<40 | unix.O_CREAT, unix.O_TMPFILE | unix.O_RDWR, tmpfile,
					}
				}
				var bad int
				for _, flag := range flags {
					for _, high := range above {
						for mode := range uint64(0o10000) {
							c := filters.Call{NR: nr, Arch: arch.Audit}
							c.Args[m.index] = high | mode
							if m.flags != 0 {
								c.Args[m.flags] = flag
							}
							looks := m.flags == 0 || uint32(flag)&(unix.O_CREAT|tmpfile) != 0
							want := filters.Allow
							if isRoot(v) && looks && mode&0o6000 != 0 {
								want = filters.Refuse(uint32(unix.EPERM))
							}
							got, err := filters.Eval(filter, c)
							if err != nil {
								t.Fatal(err)
							}
							if got != want {
								if bad++; bad <= 3 {
									t.Errorf("%s-%s: %s %#o, flags %#o: got %#x, want %#x", v, arch.Name, m.name, high|mode, flag, got, want)
								}
							}
						}
					}
				}
			}
		}
	}
}

// tryModes makes and changes files in the current directory by all of
// modeCalls. It returns the error, or the mode that came of it.
func tryModes(nrs map[string]uintptr) map[string]string {
	unix.Umask(0)
	results := make(map[string]string)
	cwd := negative(100) // AT_FDCWD
	for _, mode := range []uintptr{0o755, 0o1755, 0o2755, 0o4755, 0o6755} {
		try := func(name, change string, args ...uintptr) {
			nr, ok := nrs[name]
			if !ok {
				return
			}
			key := fmt.Sprintf("%s%s %#o", name, change, mode)
			path := strings.ReplaceAll(key, " ", "-")
			p, err := unix.BytePtrFromString(path)
			if err != nil {
				panic(err)
			}
			fd := -1
			if strings.Contains(name, "chmod") {
				if fd, err = unix.Open(path, unix.O_CREAT|unix.O_RDWR, 0o600); err != nil {
					panic(err)
				}
			}
			var a [6]uintptr
			for i, arg := range args {
				switch arg {
				case pathArg:
					arg = uintptr(unsafe.Pointer(p))
				case fdArg:
					arg = uintptr(fd)
				}
				a[i] = arg
			}
			r, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
			runtime.KeepAlive(p)
			var st unix.Stat_t
			switch {
			case errno != 0:
				results[key] = unix.ErrnoName(errno)
				return
			case strings.HasPrefix(name, "open"), name == "creat":
				err = unix.Fstat(int(r), &st)
			default:
				err = unix.Lstat(path, &st)
			}
			if err != nil {
				panic(err)
			}
			results[key] = fmt.Sprintf("%#o", st.Mode&0o7777)
		}
		dot := uintptr(unsafe.Pointer(&dotPath[0]))
		how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(mode)}
		try("chmod", "", pathArg, mode)
		try("fchmod", "", fdArg, mode)
		try("fchmodat", "", cwd, pathArg, mode)
		try("fchmodat2", "", cwd, pathArg, mode)
		try("creat", "", pathArg, mode)
		try("open", "", pathArg, unix.O_CREAT|unix.O_WRONLY, mode)
		try("open", " unnamed", dot, unix.O_TMPFILE|unix.O_WRONLY, mode)
		try("openat", "", cwd, pathArg, unix.O_CREAT|unix.O_WRONLY, mode)
		try("openat", " unnamed", cwd, dot, unix.O_TMPFILE|unix.O_WRONLY, mode)
		try("openat", " existing", cwd, dot, unix.O_RDONLY|unix.O_DIRECTORY, mode)
		try("openat2", "", cwd, pathArg, uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow)
		try("mknod", "", pathArg, unix.S_IFREG|mode)
		try("mknodat", "", cwd, pathArg, unix.S_IFREG|mode)
		try("mkdir", "", pathArg, mode)
		try("mkdirat", "", cwd, pathArg, mode)
		runtime.KeepAlive(&how)
	}
	return results
}

var dotPath = []byte(".\x00")

// Stand for the path and for a descriptor of the file.
const (
	pathArg = 0x7fffffff00000001
	fdArg   = 0x7fffffff00000002
)

// TestSetID has a real child make programs that run as their owner.
func TestSetID(t *testing.T) {
	nrs := make(map[string]uint32)
	for nr, name := range numbers(t, runtime.GOARCH) {
		nrs[name] = nr
	}
	nrsJSON, err := json.Marshal(nrs)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range filters.Variants {
		cmd := child(v, "modes", string(nrsJSON))
		cmd.Dir = t.TempDir()
		if err := os.Chmod(cmd.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		var results map[string]string
		if err := errors.Join(err, json.Unmarshal(out, &results)); err != nil {
			t.Fatalf("%s: %v\n%s", v, err, out)
		}
		want := 15 * 5
		if runtime.GOARCH == "arm64" {
			want = 9 * 5
		}
		if len(results) != want {
			t.Errorf("%s: %d calls were tried, want %d", v, len(results), want)
		}
		for call, got := range results {
			name, rest, _ := strings.Cut(call, " ")
			mode := rest[strings.LastIndexByte(rest, ' ')+1:]
			want := mode
			bits, _ := strconv.ParseUint(mode, 0, 32)
			switch {
			case name == "openat2" && isRoot(v):
				want = "ENOSYS"
			case strings.HasPrefix(rest, "existing"):
				want = "0700"
			case isRoot(v) && bits&0o6000 != 0:
				want = "EPERM"
			case strings.HasPrefix(name, "mkdir"): // takes no such bits, see mkdir(2)
				want = fmt.Sprintf("%#o", bits&0o1777)
			}
			if strings.HasPrefix(rest, "unnamed") && got == "EOPNOTSUPP" {
				t.Logf("%s: this file system has no unnamed files", call)
				continue
			}
			if got != want {
				t.Errorf("%s: %s: got %s, want %s", v, call, got, want)
			}
		}
	}
}

// TestRootLeavesNoSetID is about the whole sandbox: only root's files matter,
// and the tools of others use these bits.
func TestRootLeavesNoSetID(t *testing.T) {
	for _, tier := range tiers(t) {
		f := newFixture(t)
		out, _ := f.exec(t, tier, nil, "/bin/sh", "-c", "cp /bin/sh a && chmod 755 a && chmod 4755 a; install -m 2755 /bin/sh b; echo done")
		fi, err := os.Stat(f.ws + "/a")
		if err != nil || fi.Mode()&0o111 == 0 || !strings.HasSuffix(out, "done") {
			t.Fatalf("%v: %v\n%s", tier, err, out)
		}
		if root := os.Geteuid() == 0; (fi.Mode()&os.ModeSetuid != 0) == root {
			t.Errorf("%v: after chmod 4755 the mode is %v; root: %v", tier, fi.Mode(), root)
		}
		if fi, err := os.Stat(f.ws + "/b"); os.Geteuid() == 0 && err == nil && fi.Mode()&os.ModeSetgid != 0 {
			t.Errorf("%v: install left mode %v", tier, fi.Mode())
		}
	}
}

// program writes an executable of nothing but code.
func program(t *testing.T, code []byte) string {
	const base = 0x400000
	var b bytes.Buffer
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Entry: base + 64 + 56, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	p := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base,
		Filesz: uint64(64 + 56 + len(code)), Memsz: uint64(64 + 56 + len(code)), Align: 0x1000,
	}
	binary.Write(&b, binary.LittleEndian, h)
	binary.Write(&b, binary.LittleEndian, p)
	b.Write(code)
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, b.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSeccompKillsForeignABI(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x32 and int 0x80 are those of amd64")
	}
	// mov eax, 1 (exit of i386); mov ebx, 42; int 0x80
	i386 := program(t, []byte{0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80})
	var without *exec.ExitError
	if err := exec.Command(i386).Run(); !asExit(err, &without) || without.ExitCode() != 42 {
		t.Logf("int 0x80 without a filter: %v; this kernel has no i386", err)
		i386 = ""
	}
	for _, v := range filters.Variants {
		tests := map[string]*exec.Cmd{
			"x32 getpid":        child(v, "number", "0x40000027"),
			"x32, out of range": child(v, "number", "0x40001000"),
		}
		if i386 != "" {
			tests["i386"] = child(v, "exec", "exec "+i386)
		}
		for name, cmd := range tests {
			out, err := cmd.Output()
			var exit *exec.ExitError
			if !asExit(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGSYS {
				t.Errorf("%s: %s: got %v %q, want death by SIGSYS", v, name, err, out)
			}
		}
	}
}

func asExit(err error, target **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*target = e
	return ok
}

// TestSeccompLetsToolsWork runs the tools of everyday work under the filters.
func TestSeccompLetsToolsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts compilers")
	}
	all := filters.Variants
	online := []filters.Variant{filters.Namespaces, filters.Landlock, filters.LandlockUnix, filters.NamespacesRoot, filters.LandlockRoot, filters.LandlockUnixRoot, filters.NamespacesNoUnix, filters.NamespacesNoUnixRoot}
	namespaces := []filters.Variant{filters.Namespaces, filters.NamespacesRoot}
	for _, test := range []struct {
		tool, script, want string
		in                 []filters.Variant
	}{
		{"sh", `ulimit -n >/dev/null; nice true; (sleep 0 & wait); echo a | cat`, "a", all},
		{"git", `git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m && git log --format=%s`, "m", all},
		{"gcc", `echo 'int main(){return 0;}' >a.c && gcc a.c && ./a.out && echo built`, "built", all},
		{"make", `printf 'all: a b\na b:\n\t@true\n' >Makefile && make -s -j4 && echo made`, "made", all},
		{"go", `printf 'package main\nfunc main(){print(1)}' >a.go && CGO_ENABLED=0 go run a.go 2>&1`, "1", all},
		{"node", `node -e 'require("child_process").execFile("echo",["hi"],(e,o)=>process.stdout.write(o))'`, "hi", all},
		{"node", `node -e 'require("os").networkInterfaces();console.log("ok")'`, "ok", online},
		{"python3", `python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs,[-1]))'`, "[1]", all},
		{"python3", `python3 -c 'import asyncio; asyncio.run(asyncio.sleep(0)); print(1)'`, "1", all},
		{"strace", `strace -f -o log sh -c true && grep -c execve log`, "1", namespaces},
		{"gdb", `gdb -batch -nx -ex run --args true | grep -o 'exited normally'`, "exited normally", namespaces},
		{"go", `printf 'module m\n' >go.mod && printf 'package main\nfunc main(){print(1)}' >a.go && CGO_ENABLED=0 go build -o m . && ./m 2>&1`, "1", all},
		{"npm", `mkdir p && echo '{"name":"p","version":"1.0.0","bin":"b.js"}' >p/package.json && printf '#!/usr/bin/env node\nconsole.log("hi")' >p/b.js &&
			npm pack -s ./p >/dev/null && npm install -s --offline --no-audit --no-fund --cache "$PWD/cache" ./p-1.0.0.tgz && node_modules/.bin/p`, "hi", all},
		{"tar", `mkdir d && echo a >d/a && chmod 640 d/a && chmod 1775 d && tar -cf a.tar d && rm -r d && tar -xpf a.tar && stat -c %a d d/a | xargs`, "1775 640", all},
		{"install", `echo a >a && install -m 755 a b && install -d -m 700 d && install -D -m 644 a e/f && stat -c %a b d e/f | xargs`, "755 700 644", all},
		{"cp", `mkdir d && echo a >d/a && chmod 751 d/a && cp -a d e && mkfifo -m 600 f && stat -c %a e/a f | xargs`, "751 600", all},
		{"setarch", `setarch -R true && echo ok`, "ok", all},
	} {
		if _, err := exec.LookPath(test.tool); err != nil {
			t.Logf("%s is not here", test.tool)
			continue
		}
		for _, v := range test.in {
			cmd := child(v, "exec", test.script)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != test.want {
				t.Errorf("%s: %s: %v\n%s", v, test.script, err, out)
			}
		}
	}
}
