//go:build !unix

package main

// mostConnections is how many connections may be open at a time; 0: any number.
func mostConnections() int { return 0 }
