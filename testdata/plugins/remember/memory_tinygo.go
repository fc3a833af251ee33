//go:build tinygo

package main

//export llvm.wasm.memory.size.i32
func sizeOf(memory int32) int32

//export llvm.wasm.memory.grow.i32
func grow(memory, pages int32) int32

//export llvm.trap
func unreachable()

// memoryPages is the instruction memory.size.
func memoryPages() uint32 { return uint32(sizeOf(0)) }

// growMemory is the instruction memory.grow.
func growMemory(pages uint32) int32 { return grow(0, int32(pages)) }
