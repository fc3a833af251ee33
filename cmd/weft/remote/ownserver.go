package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/weftrun/weft/host/server"
)

// OwnServer is a server in a process of its own, that lives as long as a command.
type OwnServer struct {
	URL string
	cmd *exec.Cmd
	out io.ReadCloser
}

// servesOn is what a server prints when it answers.
var servesOn = regexp.MustCompile(`serves on (http://\S+), data in`)

// StartOwn starts this program as a server on a directory, with the defaults of all
// settings, whatever the environment says, and waits until it answers. What it logs
// as a warning or worse goes to errs. flags are further ones of 'weft serve', and those
// that are to be others.
func StartOwn(ctx context.Context, data string, errs io.Writer, flags ...string) (*OwnServer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start it as a server: %w", err)
	}
	s := &OwnServer{cmd: exec.Command(program, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", data, "--log-level", "warn"}, flags...)...)}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "WEFT_") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	s.cmd.Stderr = errs
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.out).ReadString('\n') // all that it prints
		ready <- line
	}()
	select {
	case line := <-ready:
		if match := servesOn.FindStringSubmatch(line); match != nil {
			s.URL = match[1]
			return s, nil
		}
		s.Stop()
		return nil, errors.New("the server did not start")
	case <-ctx.Done():
		s.Stop()
		return nil, ctx.Err()
	}
}

// Stop ends the server as Ctrl-C would, and waits for that.
func (s *OwnServer) Stop() {
	if s.cmd.Process.Signal(os.Interrupt) != nil {
		_ = s.cmd.Process.Kill() // where there are no signals, or it has ended
	}
	late := time.AfterFunc(2*server.StopWithin, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_ = s.cmd.Wait() // what it measured stands, however it ends
}
