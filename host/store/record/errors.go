package record

import (
	"fmt"

	"github.com/weftrun/weft/host"
)

// Refusal is the error for a batch that contradicts itself or the stored data. Nothing of
// the batch was written, and a repetition would be refused too.
type Refusal struct{ reason string }

func (e *Refusal) Error() string { return "batch refused: " + e.reason }

// Refuse makes a [Refusal]. The arguments are those of [fmt.Sprintf].
func Refuse(format string, args ...any) error {
	return &Refusal{reason: fmt.Sprintf(format, args...)}
}

// NotCommitted marks an error of a transaction that was certainly not written.
func NotCommitted(err error) error {
	return fmt.Errorf("%w: %w", host.ErrNotCommitted, err)
}
