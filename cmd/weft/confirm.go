package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// yesFlag adds the flag that answers a command's question beforehand.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
	cmd.Flags().Lookup("yes").Annotations = map[string][]string{commandLineOnly: nil}
}

// errDeclined is the answer "no" to a question.
var errDeclined = errors.New("nothing was changed")

// asks reports whether somebody at a terminal can answer a question.
func (r *remote) asks() bool {
	in, ok := r.in.(*os.File)
	return ok && terminalOf(in).cols > 0
}

// confirm asks whether to go on, if somebody can answer and yes does not say so.
//
// # Errors
//
// [errDeclined]: the answer is not "y" or "yes". The context's error.
func (r *remote) confirm(ctx context.Context, yes bool, question string, args ...any) error {
	if yes || !r.asks() {
		return nil
	}
	_, _ = fmt.Fprintf(r.errs, question+" [y/N] ", args...)
	line, err := readLine(ctx, r.in)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	if errors.Is(err, io.EOF) {
		r.note("") // the question's line has no end yet
	}
	return errDeclined
}

// readLine reads a line. A read of a terminal cannot be interrupted: when ctx ends, the
// read is left behind, and ends with the program.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type entered struct {
		line string
		err  error
	}
	read := make(chan entered, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		read <- entered{line, err}
	}()
	select {
	case e := <-read:
		return e.line, e.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
