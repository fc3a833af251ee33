//go:build other

package main

// letter is what the function a adds in another plugin.
const letter = "OTHER"
