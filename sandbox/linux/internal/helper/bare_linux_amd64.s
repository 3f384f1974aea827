#include "go_asm.h"
#include "textflag.h"

// Go code runs here without a runtime: R14 holds g, whose stack limits are all
// that a function looks at, and X15 is zero (Go's internal ABI).

// The kernel enters here when the linker was told to (-E). argc, argv and the
// rest lie on the stack, which must reach the runtime as it is.
TEXT ·entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVQ	SP, AX
	SUBQ	$32, SP               // 0(SP) is the callee's, for its argument
	ANDQ	$~15, SP
	MOVQ	AX, 8(SP)
	LEAQ	·noG(SB), R14
	XORPS	X15, X15
	MOVQ	·entered(SB), DX
	MOVQ	(DX), CX
	CALL	CX
	MOVQ	8(SP), SP
	JMP	_rt0_amd64_linux(SB)

// func bare(): goes on in serve, without the runtime.
TEXT ·bare(SB),NOSPLIT|NOFRAME,$0-0
	LEAQ	·stack+const_stackSize(SB), SP
	LEAQ	·noG(SB), R14
	XORPS	X15, X15
	MOVQ	·served(SB), DX
	MOVQ	(DX), CX
	CALL	CX
	INT	$3
