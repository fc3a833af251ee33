package script

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// LineMap makes the engine's map of a source map: from places in the bundle to places in
// the author's files. name gives the name of a source as messages show it, and whether
// the source belongs to the SDK; traces leave out frames of the SDK. sdk-guest/js/engine
// describes the format.
//
// # Errors
//
// An error if the source map is broken.
func LineMap(sourceMap []byte, name func(source string) (shown string, sdk bool)) ([]byte, error) {
	var m struct {
		Version  int
		Sources  []string
		Mappings string
	}
	if err := json.Unmarshal(sourceMap, &m); err != nil {
		return nil, fmt.Errorf("read the source map: %w", err)
	}
	if m.Version != 3 {
		return nil, fmt.Errorf("read the source map: version %d is not 3", m.Version)
	}
	out := binary.AppendUvarint([]byte{1}, uint64(len(m.Sources)))
	own := make([]bool, len(m.Sources)+1) // by the source's number, which counts from 1
	for i, source := range m.Sources {
		shown, sdk := name(source)
		own[i+1] = sdk
		flags := byte(0)
		if sdk {
			flags = 1
		}
		out = append(binary.AppendUvarint(append(out, flags), uint64(len(shown))), shown...)
	}
	segments, count, err := lineSegments(m.Mappings, own)
	if err != nil {
		return nil, fmt.Errorf("read the source map: %w", err)
	}
	return append(binary.AppendUvarint(out, uint64(count)), segments...), nil
}

// place is a segment of a source map. source counts from 1; 0 is no source.
type place struct{ line, column, source, sourceLine, sourceColumn int64 }

// lineSegments converts the mappings of a source map. Of the SDK's files, whose places are
// not shown, one segment in a line of the bundle is enough.
func lineSegments(mappings string, own []bool) (out []byte, count int, err error) {
	var last place // the last segment written
	var m mapping
	for line, text := range strings.Split(mappings, ";") {
		m.column = 0
		for field := range strings.SplitSeq(text, ",") {
			if field == "" {
				continue
			}
			next, err := m.read(field, int64(line))
			if err != nil {
				return nil, 0, err
			}
			if next.source < 0 || next.source >= int64(len(own)) || next.column < 0 || next.sourceLine < 0 || next.sourceColumn < 0 {
				return nil, 0, fmt.Errorf("line %d has a segment outside of the sources", line+1)
			}
			if count > 0 && own[next.source] && next.source == last.source && next.line == last.line {
				continue
			}
			out = appendPlace(out, last, next)
			if next.source == 0 {
				next.sourceLine, next.sourceColumn = last.sourceLine, last.sourceColumn
			}
			last = next
			count++
		}
	}
	return out, count, nil
}

func appendPlace(out []byte, last, next place) []byte {
	column := next.column
	if next.line == last.line {
		column -= last.column
	}
	out = binary.AppendUvarint(out, uint64(next.line-last.line)) // lines grow
	out = binary.AppendUvarint(out, uint64(column))              // columns grow within a line
	out = binary.AppendVarint(out, next.source-last.source)
	if next.source != 0 {
		out = binary.AppendVarint(out, next.sourceLine-last.sourceLine)
		out = binary.AppendVarint(out, next.sourceColumn-last.sourceColumn)
	}
	return out
}

// mapping is the state of a reader of mappings: the sums of the deltas.
type mapping struct{ column, source, sourceLine, sourceColumn int64 }

var errMapping = errors.New("a mapping is broken")

// read reads one segment of a line.
func (m *mapping) read(field string, line int64) (place, error) {
	var deltas []int64
	for field != "" {
		delta, rest, err := vlq(field)
		if err != nil {
			return place{}, err
		}
		if deltas = append(deltas, delta); len(deltas) > 5 {
			return place{}, errMapping
		}
		field = rest
	}
	if deltas[0] < 0 {
		return place{}, errMapping // esbuild writes segments in the order of their columns
	}
	m.column += deltas[0]
	switch len(deltas) {
	case 1:
		return place{line: line, column: m.column}, nil
	case 4, 5: // the fifth is a name
		m.source += deltas[1]
		m.sourceLine += deltas[2]
		m.sourceColumn += deltas[3]
		return place{line, m.column, m.source + 1, m.sourceLine, m.sourceColumn}, nil
	}
	return place{}, errMapping
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// vlq reads a number of a mapping.
func vlq(text string) (value int64, rest string, err error) {
	sum, shift := int64(0), 0
	for i := 0; i < len(text) && shift < 35; i++ {
		digit := strings.IndexByte(base64Digits, text[i])
		if digit < 0 {
			return 0, "", errMapping
		}
		sum |= int64(digit&31) << shift
		shift += 5
		if digit&32 != 0 {
			continue
		}
		if sum&1 != 0 {
			return -(sum >> 1), text[i+1:], nil
		}
		return sum >> 1, text[i+1:], nil
	}
	return 0, "", errMapping
}
