package quota

import (
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// Breached returns the error of a request that a quota refuses. retry is 0 if it is
// unknown when the request would be accepted.
func Breached(q limit.Quota, value, used int64, retry time.Duration) *host.Error {
	return &host.Error{
		Code:       host.CodeLimitExceeded,
		Message:    q.Reached(value),
		RetryAfter: retry,
		Breach:     &limit.Breach{Limit: q.String(), Value: value, Used: used, Size: q.OfSize()},
	}
}
