package sse_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weftrun/weft/host/sse"
)

func TestField(t *testing.T) {
	const most = 40_000
	long := strings.Repeat("x", most-5)
	broken := errors.New("the network is gone")
	for _, tt := range []struct {
		in   io.Reader
		want string
		end  error
	}{
		{strings.NewReader(""), "", io.EOF},
		{strings.NewReader("id: 7\ndata: {}\n\n"), "id=7 data={} .", io.EOF},
		{strings.NewReader("id: 7\r\ndata:  a:b \r\n\r\n: note\n:\nretry\n"), "id=7 data= a:b  . =note = retry=", io.EOF},
		{strings.NewReader("data: half"), "data=half", io.ErrUnexpectedEOF},
		{strings.NewReader("data:" + long[:most-6] + "\n"), "data=" + long[:most-6], io.EOF},
		{strings.NewReader("data:" + long + "\n"), "", sse.ErrTooLong},
		{strings.NewReader("data:" + long + long), "", sse.ErrTooLong},
		{io.MultiReader(strings.NewReader("data: 1\ndata: ha"), iotest.ErrReader(broken)), "data=1", broken},
	} {
		r := sse.NewReader(tt.in, most)
		var got []string
		var end error
		for end == nil {
			var name, value []byte
			name, value, end = r.Field()
			switch {
			case name != nil:
				got = append(got, fmt.Sprintf("%s=%s", name, value))
			case end == nil:
				got = append(got, ".")
			}
		}
		if strings.Join(got, " ") != tt.want || !errors.Is(end, tt.end) {
			t.Errorf("%.100q, then %v; want %.100q, then %v", got, end, tt.want, tt.end)
		}
	}
}
