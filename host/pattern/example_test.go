package pattern_test

import (
	"fmt"
	"strings"

	"github.com/weftrun/weft/host/pattern"
	"github.com/weftrun/weft/host/work"
)

func ExamplePattern_Match() {
	p, err := pattern.Compile(`^[a-z]+-[0-9]{4}$`, pattern.Most{Bytes: 100, States: 500})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"order-2026", "order-26"} {
		matched, _ := p.Match(nil, text)
		fmt.Println(text, matched)
	}
	// Output:
	// order-2026 true
	// order-26 false
}

// A pattern that needs many steps for each letter ends with its meter.
func ExamplePattern_Match_meter() {
	p, err := pattern.Compile(`(a?){100}b`, pattern.Most{Bytes: 100, States: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = p.Match(work.New(1_000_000, nil), strings.Repeat("a", 100_000))
	fmt.Println(err)
	// Output: the work takes more than 1000000 units
}
