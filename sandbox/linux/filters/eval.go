//go:build linux

package filters

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Arch is an architecture that filters are compiled for. Its name is Go's.
type Arch struct {
	Name  string
	Audit uint32 // AUDIT_ARCH_ of its native calls
	X32   bool   // has a second ABI whose numbers carry X32Bit
}

// X32Bit marks the calls of the x32 ABI (__X32_SYSCALL_BIT).
const X32Bit = 0x40000000

// Archs are the architectures that filters are compiled for.
var Archs = []Arch{
	{Name: "amd64", Audit: unix.AUDIT_ARCH_X86_64, X32: true},
	{Name: "arm64", Audit: unix.AUDIT_ARCH_AARCH64},
}

// Call is a system call as a filter sees it: struct seccomp_data, without the
// instruction pointer.
type Call struct {
	NR   uint32
	Arch uint32
	Args [6]uint64
}

// What a filter answers, beside Refuse (seccomp(2)).
const (
	Allow uint32 = unix.SECCOMP_RET_ALLOW
	Kill  uint32 = unix.SECCOMP_RET_KILL_PROCESS
)

// Refuse is the answer that makes a call fail with errno.
func Refuse(errno uint32) uint32 { return unix.SECCOMP_RET_ERRNO | errno }

// Eval runs a filter, an array of struct sock_filter in little-endian order, on
// a call, as the kernel does. It knows the instructions that the filters here
// consist of, and fails on others.
func Eval(filter []byte, c Call) (uint32, error) {
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], c.NR)
	binary.LittleEndian.PutUint32(data[4:], c.Arch)
	for i, a := range c.Args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var a uint32
	for pc := 0; 8*pc+8 <= len(filter); pc++ {
		ins := filter[8*pc:]
		code := binary.LittleEndian.Uint16(ins)
		jt, jf, k := int(ins[2]), int(ins[3]), binary.LittleEndian.Uint32(ins[4:])
		jump := func(cond bool) {
			if cond {
				pc += jt
			} else {
				pc += jf
			}
		}
		switch code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			if k%4 != 0 || k+4 > uint32(len(data)) {
				return 0, fmt.Errorf("instruction %d loads from offset %d", pc, k)
			}
			a = binary.LittleEndian.Uint32(data[k:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= k
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(k)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == k)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(a > k)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= k)
		case unix.BPF_RET | unix.BPF_K:
			return k, nil
		default:
			return 0, fmt.Errorf("instruction %d has unknown code %#x", pc, code)
		}
	}
	return 0, fmt.Errorf("the filter ends without an answer")
}
