// Package bucket implements token buckets with an explicit clock. It must not depend on
// what is counted.
package bucket

import "time"

// Rate is the capacity of a bucket, and how long it takes to fill an empty bucket. Span
// must be positive.
type Rate struct {
	Size float64
	Span time.Duration
}

// Bucket holds tokens. The zero value is full at its first use. A Bucket is not safe for
// concurrent use.
type Bucket struct {
	// Left is the number of tokens as of the last Fill. A negative number is a debt that
	// later tokens pay.
	Left   float64
	filled time.Time // zero: never
}

// backwards is how far behind the last Fill a clock may be without counting as set back:
// callers read the clock before they take their lock.
const backwards = time.Second

// Fill adds the tokens earned since the last Fill. If the clock was set back, the tokens
// stay unchanged.
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

// Take fills the bucket and takes one token, or returns how long it takes until a token
// is available.
func (b *Bucket) Take(now time.Time, r Rate) (wait time.Duration) {
	if b.Fill(now, r); b.Left >= 1 {
		b.Left--
		return 0
	}
	return max(b.Until(1, r), 1)
}

// Until returns how long after the last Fill the bucket holds n tokens. The result is 0
// or negative if it holds them already.
func (b *Bucket) Until(n float64, r Rate) time.Duration {
	return time.Duration((n - b.Left) / r.Size * float64(r.Span))
}
