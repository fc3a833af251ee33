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

// OwnServer is a server in its own process that lives as long as a command.
type OwnServer struct {
	URL string
	cmd *exec.Cmd
	out io.ReadCloser
}

// servesOn matches the line that a server prints when it answers requests.
var servesOn = regexp.MustCompile(`serves on (http://\S+), data in`)

// StartOwn starts this program as a server on a directory, with the default of every
// setting regardless of the environment, and waits until it answers. Its warnings and
// errors go to errs. flags are additional flags of 'weft serve', which override the
// defaults.
func StartOwn(ctx context.Context, data string, errs io.Writer, flags ...string) (*OwnServer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start it as a server: %w", err)
	}
	s := &OwnServer{cmd: exec.CommandContext(context.Background(), program, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", data, "--log-level", "warn"}, flags...)...)}
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
		line, _ := bufio.NewReader(s.out).ReadString('\n') // the only line that it prints
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

// Stop ends the server as Ctrl-C would, and waits until it has ended.
func (s *OwnServer) Stop() {
	if s.cmd.Process.Signal(os.Interrupt) != nil {
		_ = s.cmd.Process.Kill() // the system has no signals, or the server has ended
	}
	late := time.AfterFunc(2*server.StopWithin, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_ = s.cmd.Wait() // the results are valid however it ends
}
