//go:build !wasm

package main

// In a native build there is no memory to look at: the guest is for Wasm.

func memoryPages() uint32 { return 0 }

func growMemory(uint32) int32 { return -1 }

func unreachable() { panic("unreachable") }
