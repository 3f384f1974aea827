//go:build linux

package linux

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// host is all that compile needs to know of the machine.
type host struct {
	identity
	tier         tier
	abi          int  // of Landlock; 0 = none
	mountSetattr bool // Linux 5.12
	mounts       []mount
	files        map[string]file // by the path as a rule has it
	kinds        map[string]kind // by the resolved path
	names        map[string]int  // how many names are looked for in a directory
	lists        map[string]map[string]struct{}
	failed       error               // the first look that told nothing
	dirs         map[string]dir      // that were looked into
	aliases      map[string][]string // of hidden paths: where else they show
	devices      []string
	sockets      []string // bound pathname sockets that the command must not reach
	grants       []grant  // Landlock alone: what covers all but the hidden paths
	stdio        []grant  // files behind stdin, stdout and stderr that may be opened again
	filter       []byte
	rlimits      []rlimit
	canaryDir    string     // Landlock alone: anyone may write here, the program may not
	lacks        []string   // controllers that no cgroup of ours has
	cgroupTasks  int        // how many tasks files of v1 the helper is given
	cgroupInto   bool       // and whether the directory of a v2 group
	sigmask      uint64     // that the program starts with
	nameFiles    []nameFile // that lead the program's questions for names to us
}

// identity is who we are, and who that is in a user namespace of our own.
type identity struct {
	uid, gid       int
	admin          bool // root with CAP_SYS_ADMIN
	uidMap, gidMap []syscall.SysProcIDMap
}

func identify() (identity, error) {
	id := identity{uid: os.Geteuid(), gid: os.Getegid(), admin: isAdmin()}
	// A user keeps the one id. Root keeps all that there are, so that owners of
	// files stay what they are and id changes work, with none of its power over
	// the host.
	id.uidMap = []syscall.SysProcIDMap{{ContainerID: id.uid, HostID: id.uid, Size: 1}}
	id.gidMap = []syscall.SysProcIDMap{{ContainerID: id.gid, HostID: id.gid, Size: 1}}
	if !id.admin {
		return id, nil
	}
	var err error
	if id.uidMap, err = ownMap("/proc/self/uid_map"); err == nil {
		id.gidMap, err = ownMap("/proc/self/gid_map")
	}
	if err != nil {
		return id, &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: "read our id maps", Err: err, Hint: "mount /proc"}
	}
	return id, nil
}

// file is what a path is on the host.
type file struct {
	path string // resolved
	kind kind
}

type kind uint8

const (
	absent kind = iota
	regular
	directory
	other // a socket, a FIFO or a device
)

type mount struct {
	dev   string // "major:minor"
	root  string // of the mount within its file system
	point string
	flags uintptr // MS_NOSUID and the like, that a remount must keep
}

// survey looks at the host. It opens nothing for reading in a place that the
// workspace can choose.
//
// Directories that it opened are open until [host.close].
func survey(spec sandbox.Spec, id identity, t tier) (_ *host, err error) {
	h := &host{
		identity: id, tier: t,
		files: map[string]file{}, kinds: map[string]kind{}, dirs: map[string]dir{}, names: map[string]int{}, lists: map[string]map[string]struct{}{}, aliases: map[string][]string{},
	}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	h.abi = landlockABI()
	h.mountSetattr = haveMountSetattr()

	if h.mounts, err = readMounts(); err != nil {
		return nil, &sandbox.SetupError{
			Layer: sandbox.LayerNamespaces, Step: "read /proc/self/mountinfo", Err: err,
			Hint: "mount /proc",
		}
	}
	for _, r := range spec.Files {
		h.expect(r.Path)
	}
	for _, n := range spec.Protect {
		h.expect(n.Path)
	}
	for _, r := range spec.Files {
		if f := h.look(r.Path); r.Access == sandbox.None && f.kind != absent {
			h.aliases[f.path] = h.otherPlaces(f.path)
		}
	}
	for _, n := range spec.Protect {
		h.look(n.Path)
	}
	for _, p := range append([]string{"/tmp", "/dev/shm", spec.Tmp}, spec.Sockets...) {
		if p != "" {
			h.look(p)
		}
	}
	if spec.Network == sandbox.NetworkAllow {
		h.surveyNames()
	}
	for _, d := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if h.look("/dev/"+d).kind == other {
			h.devices = append(h.devices, d)
		}
	}
	if h.sockets, err = boundSockets(); err != nil {
		return nil, &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: "read /proc/net/unix", Err: err}
	}
	for _, p := range h.sockets {
		h.kinds[p] = other
		if len(spec.Sockets) > 0 {
			h.look(p) // one that is opened may have been bound by another path
		}
	}
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 0, 0, uintptr(unsafe.Pointer(&h.sigmask)), 8, 0, 0)
	return h, h.failed
}

