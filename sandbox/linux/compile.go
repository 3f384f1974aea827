//go:build linux

package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/linux/internal/helper"
	"golang.org/x/sys/unix"
)

// target is the program that is run in the end.
type target struct {
	path string
	argv []string
	env  []string
	dir  string
	keep []bool // descriptors from 3 on that the program gets

	session bool // it leads one of its own, and has no terminal
}

// mountProc is the step that a container refuses which masks a part of /proc
// (mount_too_revealing in the kernel's fs/namespace.c).
const mountProc = "mount proc on /proc"

// refused are the errors by which kernels, containers and security modules say
// that a process may not have namespaces of its own.
var refused = []syscall.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS}

// compile turns what a program may do into what is done to its process. It is
// a pure function.
func compile(spec sandbox.Spec, h *host, t target) (*setup, error) {
	rules, err := effective(spec, h)
	if err != nil {
		return nil, err
	}
	s := &setup{
		pidns: h.tier.mounts(),
		// Room for most: what grows is copied.
		init: make([]step, 0, 256), target: make([]step, 0, 256), data: make([]byte, 0, 16<<10),
	}
	handed := helper.FirstFD + len(t.keep) + h.cgroupTasks // first descriptor behind those
	if h.cgroupInto {
		s.cgroup = handed
		handed++
	}
	if contains(h.lacks, "memory") {
		s.watch.memory = uint64(max(spec.Limits.Memory, 0))
	}
	if contains(h.lacks, "pids") {
		s.watch.tasks = uint64(max(spec.Limits.PIDs, 0))
	}
	in := &builder{set: s, steps: &s.init}
	grants := h.grants
	if h.tier.mounts() {
		grants = in.namespaces(spec, h, rules, t)
	} else {
		in.layer = sandbox.LayerNamespaces
		in.sys("become subreaper", "orphans of the tree come to the helper, which ends them",
			unix.SYS_PRCTL, num(unix.PR_SET_CHILD_SUBREAPER), num(1))
		in.sys("chdir "+t.dir, "", unix.SYS_CHDIR, in.str(t.dir))
	}
	in.layer = sandbox.LayerPrivileges
	in.sys("not dumpable", "the helper's memory and descriptors are closed to the program",
		unix.SYS_PRCTL, num(unix.PR_SET_DUMPABLE), num(0))
	in.sys("no new privileges", "", unix.SYS_PRCTL, num(unix.PR_SET_NO_NEW_PRIVS), num(1))
	in.layer = sandbox.LayerDescriptors
	in.sys("close the rest", "the caller's open files stay out", unix.SYS_CLOSE_RANGE,
		num(handed), num(^uint32(0)), num(0))

	out := &builder{set: s, steps: &s.target}
	out.program(spec, h, grants, t)
	return s, nil
}

