package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// remote is what a command that talks to a server works with.
type remote struct {
	*client.Client
	server string // its base URL
	reach  string // what a command line has to repeat to reach it
	tenant string // that --tenant names
	key    string // "": none
	json   bool   // answers are for programs
	last   *lastAnswer

	in        io.Reader
	out, errs io.Writer
	screen    terminal // what out is shown on
}

// clientCommand makes a command one that talks to a server: it gets the flags
// that all of these have, and runs with the connection.
func clientCommand(cmd *cobra.Command, run func(ctx context.Context, r *remote, args []string) error) *cobra.Command {
	var server, profile, tenant string
	var asJSON bool
	cmd.Flags().StringVar(&server, "server", defaultServer, "address of the server, a `URL` or HOST:PORT; without it, the server of the last 'weft login', or")
	cmd.Flags().StringVar(&profile, "profile", "", "`NAME` of a profile that 'weft login' has made")
	cmd.Flags().StringVar(&tenant, "tenant", "", "`NAME` of the tenant to act in (with the server's own admin key)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the API's answer as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("server") {
			server = ""
		}
		r, err := connect(cmd, server, profile, tenant)
		if err != nil {
			return err
		}
		defer r.Close()
		r.json = asJSON
		return r.explain(run(cmd.Context(), r, args))
	}
	return cmd
}

// defaultServer is the URL of a server with the default address.
const defaultServer = "http://" + defaultAddr

// connect prepares the connection; it does not call the server yet.
func connect(cmd *cobra.Command, server, profile, tenant string) (*remote, error) {
	to, err := aim(server, profile)
	if err != nil {
		return nil, err
	}
	last := &lastAnswer{next: http.DefaultTransport.(*http.Transport).Clone()}
	c, err := client.New(to.server, client.Options{HTTP: &http.Client{Transport: last}, Key: to.key, Tenant: tenant})
	if err != nil {
		return nil, usage("--server %q is not an address of a server, such as %s", to.server, defaultServer)
	}
	out := cmd.OutOrStdout()
	return &remote{
		Client: c, server: to.server, reach: to.reach, tenant: tenant, key: to.key, last: last,
		in: cmd.InOrStdin(), out: out, errs: cmd.ErrOrStderr(), screen: terminalOf(out),
	}, nil
}

// print writes to the standard output. What is asked for is worth an error if
// it cannot be written; notes (see note) are not.
func (r *remote) print(text string) error {
	_, err := io.WriteString(r.out, text)
	return err
}

// done says for people what was done, where the API's answer says nothing: with --json
// there is no answer to print. It gives nil, the end of a command.
func (r *remote) done(format string, args ...any) error {
	if !r.json {
		r.note(format, args...)
	}
	return nil
}

// note writes a line for people to the standard error.
func (r *remote) note(format string, args ...any) {
	_, _ = fmt.Fprintf(r.errs, format+"\n", args...)
}

// printJSON writes a JSON text: laid out on a terminal, else as it is.
func (r *remote) printJSON(text []byte) error {
	if r.screen.cols > 0 {
		return r.print(printableJSON(indented(text)) + "\n")
	}
	return r.print(string(bytes.TrimSpace(text)) + "\n")
}

// printAnswer writes the server's last answer as it came.
func (r *remote) printAnswer() error { return r.printJSON(r.last.body.Bytes()) }

// hint is a command that the user may want to enter next, for the same server.
func (r *remote) hint(args ...string) string {
	line := "weft " + strings.Join(args, " ") + r.reach
	if r.tenant != "" && !slices.Contains(args, "--tenant") {
		line += " --tenant " + r.tenant
	}
	return line
}

// explain words the errors that every command may meet.
func (r *remote) explain(err error) error {
	var known *host.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server listens at %s: start one with 'weft serve', or name another with --server", r.server)
	case host.CodeOf(err) == host.CodeUnauthenticated:
		if r.key == "" {
			return fmt.Errorf("%s asks for a key: 'weft login %s' keeps one, or put it into WEFT_KEY", r.server, r.server)
		}
		return fmt.Errorf("%s does not take the key that the command has sent: it is unknown, expired or revoked; 'weft login %s' keeps another, or put it into WEFT_KEY", r.server, r.server)
	case errors.As(err, &known) && err.Error() == known.Message: // nothing was added yet
		return errors.New(sentence(known.Message))
	}
	return err
}

// sentence makes a message of the server the end of an error line.
func sentence(message string) string { return strings.TrimRight(printable(message), ".\n ") }

// reworded is the error with another message where it has the code; others
// stay.
func reworded(err error, code host.Code, format string, args ...any) error {
	if err == nil || host.CodeOf(err) != code {
		return err
	}
	return fmt.Errorf(format, args...)
}

// unknownRun words the not-found error of a handler or run.
func (r *remote) unknownRun(err error, id string) error {
	return reworded(err, host.CodeNotFound, "no handler or run %q at %s: %q lists them", id, r.server, r.hint("runs"))
}

// unknownWorkflow words the not-found error of a workflow, with the names that
// may have been meant.
func (r *remote) unknownWorkflow(ctx context.Context, err error, name string) error {
	if err == nil || host.CodeOf(err) != host.CodeNotFound {
		return err
	}
	names, lookup := r.Workflows(ctx)
	if lookup != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no workflow %q at %s, which has none yet: upload a plugin with %q", name, r.server, r.hint("push", "FILE.wasm"))
	}
	return fmt.Errorf("no workflow %q at %s: %s", name, r.server,
		meant(name, names, fmt.Sprintf("%q lists them", r.hint("workflows"))))
}

// unknownPlugin does the same for a plugin.
func (r *remote) unknownPlugin(ctx context.Context, err error, name string) error {
	if err == nil || host.CodeOf(err) != host.CodeNotFound {
		return err
	}
	list, lookup := r.Plugins(ctx)
	if lookup != nil {
		return err
	}
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return fmt.Errorf("no plugin %q at %s: %s", name, r.server,
		meant(name, names, fmt.Sprintf("%q lists them", r.hint("plugins"))))
}

// lastAnswer is a transport that keeps a copy of the last answer, so that
// --json can print it exactly as the server sent it. Streams are not copied:
// they have no end. Requests come one after the other.
type lastAnswer struct {
	next   *http.Transport
	header http.Header
	body   bytes.Buffer
}

// RoundTrip implements http.RoundTripper.
func (l *lastAnswer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err != nil || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	l.header = resp.Header
	l.body.Reset()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &l.body), resp.Body}
	return resp, nil
}

// CloseIdleConnections is what http.Client's method of that name calls.
func (l *lastAnswer) CloseIdleConnections() { l.next.CloseIdleConnections() }
