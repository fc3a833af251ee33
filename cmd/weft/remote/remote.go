// Package remote is the connection of a command to a server: which server and key it
// uses, the flags that all such commands have, how answers are printed and lists are
// gathered, and the texts for errors that occur in all commands.
//
// It does not depend on individual commands.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// Conn is the connection of a command to a server.
type Conn struct {
	*client.Client
	Address string // its base URL
	reach   string // flags that reach the server again
	Tenant  string // the tenant of --tenant
	Key     string // "": none
	JSON    bool   // print answers for programs
	last    *lastAnswer

	In        io.Reader
	Out, Errs io.Writer
	Screen    screen.Terminal // the screen behind out
}

// Command turns a command into a command that talks to a server: it adds the common
// flags, and runs the command with a connection.
func Command(cmd *cobra.Command, run func(ctx context.Context, r *Conn, args []string) error) *cobra.Command {
	var server, profile, tenant string
	var asJSON bool
	cmd.Flags().StringVar(&server, "server", DefaultServer, "address of the server, a `URL` or HOST:PORT; without it, the server of the last 'weft login', or")
	cmd.Flags().StringVar(&profile, "profile", "", "`NAME` of a profile that 'weft login' has made")
	cmd.Flags().StringVar(&tenant, "tenant", "", "`NAME` of the tenant to act in (with the server's own admin key)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the API's answer as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("server") {
			server = ""
		}
		r, err := Connect(cmd, server, profile, tenant)
		if err != nil {
			return err
		}
		defer r.Close()
		r.JSON = asJSON
		return r.Explain(run(cmd.Context(), r, args))
	}
	return cmd
}

// DefaultServer is the URL of a server with the default address.
const DefaultServer = "http://" + cli.DefaultAddr

// Connect prepares the connection; it does not call the server.
func Connect(cmd *cobra.Command, server, profile, tenant string) (*Conn, error) {
	to, err := aim(server, profile)
	if err != nil {
		return nil, err
	}
	last := &lastAnswer{next: http.DefaultTransport.(*http.Transport).Clone()}
	c, err := client.New(to.server, client.Options{HTTP: &http.Client{Transport: last}, Key: to.key, Tenant: tenant})
	if err != nil {
		return nil, cli.Usage("--server %q is not an address of a server, such as %s", to.server, DefaultServer)
	}
	out := cmd.OutOrStdout()
	return &Conn{
		Client: c, Address: to.server, reach: to.reach, Tenant: tenant, Key: to.key, last: last,
		In: cmd.InOrStdin(), Out: out, Errs: cmd.ErrOrStderr(), Screen: screen.Of(out),
	}, nil
}

// Print writes to the standard output. Results are important, so it returns write errors,
// unlike Note.
func (r *Conn) Print(text string) error {
	_, err := io.WriteString(r.Out, text)
	return err
}

// Done prints a message for people after a request whose answer is empty. With --json
// it prints nothing. It returns nil, so that a command can end with it.
func (r *Conn) Done(format string, args ...any) error {
	if !r.JSON {
		r.Note(format, args...)
	}
	return nil
}

// Note writes a line for people to the standard error.
func (r *Conn) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Errs, format+"\n", args...)
}

// PrintJSON writes a JSON text: indented on a terminal, otherwise unchanged.
func (r *Conn) PrintJSON(text []byte) error {
	if r.Screen.Cols > 0 {
		return r.Print(screen.PrintableJSON(screen.Indented(text)) + "\n")
	}
	return r.Print(string(bytes.TrimSpace(text)) + "\n")
}

// Answer returns the body of the server's last answer, which the next request replaces.
func (r *Conn) Answer() []byte { return bytes.Clone(r.last.body.Bytes()) }

// Header returns the header of the server's last answer; nil if there was none.
func (r *Conn) Header() http.Header { return r.last.header }

// PrintAnswer writes the server's last answer unchanged.
func (r *Conn) PrintAnswer() error { return r.PrintJSON(r.last.body.Bytes()) }

