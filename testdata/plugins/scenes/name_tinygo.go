//go:build named

package main

// workflow has a name of its own, so that it runs beside that of standard Go.
const workflow = "scenes-tinygo"
