//go:build linux

package linux

import (
	"encoding/binary"
	"os"
	"path/filepath"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

const newestABI = 11

// Rights by ABI (Documentation/userspace-api/landlock.rst).
func handledFS(abi int) uint64 {
	switch {
	case abi >= 9:
		return ll.AccessFSResolveUnix<<1 - 1
	case abi >= 5:
		return ll.AccessFSIoctlDev<<1 - 1
	case abi >= 3:
		return ll.AccessFSTruncate<<1 - 1
	case abi >= 2:
		return ll.AccessFSRefer<<1 - 1
	}
	return ll.AccessFSMakeSym<<1 - 1
}

// unixSockets says whether the program may have Unix sockets, because it is kept
// from those of others: with a path by masks, or by Landlock from ABI 9 on;
// abstract ones by a network namespace, or by Landlock from ABI 6 on.
func (h *host) unixSockets(spec sandbox.Spec) bool {
	if h.tier.mounts() {
		return spec.Network != sandbox.NetworkHost || h.abi >= 6
	}
	return h.abi >= 9
}

func handledNet(abi int) uint64 {
	switch {
	case abi >= 10:
		return ll.AccessNetBindTCP | ll.AccessNetConnectTCP | ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	case abi >= 4:
		return ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	return 0
}

const (
	rightsRead = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	// All but making device nodes and, for device nodes, ioctl.
	rightsWrite = (ll.AccessFSResolveUnix<<1 - 1) &^
		(ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSIoctlDev)
	rightsFile   = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSTruncate
	rightsDevice = ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	rightsPts    = rightsDevice | ll.AccessFSReadDir
	rightsSocket = ll.AccessFSResolveUnix
)

// grant is one Landlock rule: rights to a path and all below it.
type grant struct {
	path   string
	fd     int // 1 + a descriptor of the program, instead of a path; 0 = the path
	rights uint64
	listed bool // found in a listing, and may be gone by now
}

// landlock appends the ruleset. It comes after every mount change, because a
// confined process can make none.
func (b *builder) landlock(h *host, spec sandbox.Spec, grants []grant) {
	b.layer = sandbox.LayerLandlock
	attr := []uint64{handledFS(h.abi)}
	if h.abi >= 4 {
		// Localhost servers work where the network namespace is our own, so
		// Landlock has a say about ports only where there is none.
		net := uint64(0)
		if !h.tier.mounts() && spec.Network == sandbox.NetworkOff {
			net = handledNet(h.abi)
		}
		attr = append(attr, net)
	}
	if h.abi >= 6 {
		attr = append(attr, ll.ScopeAbstractUnixSocket|ll.ScopeSignal)
	}
	ruleset := b.cell()
	b.sys("create ruleset", "all rights that this kernel knows", unix.SYS_LANDLOCK_CREATE_RULESET,
		b.words(attr...), num(8*len(attr)), num(0)).to = ruleset
	for _, g := range grants {
		rights := g.rights & handledFS(h.abi)
		if rights == 0 {
			continue
		}
		// struct landlock_path_beneath_attr is packed; the result of open
		// fills the descriptor and four bytes of padding behind it.
		rule := make([]byte, 16)
		binary.NativeEndian.PutUint64(rule, rights)
		if g.fd > 0 {
			binary.NativeEndian.PutUint32(rule[8:], uint32(g.fd-1))
		}
		at := b.bytes(rule)
		if g.fd == 0 {
			s := b.sys("open "+g.path, "", unix.SYS_OPENAT, fdcwd, b.str(g.path), num(unix.O_PATH|unix.O_CLOEXEC), num(0))
			s.to = arg{isCell, at.val + 8}
			if g.listed {
				s.skip = 1 // then it gets no rule
			}
		}
		b.sys("allow "+rightsName(g.rights)+" "+g.path, "", unix.SYS_LANDLOCK_ADD_RULE,
			ruleset, num(ll.RuleTypePathBeneath), at, num(0))
	}
	b.sys("restrict self", "", unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, num(0))
}

func rightsName(r uint64) string {
	switch {
	case r == rightsRead:
		return "read"
	case r == rightsWrite || r == rightsFile:
		return "read and write"
	case r == rightsDevice || r == rightsPts:
		return "device"
	case r == rightsSocket:
		return "connect"
	case r&ll.AccessFSWriteFile != 0:
		return "write"
	}
	return "read"
}

// enumerate covers, for Landlock alone, everything readable but the hidden
// paths: rights cannot be taken back below a granted directory, so the siblings
// of each hidden path are granted one by one. Its cost grows with the number of
// entries of the directories above hidden paths.
type readDirFunc func(string) ([]os.DirEntry, error)

func enumerate(rules []sandbox.FileRule, list readDirFunc) []grant {
	var out []grant
	add := func(path string, a sandbox.Access, dir bool) {
		switch {
		case a == sandbox.ReadWrite && dir:
			out = append(out, grant{path: path, rights: rightsWrite, listed: true})
		case a == sandbox.ReadWrite:
			out = append(out, grant{path: path, rights: rightsFile, listed: true})
		case a == sandbox.ReadOnly && dir:
			out = append(out, grant{path: path, rights: rightsRead, listed: true})
		case a == sandbox.ReadOnly:
			out = append(out, grant{path: path, rights: rightsRead &^ ll.AccessFSReadDir, listed: true})
		}
	}
	var walk func(dir string)
	walk = func(dir string) {
		// Listing is granted on the whole way down, and by that below it: names
		// of hidden files can be listed, their content stays closed.
		out = append(out, grant{path: dir, rights: ll.AccessFSReadDir, listed: true})
		entries, err := list(dir)
		if err != nil {
			return
		}
		for _, e := range entries {
			p := filepath.Join(dir, e.Name())
			// A link is judged where it leads to.
			if e.Type()&os.ModeSymlink != 0 {
				continue
			}
			a := sandbox.AccessOf(rules, p)
			if a != sandbox.ReadWrite && e.IsDir() && splits(rules, p, a) {
				walk(p)
				continue
			}
			add(p, a, e.IsDir())
		}
	}
	walk("/")
	return out
}

// splits says whether a rule below dir gives less than access, or more than
// none.
func splits(rules []sandbox.FileRule, dir string, access sandbox.Access) bool {
	for _, r := range rules {
		if r.Path != dir && sandbox.Covers(dir, r.Path) && r.Access != access {
			return true
		}
	}
	return false
}