// look resolves a path by opening it: what counts is what the kernel finds.
// Most of the long list of secrets is not there, and whole groups of it share
// a directory that is not, so that a name costs one system call at the most.
func (h *host) look(path string) file {
	f, ok := h.files[path]
	if ok {
		return f
	}
	in := h.dir(dirOf(path))
	name := path[len(dirOf(path))+1:]
	if in.fd == -1 || h.listed(dirOf(path), in.fd, name) == no {
		return file{path: path}
	}
	f, err := lookup(path, in, name)
	if err != nil {
		h.fail(path, err)
	}
	if f.kind != absent {
		h.files[path] = f
		h.kinds[f.path] = f.kind
	}
	return f
}

// fail remembers an error that does not say that a name is not there. A secret
// that cannot be looked for, for want of descriptors or memory, must not pass
// for one that does not exist.
func (h *host) fail(path string, err error) {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.ENAMETOOLONG:
	default:
		if h.failed == nil {
			h.failed = &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: "look for " + path, Err: err}
		}
	}
}

// dirOf is the directory of a clean path, "" being the root.
func dirOf(path string) string { return path[:strings.LastIndexByte(path, '/')] }

type answer uint8

const (
	unknown answer = iota
	no
)

// manyNames in one directory are looked for in its listing, if that is short.
const manyNames = 24

// expect counts the names that will be looked for in a directory, those of
// directories on the way to others among them.
func (h *host) expect(path string) {
	dir := dirOf(path)
	h.names[dir]++
	if h.names[dir] == 1 && dir != "" {
		h.expect(dir)
	}
}

// listed says whether a name is surely not in a directory. One call that lists
// it stands for a call for each of many names that are not there. A directory
// that does not fit into the buffer, or on a file system that may hold more
// than it lists, is not asked; letters count in either case, because the file
// system may ignore it.
func (h *host) listed(path string, dir int, name string) answer {
	if h.names[path] < manyNames || name == "" {
		return unknown
	}
	list, ok := h.lists[path]
	if !ok {
		list = shortListing(dir)
		h.lists[path] = list
	}
	if list == nil {
		return unknown
	}
	if _, there := list[strings.ToLower(name)]; there {
		return unknown
	}
	return no
}

// shortListing is the names of a directory in lower case, or nil.
func shortListing(dir int) map[string]struct{} {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return nil
	}
	switch fs.Type {
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
	default:
		return nil
	}
	buf := make([]byte, 32<<10)
	n, err := unix.ReadDirent(fd, buf)
	if err != nil {
		return nil
	}
	_, _, names := syscall.ParseDirent(buf[:n], -1, nil)
	if n, err = unix.ReadDirent(fd, buf); err != nil || n != 0 {
		return nil // there is more
	}
	list := make(map[string]struct{}, len(names))
	for _, name := range names {
		list[strings.ToLower(name)] = struct{}{}
	}
	return list
}

// dir is a directory in which names are looked for.
type dir struct {
	fd   int    // -1 = there is none
	path string // with a slash at its end, if no link leads to it, else ""
}

// dir opens a directory, "" being the root.
func (h *host) dir(path string) dir {
	d, ok := h.dirs[path]
	if ok {
		return d
	}
	d.fd = -1
	if path == "" {
		d = h.openDir(dir{fd: unix.AT_FDCWD}, path, "/")
	} else if above := h.dir(dirOf(path)); above.fd != -1 {
		if name := path[len(dirOf(path))+1:]; h.listed(dirOf(path), above.fd, name) != no {
			d = h.openDir(above, path, name)
		}
	}
	h.dirs[path] = d
	return d
}

func (h *host) openDir(above dir, path, name string) dir {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	if path == "" || above.path != "" {
		if fd, err := unix.Openat(above.fd, name, flags|unix.O_NOFOLLOW, 0); err == nil {
			return dir{fd, path + "/"}
		} else if err != unix.ENOTDIR { // a link, or no directory
			h.fail(path, err)
			return dir{fd: -1}
		}
	}
	fd, err := unix.Openat(above.fd, name, flags, 0)
	if err != nil {
		h.fail(path, err)
		fd = -1
	}
	return dir{fd: fd}
}

func (h *host) close() {
	if h == nil {
		return
	}
	for _, d := range h.dirs {
		if d.fd != -1 {
			unix.Close(d.fd)
		}
	}
	h.dirs = nil
}

