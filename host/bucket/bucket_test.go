package bucket_test

import (
	"testing"
	"time"

	"github.com/weftrun/weft/host/bucket"
)

var start = time.Unix(1_800_000_000, 0)

func TestTake(t *testing.T) {
	rate := bucket.Rate{Size: 4, Span: 2 * time.Second}
	var b bucket.Bucket
	for i, tt := range []struct {
		at, want time.Duration
	}{
		{0, 0}, {0, 0}, {0, 0}, {0, 0}, // it was full
		{0, 500 * time.Millisecond}, {250 * time.Millisecond, 250 * time.Millisecond}, {500 * time.Millisecond, 0},
		{time.Hour, 0}, {time.Hour, 0}, {time.Hour, 0}, {time.Hour, 0}, {time.Hour, 500 * time.Millisecond},
		{time.Hour - time.Millisecond, 500 * time.Millisecond}, {time.Hour, 500 * time.Millisecond}, // the same token is not counted twice
		{0, 500 * time.Millisecond}, {500 * time.Millisecond, 0}, // the clock was set back
	} {
		if got := b.Take(start.Add(tt.at), rate); got != tt.want {
			t.Errorf("%d: at %s it waits for %s, want %s", i, tt.at, got, tt.want)
		}
	}
}

func TestDebt(t *testing.T) {
	rate := bucket.Rate{Size: 10, Span: time.Minute}
	var b bucket.Bucket
	b.Fill(start, rate)
	b.Left -= 15
	if got := b.Until(5, rate); got != time.Minute {
		t.Errorf("5 below 0, it holds 5 after %s", got)
	}
	if b.Fill(start.Add(30*time.Second), rate); b.Left != 0 {
		t.Errorf("after half a minute it holds %v", b.Left)
	}
}
