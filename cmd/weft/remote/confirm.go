package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weftrun/weft/cmd/weft/screen"
)

// errDeclined is the answer "no" to a question.
var errDeclined = errors.New("nothing was changed")

// Asks reports whether a user at a terminal can answer a question.
func (r *Conn) Asks() bool {
	in, ok := r.In.(*os.File)
	return ok && screen.Of(in).Cols > 0
}

// Confirm asks whether to continue, if a user can answer and yes is false.
//
// # Errors
//
// [errDeclined]: the answer is not "y" or "yes". The context's error.
func (r *Conn) Confirm(ctx context.Context, yes bool, question string, args ...any) error {
	if yes || !r.Asks() {
		return nil
	}
	_, _ = fmt.Fprintf(r.Errs, question+" [y/N] ", args...)
	line, err := screen.ReadLine(ctx, r.In)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	if errors.Is(err, io.EOF) {
		r.Note("") // the question's line has no line end yet
	}
	return errDeclined
}
