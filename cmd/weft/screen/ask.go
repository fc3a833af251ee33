package screen

import (
	"bufio"
	"context"
	"io"
	"os"
)

// ReadLine reads a line. A read from a terminal cannot be interrupted: when ctx ends, the
// read continues in the background, and ends with the program.
func ReadLine(ctx context.Context, in io.Reader) (string, error) {
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

// OnTerminal reports whether a user can answer.
func OnTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	_, _, ok = windowSize(f)
	return ok
}
