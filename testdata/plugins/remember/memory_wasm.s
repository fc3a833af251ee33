//go:build wasm && !tinygo

#include "textflag.h"

// func memoryPages() uint32
TEXT ·memoryPages(SB), NOSPLIT, $0-4
	Get SP
	CurrentMemory
	I32Store ret+0(FP)
	RET

// func growMemory(pages uint32) int32
TEXT ·growMemory(SB), NOSPLIT, $0-12
	Get SP
	I32Load pages+0(FP)
	GrowMemory
	I32Store ret+8(FP)
	RET

// func unreachable()
TEXT ·unreachable(SB), NOSPLIT, $0-0
	UNDEF
