//go:build !named

package main

const workflow = "scenes"
