package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
)

// scanner parses the language of the ticks.
type scanner struct {
	t    reporter
	rest string
}

func (in *scanner) skip() { in.rest = strings.TrimLeft(in.rest, " ") }

// word reads up to a space.
func (in *scanner) word() string {
	in.skip()
	word, rest, _ := strings.Cut(in.rest, " ")
	in.rest = rest
	return word
}

func (in *scanner) uint() uint64 {
	word := in.word()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		in.t.Fatal(err)
	}
	return n
}

func (in *scanner) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		in.t.Fatal(err)
	}
	return d
}

// option removes KEY=VALUE from the rest of the line.
func (in *scanner) option(key, absent string) string {
	words := strings.Fields(in.rest)
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			in.rest = strings.Join(append(words[:i:i], words[i+1:]...), " ")
			return value
		}
	}
	return absent
}

func (in *scanner) uintOption(key string, absent uint64) uint64 {
	n, err := strconv.ParseUint(in.option(key, strconv.FormatUint(absent, 10)), 10, 64)
	if err != nil {
		in.t.Fatal(err)
	}
	return n
}

// json reads one JSON value.
func (in *scanner) json() abi.Raw {
	in.skip()
	d := json.NewDecoder(strings.NewReader(in.rest))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		in.t.Fatalf("%v in %q", err, in.rest)
	}
	in.rest = in.rest[d.InputOffset():]
	out, err := abi.FromJSON(raw)
	if err != nil {
		in.t.Fatal(err)
	}
	return out
}

func (in *scanner) event() abi.Event {
	in.skip()
	n := strings.IndexAny(in.rest, " {#]")
	if n < 0 {
		n = len(in.rest)
	}
	ev := abi.Event{Type: in.rest[:n]}
	in.rest = in.rest[n:]
	if strings.HasPrefix(in.rest, "#") {
		n := len(in.rest) - len(strings.TrimLeft(in.rest[1:], "0123456789"))
		id, err := strconv.ParseUint(in.rest[1:n], 10, 64)
		if err != nil {
			in.t.Fatal(err)
		}
		ev.ID, in.rest = id, in.rest[n:]
	}
	if strings.HasPrefix(in.rest, "{") {
		ev.Body = in.json()
	}
	return ev
}

func (in *scanner) output() abi.StepOutput {
	in.skip()
	switch {
	case strings.HasPrefix(in.rest, "null"):
		in.word()
		return abi.StepOutput{}
	case strings.HasPrefix(in.rest, "error "):
		in.word()
		err := &abi.Error{Code: in.word()}
		message, _ := abi.DecodeValue(in.json())
		err.Message = fmt.Sprint(message)
		if strings.HasPrefix(strings.TrimLeft(in.rest, " "), "final") {
			in.word()
			final := false
			err.Retryable = &final
		}
		return abi.StepOutput{Err: err}
	case strings.HasPrefix(in.rest, "["):
		out := abi.StepOutput{List: true}
		for in.rest = in.rest[1:]; ; {
			in.skip()
			if rest, end := strings.CutPrefix(in.rest, "]"); end {
				in.rest = rest
				return out
			}
			out.Events = append(out.Events, in.event())
		}
	}
	return abi.StepOutput{Events: []abi.Event{in.event()}}
}

// answer parses the answer of a resource to an invocation.
func (in *scanner) answer() Tick {
	t := ResourceAnswered{Invocation: in.uint(), Attempt: in.uintOption("attempt", 1), N: in.uintOption("n", 1)}
	if in.skip(); strings.HasPrefix(in.rest, "error ") {
		t.Err = in.output().Err
	} else {
		t.Value = in.json()
	}
	return t
}

func (in *scanner) edits() []abi.Edit {
	var out []abi.Edit
	for in.skip(); in.rest != ""; in.skip() {
		if rest, ok := strings.CutPrefix(in.rest, ";"); ok {
			in.rest = rest
			continue
		}
		e := abi.Edit{Op: abi.Op(in.word())}
		if e.Op != abi.OpClear {
			e.Path = in.word()
		}
		if e.Op != abi.OpClear && e.Op != abi.OpDelete {
			e.Value = in.json()
		}
		out = append(out, e)
	}
	return out
}