func lookup(path string, in dir, name string) (file, error) {
	var st unix.Stat_t
	if name == "" { // the root
		name = "."
	}
	if err := unix.Fstatat(in.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return file{path: path}, err
	}
	if in.path != "" && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return file{path: path, kind: kindOf(st.Mode)}, nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return file{path: path}, err // a link that dangles, mostly
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return file{path: path}, err
	}
	resolved, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return file{path: path}, unix.EIO
	}
	if resolved[0] != '/' { // not below our root
		return file{path: path}, nil
	}
	return file{path: resolved, kind: kindOf(st.Mode)}, nil
}

func kindOf(mode uint32) kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return directory
	case unix.S_IFREG:
		return regular
	}
	return other
}

// otherPlaces are where else the file system shows path: another mount of the
// same tree would show what a mask hides.
func (h *host) otherPlaces(path string) []string {
	var at *mount
	for i := range h.mounts {
		m := &h.mounts[i]
		if sandbox.Covers(m.point, path) && (at == nil || len(m.point) >= len(at.point)) {
			at = m
		}
	}
	if at == nil {
		return nil
	}
	inside := filepath.Join(at.root, strings.TrimPrefix(path, at.point))
	var out []string
	for i := range h.mounts {
		m := &h.mounts[i]
		if m.dev != at.dev || m.point == at.point {
			continue
		}
		p := ""
		switch {
		case sandbox.Covers(m.root, inside):
			p = filepath.Join(m.point, strings.TrimPrefix(inside, m.root))
		case sandbox.Covers(inside, m.root) && !sandbox.Covers(path, m.point):
			p = m.point // a part of what is hidden
		}
		if p != "" && p != path && h.look(p).kind != absent {
			out = append(out, p)
		}
	}
	return out
}

// readMounts parses /proc/self/mountinfo (proc_pid_mountinfo(5)). A line of a
// shape that is not known is skipped: an odd mount must not stop every command.
func readMounts() ([]mount, error) {
	data, err := readFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []mount
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if len(f) < 6 {
			continue
		}
		m := mount{dev: f[2], root: unescape(f[3]), point: unescape(f[4])}
		for _, o := range strings.Split(f[5], ",") {
			m.flags |= mountFlags[o]
		}
		out = append(out, m)
	}
	return out, nil
}

var mountFlags = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
	"nosymfollow": unix.MS_NOSYMFOLLOW,
}

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// boundSockets lists the pathname sockets of this network namespace: connect(2)
// works across a read-only mount, so each one is a way out.
func boundSockets() ([]string, error) {
	data, err := readFile("/proc/net/unix")
	if errors.Is(err, os.ErrNotExist) { // a kernel without AF_UNIX, or a masked /proc
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	seen := map[string]bool{}
	for line := range bytes.Lines(data) {
		i := bytes.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		p := filepath.Clean(strings.TrimSuffix(string(line[i:]), "\n"))
		if seen[p] {
			continue
		}
		seen[p] = true
		var st unix.Stat_t
		if unix.Stat(p, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			out = append(out, p)
		}
	}
	return out, nil
}

// isAdmin says whether we are root and may administer the system that we see.
// Root in a container often may not, and is treated as an ordinary user.
func isAdmin() bool { return os.Geteuid() == 0 && hasCapability(unix.CAP_SYS_ADMIN) }

// ownMap reads which ids there are for us (user_namespaces(7)), and maps each
// to itself.
func ownMap(path string) ([]syscall.SysProcIDMap, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	var out []syscall.SysProcIDMap
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(f[0], 10, 32)
		size, err2 := strconv.ParseUint(f[2], 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: int(first), HostID: int(first), Size: int(size)})
	}
	return out, nil
}

func hasCapability(c int) bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return false
	}
	return data[c/32].Effective&(1<<(c%32)) != 0
}

func haveMountSetattr() bool {
	_, _, errno := unix.RawSyscall6(unix.SYS_MOUNT_SETATTR, ^uintptr(0), 0, 0, 0, 0, 0)
	return errno != unix.ENOSYS
}

// landlockABI is the version that the kernel enforces, at most the newest that
// we know. one without the fix for the scope of signals (erratum 2) counts as 5
// (Documentation/userspace-api/landlock.rst, "Errata").
func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	if errata, err := ll.LandlockGetErrata(); abi >= 6 && (err != nil || errata&2 == 0) {
		return 5
	}
	return min(abi, newestABI)
}