// Hint returns a command that the user may want to enter next, for the same server.
func (r *Conn) Hint(args ...string) string {
	line := "weft " + strings.Join(args, " ") + r.reach
	if r.Tenant != "" && !slices.Contains(args, "--tenant") {
		line += " --tenant " + r.Tenant
	}
	return line
}

// Explain explains the errors that occur in all commands.
func (r *Conn) Explain(err error) error {
	var known *host.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server listens at %s: start one with 'weft serve', or name another with --server", r.Address)
	case host.CodeOf(err) == host.CodeUnauthenticated:
		if r.Key == "" {
			return fmt.Errorf("%s needs a key: 'weft login %s' stores one, or put it into WEFT_KEY", r.Address, r.Address)
		}
		return fmt.Errorf("%s does not accept the key: it is unknown, expired or revoked; 'weft login %s' stores another, or put it into WEFT_KEY", r.Address, r.Address)
	case errors.As(err, &known) && err.Error() == known.Message: // no explanation was added yet
		return errors.New(Sentence(known.Message))
	}
	return err
}

// Sentence turns a message of the server into the end of an error line.
func Sentence(message string) string { return strings.TrimRight(screen.Printable(message), ".\n ") }

// Reworded returns the error with another message if it has the code; other errors stay
// unchanged.
func Reworded(err error, code host.Code, format string, args ...any) error {
	if err == nil || host.CodeOf(err) != code {
		return err
	}
	return fmt.Errorf(format, args...)
}

// UnknownRun explains the not-found error of a handler or run.
func (r *Conn) UnknownRun(err error, id string) error {
	return Reworded(err, host.CodeNotFound, "no handler or run %q at %s: %q lists them", id, r.Address, r.Hint("runs"))
}

// UnknownWorkflow explains the not-found error of a workflow, with suggestions for a
// mistyped name.
func (r *Conn) UnknownWorkflow(ctx context.Context, err error, name string) error {
	if err == nil || host.CodeOf(err) != host.CodeNotFound {
		return err
	}
	names, lookup := r.Workflows(ctx)
	if lookup != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no workflow %q at %s, which has none yet: upload a plugin with %q", name, r.Address, r.Hint("push", "FILE.wasm"))
	}
	return fmt.Errorf("no workflow %q at %s: %s", name, r.Address,
		cli.Meant(name, names, fmt.Sprintf("%q lists them", r.Hint("workflows"))))
}

// UnknownPlugin does the same for a plugin.
func (r *Conn) UnknownPlugin(ctx context.Context, err error, name string) error {
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
	return fmt.Errorf("no plugin %q at %s: %s", name, r.Address,
		cli.Meant(name, names, fmt.Sprintf("%q lists them", r.Hint("plugins"))))
}

// lastAnswer is a transport that keeps a copy of the last answer, so that --json can
// print it exactly as the server sent it. Streams are not copied, because they do not
// end. Requests are sent one after the other.
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

// CloseIdleConnections implements the method that http.Client's CloseIdleConnections
// calls.
func (l *lastAnswer) CloseIdleConnections() { l.next.CloseIdleConnections() }

// At returns the same connection for another server, which needs no key.
func (r *Conn) At(server string) (*Conn, error) {
	other := *r
	last := &lastAnswer{next: http.DefaultTransport.(*http.Transport).Clone()}
	c, err := client.New(server, client.Options{HTTP: &http.Client{Transport: last}})
	other.Client, other.last = c, last
	other.Address, other.reach, other.Key, other.Tenant = server, " --server "+server, "", ""
	return &other, err
}

// Concurrent makes a client for many goroutines, which keeps a connection for each.
func (r *Conn) Concurrent(clients int) (*client.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = clients, clients
	return client.New(r.Address, client.Options{HTTP: &http.Client{Transport: t}, Key: r.Key, Tenant: r.Tenant})
}

// PrintValue prints a value that combines several answers.
func (r *Conn) PrintValue(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return r.PrintJSON(b)
}

// Working starts to show what a command is doing.
func (r *Conn) Working() *screen.Working {
	w, ok := r.Errs.(*screen.Working)
	if !ok {
		w = screen.NewWorking(r.Errs)
	}
	w.Quiet = r.JSON
	return w
}
