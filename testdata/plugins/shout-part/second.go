//go:build second

package main

const version = " (second)"