// effective is the rules with every path resolved, secrets also at the other
// places where they show, and protected names added.
func effective(spec sandbox.Spec, h *host) ([]sandbox.FileRule, error) {
	var rules []sandbox.FileRule
	add := func(r sandbox.FileRule, f file) {
		r.Path = f.path
		rules = append(rules, r)
		for _, p := range h.aliases[f.path] {
			rules = append(rules, sandbox.FileRule{Path: p, Access: r.Access, Sort: r.Sort})
		}
	}
	for _, r := range spec.Files {
		f := h.files[r.Path]
		if f.kind == absent && r.Access == sandbox.ReadWrite {
			return nil, &sandbox.SpecError{
				Field: "writable path", Value: r.Path, Err: syscall.ENOENT,
				Hint: "make it first, or leave it out",
			}
		}
		// What is not there needs no rule: it can be made only where a rule for
		// a directory lets it.
		if f.kind != absent {
			add(r, f)
		}
	}
	var open []string
	for _, p := range spec.Sockets {
		f, ok := h.files[p]
		if !ok || f.kind != other {
			return nil, &sandbox.SpecError{Field: "socket", Value: p, Err: errors.New("no such socket"), Hint: "start what listens there first, or leave it out"}
		}
		open = append(open, p, f.path)
	}
	for _, p := range h.sockets {
		f, ok := h.files[p]
		if !contains(open, p) && !(ok && contains(open, f.path)) {
			rules = append(rules, sandbox.FileRule{Path: p, Access: sandbox.None, Sort: sandbox.Secret})
		}
	}
	for _, n := range spec.Protect {
		f := h.files[n.Path]
		if n.Guard == sandbox.Block && f.kind != absent && sandbox.AccessOf(rules, f.path) == sandbox.ReadWrite {
			rules = append(rules, sandbox.FileRule{Path: f.path, Access: sandbox.ReadOnly})
		}
	}
	if h.ownTmp(spec) {
		// Another /tmp is put there: no rule of a place below it repeats what a
		// rule above it says.
		rules = append(rules, sandbox.FileRule{Path: h.tmpDir()})
	}
	rules = sandbox.Effective(rules)
	if len(rules) == 0 || rules[0].Path != "/" || rules[0].Access != sandbox.ReadOnly {
		return nil, &sandbox.SpecError{
			Field: "file rule", Value: "/", Err: errors.New("must be read-only"),
			Hint: "grant the root read-only and hide what must not be seen",
		}
	}
	if err := holds(rules, h); err != nil {
		return nil, err
	}
	return rules, nil
}

// ownTmp says whether the program gets another /tmp. It does not where a rule
// is about that very directory, as when it is the workspace.
func (h *host) ownTmp(spec sandbox.Spec) bool {
	for _, r := range spec.Files {
		if r.Access != sandbox.None && h.files[r.Path].path == h.tmpDir() {
			return false
		}
	}
	return h.tier.mounts()
}

func (h *host) tmpDir() string { return h.files["/tmp"].path }

