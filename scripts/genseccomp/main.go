//go:build libseccomp && linux && cgo

// Genseccomp compiles the seccomp filters of sandbox/linux from the rules in
// sandbox/linux/filters, by libseccomp:
//
//	go generate ./sandbox/linux
//
// With -check it writes nothing and fails if a filter is not what it would
// write. It needs libseccomp's headers (Debian: libseccomp-dev) and a C
// compiler; building and running sandbox-exec needs neither, which is why it
// hides behind a build tag.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sandbox-exec/sandbox-exec/sandbox/linux/filters"
	seccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

func main() {
	dir := flag.String("dir", "filters", "directory of the filters")
	check := flag.Bool("check", false, "compare with the files instead of writing them")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "genseccomp:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	for _, arch := range filters.Archs {
		for _, v := range filters.Variants {
			bpf, txt, err := compile(arch, filters.For(v))
			if err != nil {
				return fmt.Errorf("%s for %s: %w", v, arch.Name, err)
			}
			name := filepath.Join(dir, string(v)+"-"+arch.Name)
			for file, made := range map[string][]byte{name + ".bpf": bpf, name + ".txt": txt} {
				if !check {
					if err := os.WriteFile(file, made, 0o666); err != nil {
						return err
					}
					continue
				}
				have, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				if !bytes.Equal(have, made) {
					return fmt.Errorf("%s is not what libseccomp %s makes of the rules: run go generate", file, version())
				}
			}
		}
	}
	return nil
}

func version() string {
	major, minor, micro := seccomp.GetLibraryVersion()
	return fmt.Sprintf("%d.%d.%d", major, minor, micro)
}

