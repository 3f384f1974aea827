#include "textflag.h"

TEXT procPidRusage<>(SB),NOSPLIT,$0-0
	JMP	libc_proc_pid_rusage(SB)
GLOBL	·procPidRusageAddr(SB), RODATA, $8
DATA	·procPidRusageAddr(SB)/8, $procPidRusage<>(SB)

TEXT confstr<>(SB),NOSPLIT,$0-0
	JMP	libc_confstr(SB)
GLOBL	·confstrAddr(SB), RODATA, $8
DATA	·confstrAddr(SB)/8, $confstr<>(SB)
