//go:build !echo

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// chance is a xorshift generator, so that all compilers work on the same data.
type chance uint64

func (c *chance) next() uint64 {
	x := uint64(*c)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*c = chance(x)
	return x
}

// loadsum adds up an array: a loop of so few instructions that anything added
// to it shows.
func loadsum(rounds int) uint64 {
	sum := uint64(0)
	for range rounds {
		for _, v := range words {
			sum += uint64(v)
		}
	}
	return sum
}

var words []uint32

func makeWords() []uint32 {
	c := chance(1)
	list := make([]uint32, 16384)
	for i := range list {
		list[i] = uint32(c.next())
	}
	return list
}

const side = 48

var (
	left, right *[side * side]float64
	product     [side * side]float64
)

func newMatrix(seed chance) *[side * side]float64 {
	m := new([side * side]float64)
	for i := range m {
		m[i] = float64(seed.next()%1000) / 8
	}
	return m
}

func matrix(rounds int) uint64 {
	for range rounds {
		for i := range side {
			for j := range side {
				sum := 0.0
				for k := range side {
					sum += left[i*side+k] * right[k*side+j]
				}
				product[i*side+j] = sum
			}
		}
		left[0]++
	}
	left[0] -= float64(rounds)
	return math.Float64bits(product[0]) ^ math.Float64bits(product[side*side-1])
}

var unsorted = make([]uint32, 2048)

func sorted(rounds int) uint64 {
	sum := uint64(0)
	c := chance(7)
	for range rounds {
		for i := range unsorted {
			unsorted[i] = uint32(c.next())
		}
		slices.Sort(unsorted)
		for i, v := range unsorted {
			sum += uint64(i) * uint64(v)
		}
	}
	return sum
}

var block []byte

func makeBlock() []byte {
	c := chance(11)
	list := make([]byte, 4096)
	for i := range list {
		list[i] = byte(c.next())
	}
	return list
}

func digest(rounds int) uint64 {
	sum := uint64(0)
	for i := range rounds {
		block[0] = byte(i)
		d := sha256.Sum256(block)
		sum += binary.LittleEndian.Uint64(d[:])
	}
	block[0] = 0
	return sum
}

var (
	pattern = regexp.MustCompile(`[a-z]+@[a-z]+\.org`)
	letters []string
)

// makeLetters is text with some addresses in it, one piece a line.
func makeLetters() []string {
	c := chance(13)
	lines := make([]string, 64)
	for i := range lines {
		var line []byte
		for range 4 {
			for range 3 + c.next()%6 {
				line = append(line, byte('a'+c.next()%26))
			}
			line = append(line, "@ .,"[c.next()%4])
		}
		if i%4 == 0 {
			line = append(line, "someone@example.org"...)
		}
		lines[i] = string(line)
	}
	return lines
}

func matches(rounds int) uint64 {
	found := uint64(0)
	for range rounds {
		for i, line := range letters {
			if pattern.MatchString(line) {
				found += uint64(i)
			}
		}
	}
	return found
}

var counts = make(map[uint64]uint64, 4096)

func hashmap(rounds int) uint64 {
	sum := uint64(0)
	for range rounds {
		clear(counts)
		c := chance(17)
		for range 4096 {
			counts[c.next()%2048]++
		}
		for k, v := range counts {
			sum += k * v
		}
	}
	clear(counts)
	return sum
}

var lines = make([]byte, 0, 32<<10)

// text builds a table of numbers, and looks at what it has built.
func text(rounds int) uint64 {
	sum := uint64(0)
	for round := range rounds {
		lines = lines[:0]
		c := chance(19 + round)
		for i := range 256 {
			lines = append(lines, "row "...)
			lines = strconv.AppendInt(lines, int64(i), 10)
			lines = append(lines, ": "...)
			lines = strconv.AppendUint(lines, c.next(), 10)
			lines = append(lines, '\n')
		}
		for i, letter := range lines {
			if letter >= 'a' && letter <= 'z' {
				lines[i] -= 'a' - 'A'
			}
			sum = sum*31 + uint64(lines[i])
		}
	}
	return sum
}
