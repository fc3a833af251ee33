//go:build !tinygo

package main

// memoryPages is the instruction memory.size.
func memoryPages() uint32

// growMemory is the instruction memory.grow.
func growMemory(pages uint32) int32

// unreachable is the instruction of that name.
func unreachable()
