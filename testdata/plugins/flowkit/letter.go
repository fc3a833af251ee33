//go:build !other

package main

// letter is what the function a adds.
const letter = "a"
