#include "go_asm.h"
#include "textflag.h"

// Go code runs here without a runtime: g holds what has the stack's limits, all
// that a function looks at (Go's internal ABI).

// The kernel enters here when the linker was told to (-E). argc, argv and the
// rest lie on the stack, which must reach the runtime as it is.
TEXT ·entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVD	RSP, R0
	SUB	$48, RSP              // 8(RSP) is the callee's, for its argument
	MOVD	R0, 32(RSP)
	MOVD	$·noG(SB), g
	MOVD	·entered(SB), R26
	MOVD	(R26), R1
	CALL	(R1)
	MOVD	32(RSP), R1
	MOVD	R1, RSP
	JMP	_rt0_arm64_linux(SB)

// func bare(): goes on in serve, without the runtime.
TEXT ·bare(SB),NOSPLIT|NOFRAME,$0-0
	MOVD	$·stack+const_stackSize(SB), R1
	MOVD	R1, RSP
	MOVD	$·noG(SB), g
	MOVD	·served(SB), R26
	MOVD	(R26), R1
	CALL	(R1)
	BRK
