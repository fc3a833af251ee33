package record

import (
	"reflect"
	"testing"
)

// An encoded row is the same row again, and no bytes make the decoder fail otherwise than
// by an error.
func FuzzRow(f *testing.F) {
	row := []any{nil, int64(-1), int64(1 << 62), true, false, "", "a\x00\xff", []byte{}, []byte{0, 1}}
	f.Add(AppendRow(nil, row))
	f.Add([]byte{tagString, 0, 0, 0, 0, 0, 0, 0, 9, 'x'})
	if back, err := ParseRow(AppendRow(nil, row)); err != nil || !reflect.DeepEqual(back, row) {
		f.Errorf("ParseRow = %#v, %v", back, err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		row, err := ParseRow(data)
		if err != nil {
			return
		}
		if again := AppendRow(nil, row); string(again) != string(data) {
			t.Errorf("%q is encoded as %q", data, again)
		}
	})
}
