package policy_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// stub returns a program (ELF, linux/amd64) that appends one record to the file
// log and exits: argc as 8 bytes, then, each with a NUL at its end, the path
// that it was executed by and its arguments. Texts start millions of them, so
// it is the least that does it. Its exit status depends on the length of the
// arguments, so that both ways of && and || are taken.
//
//	_start: mov rbx, rsp                    ; argc, argv…, NULL, envp…, NULL, auxv…
//	        mov rcx, [rbx]
//	        lea rdx, [rbx+rcx*8+16]         ; envp
//	env:    mov rax, [rdx]
//	        add rdx, 8
//	        test rax, rax
//	        jnz env
//	aux:    mov rax, [rdx]
//	        mov r12, [rdx+8]
//	        add rdx, 16
//	        cmp rax, 31                     ; AT_EXECFN
//	        jne aux
//	        mov rdi, r12
//	        call size
//	        mov r13, rax
//	        mov r14, [rbx+8]                ; argv[0]; the arguments lie one after the other
//	        mov rdi, [rbx+rcx*8]            ; argv[argc-1]
//	        call size
//	        add rax, rdi
//	        sub rax, r14
//	        mov r15, rax
//	        mov eax, 2                      ; open(log, O_WRONLY|O_APPEND)
//	        lea rdi, [rip+log]
//	        mov esi, 02001
//	        syscall
//	        mov edi, eax
//	        push r15 ; push r14             ; arguments
//	        push r13 ; push r12             ; path
//	        push 8   ; push rbx             ; argc
//	        mov rsi, rsp
//	        mov edx, 3
//	        mov eax, 20                     ; writev
//	        syscall
//	        xor edi, edi
//	        test r15b, 3
//	        sete dil
//	        mov eax, 231                    ; exit_group
//	        syscall
//	size:   xor eax, eax                    ; strlen(rdi)+1
//	1:      inc eax
//	        cmp byte ptr [rdi+rax-1], 0
//	        jne 1b
//	        ret
//	log:
func stub(log string) []byte {
	code, err := hex.DecodeString("4889e3488b0b488d54cb10488b024883c2084885c075f4488b024c8b6208" +
		"4883c2104883f81f75ef4c89e7e8590000004989c54c8b7308488b3ccbe8" +
		"490000004801f84c29f04989c7b802000000488d3d40000000be01040000" +
		"0f0589c741574156415541546a08534889e6ba03000000b8140000000f05" +
		"31ff41f6c703400f94c7b8e70000000f0531c0ffc0807c07ff0075f7c3")
	if err != nil {
		panic(err)
	}
	const base, headers = 0x400000, 64 + 56
	size := uint64(headers + len(code) + len(log) + 1)
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, field := range []any{
		// e_type EXEC, e_machine X86_64, e_version, e_entry, e_phoff, e_shoff, e_flags
		uint16(2), uint16(62), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0),
		// e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
		uint16(64), uint16(56), uint16(1), uint16(64), uint16(0), uint16(0),
		// PT_LOAD, R|X, offset, vaddr, paddr, filesz, memsz, align
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(0x1000),
	} {
		binary.Write(&b, binary.LittleEndian, field)
	}
	b.Write(code)
	b.WriteString(log + "\x00")
	return b.Bytes()
}

// start is one program that a shell started. A record without arguments is a
// mark of the driver instead.
type start struct {
	path string // by which it was executed; of a mark, its text
	argv []string
}

func (s start) String() string { return fmt.Sprintf("%q as %s", s.argv, s.path) }

// errLog says that what a batch of texts started is not known.
var errLog = errors.New("a text wrote to the log")

// readLog splits a log into its records. What is cut off at the end is dropped.
func readLog(log []byte) (list []start, err error) {
	for len(log) >= 8 {
		n := binary.LittleEndian.Uint64(log)
		if n > 10000 {
			return nil, errLog
		}
		fields := bytes.SplitN(log[8:], []byte{0}, int(n)+2)
		if len(fields) < int(n)+2 {
			break
		}
		s := start{path: string(fields[0])}
		for _, a := range fields[1 : n+1] {
			s.argv = append(s.argv, string(a))
		}
		list, log = append(list, s), fields[n+1]
	}
	return list, nil
}
