package spectest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// value is an argument or an expected result of a script: a number of lanes,
// which is one for all types but v128.
type value struct {
	Type     string          `json:"type"`
	LaneType string          `json:"lane_type"`
	Value    json.RawMessage `json:"value"` // a string, or one for each lane; absent: any
}

// widths are the bits of each lane type.
var widths = map[string]int{
	"i8": 8, "i16": 16, "i32": 32, "i64": 64, "f32": 32, "f64": 64, "externref": 64, "funcref": 64,
}

// slots tells how many numbers the engine hands over for a value of that type.
func slots(valueType string) int {
	if valueType == "v128" {
		return 2
	}
	return 1
}

// lanes gives the value's lanes as written, and their type.
func (v value) lanes() (texts []string, laneType string, err error) {
	if v.Type == "v128" {
		return texts, v.LaneType, json.Unmarshal(v.Value, &texts)
	}
	texts = make([]string, 1)
	return texts, v.Type, json.Unmarshal(v.Value, &texts[0])
}

// args gives the value as the engine takes it.
func (v value) args() ([]uint64, error) {
	texts, laneType, err := v.lanes()
	if err != nil {
		return nil, err
	}
	bits := make([]uint64, slots(v.Type))
	width := widths[laneType]
	for i, text := range texts {
		n, err := laneBits(text, laneType)
		if err != nil {
			return nil, err
		}
		bits[i*width/64] |= n << (i * width % 64)
	}
	return bits, nil
}

// laneBits reads one lane. The engine takes a null reference for zero, so that
// the script's external reference n is the engine's n+1.
func laneBits(text, laneType string) (uint64, error) {
	if text == "null" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, widths[laneType])
	if laneType == "externref" {
		n++
	}
	return n, err
}

// matches tells whether the results begin with what the script expects.
func (v value) matches(results []uint64) error {
	if len(results) < slots(v.Type) {
		return fmt.Errorf("no result where %s is expected", v.Type)
	}
	if v.Value == nil {
		return nil
	}
	texts, laneType, err := v.lanes()
	if err != nil {
		return err
	}
	width := widths[laneType]
	for i, text := range texts {
		got := results[i*width/64] >> (i * width % 64)
		if width < 64 {
			got &= 1<<width - 1
		}
		if err := laneMatches(got, text, laneType); err != nil {
			return fmt.Errorf("%s lane %d: %w", v.Type, i, err)
		}
	}
	return nil
}

func laneMatches(got uint64, text, laneType string) error {
	ok := false
	switch text {
	case "nan:canonical":
		ok = isNaN(got, laneType, true)
	case "nan:arithmetic":
		ok = isNaN(got, laneType, false)
	default:
		want, err := laneBits(text, laneType)
		if err != nil {
			return err
		}
		ok = got == want
	}
	if !ok {
		return fmt.Errorf("%#x where %s is expected", got, text)
	}
	return nil
}

// isNaN tells whether the bits are an arithmetic NaN, or even a canonical one:
// all but the sign are those of the quiet NaN without a payload.
func isNaN(bits uint64, laneType string, canonical bool) bool {
	quiet, magnitude := uint64(0x7fc00000), uint64(1)<<31-1
	if laneType == "f64" {
		quiet, magnitude = 0x7ff8000000000000, 1<<63-1
	}
	if canonical {
		return bits&magnitude == quiet
	}
	return bits&quiet == quiet
}

// match holds results against all that a script expects.
func match(results []uint64, expected []value) error {
	for _, v := range expected {
		if err := v.matches(results); err != nil {
			return err
		}
		results = results[slots(v.Type):]
	}
	if len(results) > 0 {
		return fmt.Errorf("%d results more than expected", len(results))
	}
	return nil
}

func (v value) String() string {
	return v.Type + ":" + strings.ReplaceAll(string(v.Value), `"`, "")
}
