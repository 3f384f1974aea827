#include "textflag.h"

TEXT procPidRusage<>(SB),NOSPLIT,$0-0
	JMP	libc_proc_pid_rusage(SB)
GLOBL	·procPidRusageAddr(SB), RODATA, $8
DATA	·procPidRusageAddr(SB)/8, $procPidRusage<>(SB)