// holds refuses what Landlock alone cannot enforce: it takes nothing back below
// a writable directory.
func holds(rules []sandbox.FileRule, h *host) error {
	if h.tier.mounts() {
		return nil
	}
	for i, r := range rules {
		if r.Access != sandbox.None {
			continue
		}
		if !h.exists(r.Path) {
			continue
		}
		if sandbox.AccessOf(rules[:i], r.Path) == sandbox.ReadWrite {
			return &sandbox.UnsupportedError{
				Layer: sandbox.LayerNamespaces,
				Want:  "a mount namespace, to hide " + r.Path + " inside a writable directory",
				Have:  "Landlock alone",
				Hint:  "use a workspace that does not hold it, or a machine that permits user namespaces",
			}
		}
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// cgroup joins by descriptors that the parent opened and handed over behind
// the program's own. Only the program joins: the helper must be there to report
// when the memory is used up.
func (b *builder) cgroup(h *host, first int) {
	b.layer = sandbox.LayerCgroup
	for i := range h.cgroupTasks {
		b.sys("join cgroup", "", unix.SYS_WRITE, num(first+i), b.str("0"), num(1))
	}
}

// namespaces builds the view of the file system and returns what Landlock is to
// allow in it.
func (b *builder) namespaces(spec sandbox.Spec, h *host, rules []sandbox.FileRule, t target) []grant {
	b.layer = sandbox.LayerNamespaces
	if spec.Network != sandbox.NetworkHost {
		b.loopback()
	}
	if spec.Network == sandbox.NetworkAllow {
		b.offer(h, spec.Hosts)
	}
	b.mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "", "no mount of ours shows outside").absent = refused
	if h.tier != hostProc {
		b.mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "", "only the own processes").absent = refused
	}

	// Copies of what stays writable are taken before the root becomes
	// read-only, and put back in their places after.
	trees := map[string]arg{}
	for _, r := range rules[1:] {
		if r.Access != sandbox.None && h.exists(r.Path) {
			trees[r.Path] = b.tree(r.Path)
		}
	}
	var tmp arg
	ownTmp, tmpDir := h.ownTmp(spec), h.tmpDir()
	if ownTmp && spec.Tmp != "" {
		tmp = b.tree(h.files[spec.Tmp].path)
	}
	devices := make([]arg, len(h.devices))
	for i, d := range h.devices {
		devices[i] = b.tree(h.files["/dev/"+d].path)
	}

	b.readOnly(h, "/")
	b.dev(h, devices)
	b.mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"+h.tmpSize(spec.Limits, 0), "own shared memory")
	switch {
	case !ownTmp:
	case spec.Tmp != "":
		b.place(tmp, tmpDir, "kept between calls")
	default:
		b.mount("tmpfs", tmpDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"+h.tmpSize(spec.Limits, spec.Limits.Tmp), "gone at the end")
	}
	b.masks()

	// Shallow before deep, so that the most specific rule wins.
	v := view{"/": true, "/dev": false, "/proc": h.tier == hostProc, tmpDir: !ownTmp}
	pinned := map[string]bool{}
	for _, r := range rules[1:] {
		switch {
		case !h.exists(r.Path) || ownTmp && r.Path == tmpDir:
		case r.Access == sandbox.None:
			if _, shown := v.at(r.Path); shown {
				b.pin(rules, r.Path, pinned)
				if b.hide(h, r, rules) {
					v[r.Path] = false
				}
			}
		default:
			if top, shown := v.at(r.Path); !shown {
				b.mountPoint(top, r.Path, h.kinds[r.Path])
			} else if r.Access == sandbox.ReadOnly {
				b.pin(rules, r.Path, pinned)
			}
			b.place(trees[r.Path], r.Path, r.Access.String())
			if r.Access == sandbox.ReadOnly {
				b.readOnlyTree(h, trees[r.Path], r.Path)
			}
			v[r.Path] = true
		}
	}
	for _, r := range rules[1:] {
		if _, made := v[r.Path]; made && r.Access == sandbox.None && r.Path != tmpDir {
			b.mount("", r.Path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "", "read-only")
		}
	}
	if spec.Network == sandbox.NetworkAllow {
		b.nameFiles(h)
	}
	b.sys("chdir /", "the directory from before the mounts shows the old view", unix.SYS_CHDIR, b.str("/"))
	b.sys("chdir "+t.dir, "", unix.SYS_CHDIR, b.str(t.dir))

	if b.set.watch.any() {
		dirs := []string{"/dev/shm"}
		if h.tier != hostProc { // it shows others too, and our own /proc shows as much
			dirs = []string{"/proc", "/dev/shm"}
		}
		if ownTmp {
			dirs = append(dirs, tmpDir)
		}
		b.show(dirs)
	}

	grants := append([]grant{{path: "/", rights: rightsRead}}, writable(h, rules)...)
	if ownTmp {
		grants = append(grants, grant{path: tmpDir, rights: rightsWrite})
	}
	return append(grants, everyday(spec, h)...)
}

// writable is what the rules open for writing.
func writable(h *host, rules []sandbox.FileRule) []grant {
	var out []grant
	for _, r := range rules {
		if r.Access == sandbox.ReadWrite && h.exists(r.Path) {
			rights := uint64(rightsWrite)
			if h.kinds[r.Path] != directory {
				rights = rightsFile
			}
			out = append(out, grant{path: r.Path, rights: rights})
		}
	}
	return out
}

// everyday is what every program may use: shared memory, terminals, harmless
// devices, its own streams, and the sockets that were opened to it.
func everyday(spec sandbox.Spec, h *host) []grant {
	out := []grant{{path: "/dev/shm", rights: rightsWrite}}
	if h.tier.mounts() {
		out = append(out, grant{path: "/dev/pts", rights: rightsPts}) // its own
	}
	for _, d := range h.devices {
		out = append(out, grant{path: "/dev/" + d, rights: rightsDevice})
	}
	for _, p := range spec.Sockets {
		out = append(out, grant{path: p, rights: rightsSocket})
	}
	return append(out, h.stdio...)
}

// view says of the places where something was mounted whether they show the
// host's files (true) or a file system of our own (false).
type view map[string]bool

// at is the nearest such place above or at a path.
func (v view) at(path string) (top string, host bool) {
	for p, shows := range v {
		if sandbox.Covers(p, path) && len(p) > len(top) {
			top, host = p, shows
		}
	}
	return top, host
}

func (h *host) exists(path string) bool { return h.kinds[path] != absent }

// show hands the parent open directories, through which it watches the tree.
func (b *builder) show(dirs []string) {
	b.layer = sandbox.LayerCgroup
	fds := b.rights(len(dirs))
	next := fds.cells()
	for _, dir := range dirs {
		b.sys("open "+dir, "for the watch", unix.SYS_OPENAT, fdcwd, b.str(dir),
			num(unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC), num(0)).to = next()
	}
	b.handOut(helper.Shown, fds)
	b.layer = sandbox.LayerNamespaces
}

func (b *builder) loopback() {
	ifr := make([]byte, 40) // struct ifreq
	copy(ifr, "lo")
	binary.NativeEndian.PutUint16(ifr[16:], unix.IFF_UP|unix.IFF_RUNNING)
	fd := b.cell()
	b.sys("socket for loopback", "", unix.SYS_SOCKET, num(unix.AF_INET), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), num(0)).to = fd
	b.sys("loopback up", "servers and clients inside find each other", unix.SYS_IOCTL,
		fd, num(unix.SIOCSIFFLAGS), b.bytes(ifr)).absent = refused
}