// compile returns the filter, and what a reviewer reads of it.
func compile(arch filters.Arch, rules []filters.Rule) (bpf, txt []byte, err error) {
	target, err := seccomp.GetArchFromString(arch.Name)
	if err != nil {
		return nil, nil, err
	}
	native, err := seccomp.GetNativeArch()
	if err != nil {
		return nil, nil, err
	}
	f, err := seccomp.NewFilter(seccomp.ActAllow)
	if err != nil {
		return nil, nil, err
	}
	defer f.Release()
	if target != native {
		err = errors.Join(f.AddArch(target), f.RemoveArch(native))
	}
	err = errors.Join(err,
		f.SetBadArchAction(seccomp.ActKillProcess),
		// A binary search. The kernel runs the filter once for every number
		// when it is loaded, so that a list makes the start of a command slower.
		f.SetOptimize(2))
	if err != nil {
		return nil, nil, err
	}

	var text bytes.Buffer
	fmt.Fprintf(&text, "# Made by scripts/genseccomp with libseccomp %s. Do not edit.\n", version())
	fmt.Fprintf(&text, "# Numbers above %d: %s. Other ABIs: the process is killed. Everything else: allowed.\n\n", filters.Newest, unix.ErrnoName(unix.ENOSYS))
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)

	var unless []numbered
	for _, r := range rules {
		// AddRule takes the number of the native architecture and translates.
		call, err := seccomp.GetSyscallFromName(r.Name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		nr, err := seccomp.GetSyscallFromNameByArch(r.Name, target)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		if nr < 0 { // the architecture does not have it
			continue
		}
		if nr > filters.Newest {
			return nil, nil, fmt.Errorf("%s has number %d, newer than the newest known, %d", r.Name, nr, filters.Newest)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", nr, r.Name, condition(r), unix.ErrnoName(r.Errno), r.Group, r.Why)
		if r.Unless != nil {
			unless = append(unless, numbered{uint32(nr), r})
			continue
		}
		refuse := seccomp.ActErrno.SetReturnCode(int16(r.Errno))
		if r.When == nil {
			err = f.AddRule(call, refuse)
		} else {
			err = f.AddRuleConditional(call, refuse, conditions(r.When))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	table.Flush()
	fmt.Fprintln(&text)

	pfc, err := export(f.ExportPFC)
	if err != nil {
		return nil, nil, err
	}
	tail, err := export(f.ExportBPF)
	if err != nil {
		return nil, nil, err
	}
	text.Write(pfc)
	return append(head(arch, unless), tail...), text.Bytes(), nil
}

type numbered struct {
	nr   uint32
	rule filters.Rule
}

type group struct {
	nrs  []uint32
	rule filters.Rule // of the first; the others ask and answer the same
}

// grouped lets calls that are judged alike share their instructions.
func grouped(rules []numbered) []group {
	var groups []group
	for _, n := range rules {
		i := slices.IndexFunc(groups, func(g group) bool {
			return g.rule.Errno == n.rule.Errno && slices.EqualFunc(g.rule.Unless, n.rule.Unless, slices.Equal)
		})
		if i < 0 {
			groups = append(groups, group{[]uint32{n.nr}, n.rule})
			continue
		}
		groups[i].nrs = append(groups[i].nrs, n.nr)
	}
	return groups
}

func condition(r filters.Rule) string {
	all := func(args []filters.Arg) string {
		var s []string
		for _, a := range args {
			if a.Mask == ^uint32(0) {
				s = append(s, fmt.Sprintf("arg%d=%#x", a.Index, a.Value))
			} else {
				s = append(s, fmt.Sprintf("arg%d&%#x=%#x", a.Index, a.Mask, a.Value))
			}
		}
		return strings.Join(s, ",")
	}
	switch {
	case r.When != nil:
		return "when " + all(r.When)
	case r.Unless != nil:
		var s []string
		for _, row := range r.Unless {
			s = append(s, all(row))
		}
		return "unless " + strings.Join(s, " or ")
	}
	return "always"
}

func conditions(args []filters.Arg) []seccomp.ScmpCondition {
	var cs []seccomp.ScmpCondition
	for _, a := range args {
		cs = append(cs, seccomp.ScmpCondition{
			Argument: a.Index,
			Op:       seccomp.CompareMaskedEqual,
			Operand1: uint64(a.Mask),
			Operand2: uint64(a.Value),
		})
	}
	return cs
}

// export reads what libseccomp writes to a file; into memory it can write only
// from 2.6 on.
func export(write func(*os.File) error) ([]byte, error) {
	f, err := os.CreateTemp("", "genseccomp")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// head is what runs before libseccomp's filter and decides what that cannot:
// numbers that it has no name for, and arguments that are none of a list (it
// would have to list all others). Whatever else comes falls through to it.
func head(arch filters.Arch, rules []numbered) []byte {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		and   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		jump  = unix.BPF_JMP | unix.BPF_JA
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		above = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K

		offNR, offArch, offArgs = 0, 4, 16 // in struct seccomp_data
	)
	end := unix.SockFilter{Code: jump} // its distance is filled in below
	refuse := func(errno uint32) unix.SockFilter {
		return unix.SockFilter{Code: ret, K: filters.Refuse(errno)}
	}
	prog := []unix.SockFilter{
		{Code: load, K: offArch},
		{Code: equal, K: arch.Audit, Jt: 1},
		end,
		{Code: load, K: offNR},
		{Code: above, K: filters.Newest, Jf: 3},
		{Code: least, K: filters.X32Bit, Jf: 1}, // x32, and -1, which a tracer sets to skip a call
		end,
		refuse(uint32(unix.ENOSYS)),
	}
	for _, g := range grouped(rules) {
		var body []unix.SockFilter
		for _, row := range g.rule.Unless {
			var match []unix.SockFilter
			for i := len(row) - 1; i >= 0; i-- { // backwards, for the distance to the next row
				a := row[i]
				one := []unix.SockFilter{{Code: load, K: offArgs + 8*uint32(a.Index)}}
				if a.Mask != ^uint32(0) {
					one = append(one, unix.SockFilter{Code: and, K: a.Mask})
				}
				one = append(one, unix.SockFilter{Code: equal, K: a.Value, Jf: uint8(len(match) + 1)})
				match = append(one, match...)
			}
			body = append(append(body, match...), end)
		}
		body = append(body, refuse(uint32(g.rule.Errno)))
		if len(body) > 255 || len(g.nrs) > 255 {
			panic(g.rule.Name + ": too much for one jump")
		}
		for i, nr := range g.nrs {
			is := unix.SockFilter{Code: equal, K: nr, Jt: uint8(len(g.nrs) - 1 - i)}
			if is.Jt == 0 {
				is.Jf = uint8(len(body))
			}
			prog = append(prog, is)
		}
		prog = append(prog, body...)
	}
	var b []byte
	for i, ins := range prog {
		if ins.Code == jump {
			ins.K = uint32(len(prog) - i - 1)
		}
		b = binary.LittleEndian.AppendUint16(b, ins.Code)
		b = append(b, ins.Jt, ins.Jf)
		b = binary.LittleEndian.AppendUint32(b, ins.K)
	}
	return b
}
