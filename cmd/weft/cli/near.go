package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// mostNear is the largest number of suggested names.
const mostNear = 3

// near returns the names that a mistyped name may mean, most likely first.
func near(name string, known []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var list []candidate
	want := strings.ToLower(name)
	for _, k := range known {
		have := strings.ToLower(k)
		d := distance(want, have)
		if d > 1+len(want)/4 || d >= len(want) {
			if len(want) < 3 || !strings.Contains(have, want) {
				continue
			}
			d = len(have) // contains the name: ranks after the similar names
		}
		list = append(list, candidate{k, d})
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range list[:min(len(list), mostNear)] {
		names = append(names, c.name)
	}
	return names
}

// Meant returns the end of a sentence about an unknown name: a suggestion, or where the
// names are listed.
func Meant(name string, known []string, otherwise string) string {
	if names := near(name, known); len(names) > 0 {
		return "did you mean " + alternatives(names) + "?"
	}
	return otherwise
}

// distance counts the characters to insert, delete, replace or swap with their neighbour
// to turn one text into the other.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			same := 0
			if x[i-1] != y[j-1] {
				same = 1
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}

// alternatives lists names in words: "a", "b" or "c".
func alternatives(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