func (b *builder) mount(source, point, fstype string, flags uintptr, data, why string) *step {
	what := "mount " + fstype + " on " + point
	typ, opts := num(0), num(0)
	if fstype != "" {
		typ = b.str(fstype)
	} else {
		what = "remount " + point
		if source != "" {
			what = "mount " + source + " on " + point
		} else if flags&unix.MS_PRIVATE != 0 {
			what = "make " + point + " private"
		}
	}
	if data != "" {
		opts = b.str(data)
		what += " (" + data + ")"
	}
	return b.sys(what, why, unix.SYS_MOUNT, b.str(source), b.str(point), typ, num(flags), opts)
}

// tree copies the mounts at a path, with those below, for placing them later.
func (b *builder) tree(path string) arg {
	at := b.open(path)
	fd := b.cell()
	b.sys("copy mount "+path, "", unix.SYS_OPEN_TREE, at, b.str(""),
		num(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)).to = fd
	return fd
}

// place mounts a copy at a path.
func (b *builder) place(tree arg, path, why string) {
	at := b.open(path)
	b.sys("place mount "+path, why, unix.SYS_MOVE_MOUNT, tree, b.str(""), at, b.str(""),
		num(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// pin makes mount points of the directories between a writable root and a
// protected or hidden path: a mount point cannot be renamed away (EBUSY), so
// that no other directory can take the name.
func (b *builder) pin(rules []sandbox.FileRule, path string, pinned map[string]bool) {
	root := "/"
	for _, r := range rules {
		if r.Access == sandbox.ReadWrite && r.Path != path && sandbox.Covers(r.Path, path) && len(r.Path) > len(root) {
			root = r.Path
		}
	}
	if root == "/" {
		return // nobody can rename them
	}
	var parents []string
	for p := filepath.Dir(path); p != root && p != "/"; p = filepath.Dir(p) {
		parents = append(parents, p)
	}
	for i := len(parents) - 1; i >= 0; i-- {
		if p := parents[i]; !pinned[p] {
			pinned[p] = true
			b.place(b.tree(p), p, "cannot be renamed")
		}
	}
}

// readOnly makes the mount at a path and all below read-only, without set-user-ID.
func (b *builder) readOnly(h *host, path string) {
	if h.mountSetattr {
		attr := b.words(unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, 0, 0, 0)
		b.sys("make "+path+" read-only", "recursively", unix.SYS_MOUNT_SETATTR, fdcwd, b.str(path),
			num(unix.AT_RECURSIVE), attr, num(32))
		return
	}
	// Before Linux 5.12: one mount at a time. A mount that another covers
	// cannot be reached by its path, nor by the program.
	for _, m := range h.mounts {
		if sandbox.Covers(path, m.point) && !sandbox.Covers("/proc", m.point) && (m.point != path || path == "/") {
			b.remount(m.point, m.flags)
		}
	}
	if path != "/" {
		b.remount(path, h.flagsAt(path))
	} else {
		b.remount("/proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
	}
}

func (b *builder) remount(path string, flags uintptr) {
	s := b.mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|flags, "", "read-only")
	if path != "/" {
		s.allow = [2]syscall.Errno{unix.EINVAL, unix.ENOENT} // covered by another mount, or gone since
	}
}

func (h *host) flagsAt(path string) uintptr {
	flags, longest := uintptr(0), -1
	for _, m := range h.mounts {
		if sandbox.Covers(m.point, path) && len(m.point) >= longest {
			flags, longest = m.flags, len(m.point)
		}
	}
	return flags
}

// readOnlyTree is readOnly for a tree that was placed, by its descriptor.
func (b *builder) readOnlyTree(h *host, tree arg, path string) {
	if !h.mountSetattr {
		b.readOnly(h, path)
		return
	}
	attr := b.words(unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, 0, 0, 0)
	b.sys("make "+path+" read-only", "", unix.SYS_MOUNT_SETATTR, tree, b.str(""),
		num(unix.AT_EMPTY_PATH|unix.AT_RECURSIVE), attr, num(32))
}

// dev makes a /dev with the harmless devices and terminals of its own.
func (b *builder) dev(h *host, devices []arg) {
	b.mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k", "no device but these")
	for i, d := range h.devices {
		p := "/dev/" + d
		b.sys("make "+p, "", unix.SYS_MKNODAT, fdcwd, b.str(p), num(unix.S_IFREG|0o666), num(0))
		b.place(devices[i], p, "device")
	}
	for _, l := range [][2]string{
		{"/proc/self/fd", "/dev/fd"},
		{"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"},
		{"/proc/self/fd/2", "/dev/stderr"},
		{"pts/ptmx", "/dev/ptmx"},
	} {
		b.sys("link "+l[1], "", unix.SYS_SYMLINKAT, b.str(l[0]), fdcwd, b.str(l[1]))
	}
	for _, d := range []string{"/dev/pts", "/dev/shm"} {
		b.sys("make "+d, "", unix.SYS_MKDIRAT, fdcwd, b.str(d), num(0o755))
	}
	opts := "newinstance,ptmxmode=0666,mode=620"
	for _, m := range h.gidMap {
		if h.admin && m.ContainerID <= 5 && 5 < m.ContainerID+m.Size {
			opts += ",gid=5" // tty
		}
	}
	b.mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, opts, "own terminals")
}

// tmpSize is the option of a file system in memory that may hold so many bytes,
// 0 being the kernel's half of the memory. Where no cgroup counts its pages, the
// limit of memory is one of each such file system, too.
func (h *host) tmpSize(l sandbox.Limits, bytes int64) string {
	if l.Memory > 0 && contains(h.lacks, "memory") && (bytes <= 0 || l.Memory < bytes) {
		bytes = l.Memory
	}
	if bytes <= 0 {
		return ""
	}
	return fmt.Sprintf(",size=%d", bytes)
}

const (
	maskDir  = "/dev/.masked"
	maskFile = "/dev/.masked-file"
	canary   = "/dev/.canary"
)

// masks makes the empty directory and the empty file that stand in for what is
// hidden. A bind mount of them inherits read-only.
func (b *builder) masks() {
	b.sys("make "+maskDir, "", unix.SYS_MKDIRAT, fdcwd, b.str(maskDir), num(0))
	b.sys("make "+maskFile, "", unix.SYS_MKNODAT, fdcwd, b.str(maskFile), num(unix.S_IFREG), num(0))
	for _, p := range []string{maskDir, maskFile} {
		b.mount(p, p, "", unix.MS_BIND, "", "")
		b.mount("", p, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "", "read-only")
	}
}

// hide covers a path with something empty. A directory in which deeper rules
// open something again becomes an own file system that has just their mount
// points; then hide returns true.
func (b *builder) hide(h *host, r sandbox.FileRule, rules []sandbox.FileRule) bool {
	why := r.Sort.String()
	if h.kinds[r.Path] != directory {
		s := b.mount(maskFile, r.Path, "", unix.MS_BIND, "", why)
		if contains(h.sockets, r.Path) {
			s.allow[0] = unix.ENOENT // its server has ended meanwhile
		}
		return false
	}
	for _, o := range rules {
		if o.Path != r.Path && sandbox.Covers(r.Path, o.Path) && o.Access != sandbox.None && h.exists(o.Path) {
			b.mount("tmpfs", r.Path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k", why)
			return true
		}
	}
	b.mount(maskDir, r.Path, "", unix.MS_BIND, "", why)
	return false
}

// mountPoint makes the directories down to a path in an own file system.
func (b *builder) mountPoint(top, path string, k kind) {
	rest := strings.Split(strings.TrimPrefix(path, top+"/"), "/")
	p := top
	for i, name := range rest {
		p += "/" + name
		var s *step
		if i == len(rest)-1 && k != directory {
			s = b.sys("make "+p, "mount point", unix.SYS_MKNODAT, fdcwd, b.str(p), num(unix.S_IFREG|0o600), num(0))
		} else {
			s = b.sys("make "+p, "mount point", unix.SYS_MKDIRAT, fdcwd, b.str(p), num(0o755))
		}
		s.skip = 0 // it may be there from an earlier call; placing the mount tells
	}
}

// Capabilities that root keeps: what package managers and su(1) need inside,
// nothing that reaches the kernel or the host.
var keptCaps = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID,
	unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_KILL, unix.CAP_NET_BIND_SERVICE,
}

const lastCap = 63 // the kernel has at most 64; EINVAL ends the list

// program is what the forked child does to itself, up to its exec.
func (b *builder) program(spec sandbox.Spec, h *host, grants []grant, t target) {
	if !h.tier.mounts() {
		b.layer = sandbox.LayerPrivileges
		b.sys("die with the helper", "", unix.SYS_PRCTL, num(unix.PR_SET_PDEATHSIG), num(uint64(unix.SIGKILL)))
	}
	b.cgroup(h, helper.FirstFD+len(t.keep))
	b.layer = sandbox.LayerDescriptors
	if t.session {
		b.sys("lead a new session", "the caller's terminal is not the program's", unix.SYS_SETSID)
	}
	for i, kept := range t.keep {
		if kept {
			b.sys(fmt.Sprintf("keep descriptor %d", 3+i), "", unix.SYS_DUP3, num(helper.FirstFD+i), num(3+i), num(0))
		} else {
			b.sys(fmt.Sprintf("close descriptor %d", 3+i), "", unix.SYS_CLOSE, num(3+i)).skip = 0
		}
	}
	b.sys("close the rest", "", unix.SYS_CLOSE_RANGE, num(3+len(t.keep)), num(^uint32(0)), num(0))

	b.layer = sandbox.LayerPrivileges
	keep := uint64(0)
	if h.admin {
		for _, c := range keptCaps {
			keep |= 1 << c
		}
	}
	b.sys("clear ambient capabilities", "", unix.SYS_PRCTL, num(unix.PR_CAP_AMBIENT), num(unix.PR_CAP_AMBIENT_CLEAR_ALL), num(0), num(0), num(0))
	if h.tier.mounts() || h.uid == 0 {
		for c := range lastCap + 1 {
			if keep>>c&1 == 0 {
				// EINVAL: this kernel does not have it; EPERM: not ours to drop,
				// and with no new privileges none comes back by an exec.
				b.sys("drop a capability", "", unix.SYS_PRCTL, num(unix.PR_CAPBSET_DROP), num(c)).allow = [2]syscall.Errno{unix.EINVAL, unix.EPERM}
			}
		}
	}
	b.capset(keep)
	for _, r := range h.rlimits {
		b.sys(fmt.Sprintf("limit resource %d to %d", r.resource, r.value), "getrlimit(2)", unix.SYS_PRLIMIT64, num(0), num(r.resource), b.words(r.value, r.value), num(0))
	}
	if h.abi > 0 {
		b.landlock(h, spec, grants)
		if h.tier.mounts() {
			b.sys("try to write where only Landlock refuses", "proof", unix.SYS_MKDIRAT, fdcwd, b.str(canary), num(0o700)).want = unix.EACCES
		} else {
			// A nameless file, so that nothing stays if Landlock did not hold.
			b.sys("try to write where only Landlock refuses", "proof", unix.SYS_OPENAT, fdcwd, b.str(h.canaryDir),
				num(unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC), num(0o600)).want = unix.EACCES
		}
	}
	b.sys("signal mask", "the caller's", unix.SYS_RT_SIGPROCMASK, num(2), b.words(h.sigmask), num(0), num(8))
	path, argv, env := b.str(t.path), b.vector(t.argv), b.vector(t.env)
	b.layer = sandbox.LayerSeccomp
	fprog := b.words(uint64(len(h.filter)/8), address(b.bytes(h.filter).val))
	b.sys(fmt.Sprintf("filter system calls (%d instructions)", len(h.filter)/8), "as late as possible",
		unix.SYS_SECCOMP, num(1), num(0), fprog)
	b.sys("try a refused system call", "proof", unix.SYS_ADD_KEY, num(0), num(0), num(0), num(0), num(0)).want = unix.EPERM
	b.layer = layerExec
	b.sys("execute "+t.path, "", unix.SYS_EXECVE, path, argv, env)
}

// layerExec names the last step, whose failure is the program's own.
const layerExec = "program"

func (b *builder) capset(keep uint64) {
	hdr := make([]byte, 8)
	binary.NativeEndian.PutUint32(hdr, unix.LINUX_CAPABILITY_VERSION_3)
	lo, hi := keep&0xffffffff, keep>>32
	data := make([]byte, 0, 24)
	for _, w := range []uint64{lo, lo, 0, hi, hi, 0} { // effective, permitted, inheritable
		data = binary.NativeEndian.AppendUint32(data, uint32(w))
	}
	b.sys("set capabilities", "", unix.SYS_CAPSET, b.bytes(hdr), b.bytes(data))
}

// landlockGrants is what Landlock alone allows: everything readable but the
// hidden paths, the writable roots, and the harmless devices.
func landlockGrants(spec sandbox.Spec, h *host, rules []sandbox.FileRule, readDir readDirFunc) []grant {
	// Protected names cannot be taken out of a writable directory here.
	var plain []sandbox.FileRule
	for i, r := range rules {
		if r.Access == sandbox.ReadOnly && r.Path != "/" && sandbox.AccessOf(rules[:i], r.Path) == sandbox.ReadWrite {
			continue
		}
		plain = append(plain, r)
	}
	// The machine's devices and terminals are open to whom they belong: only
	// the harmless ones are for a program.
	plain = sandbox.Effective(append(plain, sandbox.FileRule{Path: "/dev"}))
	grants := append(enumerate(plain, readDir), writable(h, plain)...)
	if spec.Tmp != "" {
		grants = append(grants, grant{path: h.files[spec.Tmp].path, rights: rightsWrite})
	}
	return append(grants, everyday(spec, h)...)
}
