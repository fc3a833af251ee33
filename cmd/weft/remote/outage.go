package remote

import (
	"errors"
	"time"

	"github.com/weftrun/weft/host"
)

// RetryAfter is how long the server asks to wait, 0 if it does not.
func RetryAfter(err error) time.Duration {
	var known *host.Error
	if errors.As(err, &known) {
		return known.RetryAfter
	}
	return 0
}

// Outage is the time during which a server cannot be reached.
type Outage struct{ since time.Time }

// End records that the server answers.
func (o *Outage) End() { o.since = time.Time{} }

// longestOutage is how long a command retries a server that it cannot reach.
const longestOutage = time.Minute

// TooLong reports whether the outage has lasted longer than longestOutage.
func (o *Outage) TooLong(now time.Time) bool {
	if o.since.IsZero() {
		o.since = now
	}
	return now.Sub(o.since) > longestOutage
}
