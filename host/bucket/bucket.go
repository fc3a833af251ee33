// Package bucket counts what a rate allows: token buckets that are given the
// time. It must not know what is counted.
package bucket

import "time"

// Rate is how much a bucket holds, and how long it takes to fill an empty one.
// Span must be above 0.
type Rate struct {
	Size float64
	Span time.Duration
}

// Bucket holds tokens. The zero value is full at its first use. It is not safe
// for concurrent use.
type Bucket struct {
	// Left is what the bucket holds, as of the last Fill. It may be below 0: a
	// debt that later tokens pay.
	Left   float64
	filled time.Time // zero: never
}

// backwards is how far the clock may be behind the last Fill without being set
// back: callers read the clock before they take their lock.
const backwards = time.Second

// Fill adds the tokens since the last Fill. A clock that was set back neither
// adds nor takes any.
func (b *Bucket) Fill(now time.Time, r Rate) {
	passed := now.Sub(b.filled)
	switch {
	case b.filled.IsZero():
		b.Left, b.filled = r.Size, now
	case passed > 0:
		b.Left, b.filled = min(b.Left+r.Size*float64(passed)/float64(r.Span), r.Size), now
	case passed < -backwards:
		b.filled = now
	}
}

// Take fills the bucket and takes one token, or returns how long it takes until
// there is one: above 0.
func (b *Bucket) Take(now time.Time, r Rate) (wait time.Duration) {
	if b.Fill(now, r); b.Left >= 1 {
		b.Left--
		return 0
	}
	return max(b.Until(1, r), 1)
}

// Until returns how long after the last Fill the bucket holds n tokens; 0 or less
// if it does.
func (b *Bucket) Until(n float64, r Rate) time.Duration {
	return time.Duration((n - b.Left) / r.Size * float64(r.Span))
}
