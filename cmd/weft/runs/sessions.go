package runs

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// sessionOptions are the flags of `weft sessions`.
type sessionOptions struct {
	limit int
	all   bool
}

// NewSessions makes the command 'weft sessions'.
func NewSessions() *cobra.Command {
	var o sessionOptions
	cmd := &cobra.Command{
		Use:   "sessions [ID]",
		Short: "List sessions, newest first, or show one",
		Long: `List the sessions, newest first, or show one with the handlers that have run in it. A
session has the state that carries over from one run to the next. A run that is started
without a session gets its own, with the handler's name.`,
		Example: `  weft sessions
  weft sessions chat-42
  weft sessions rm chat-42`,
		Args: cli.Takes("[ID]"),
	}
	cmd.Flags().IntVar(&o.limit, "limit", remote.DefaultListed, "at most `N`, 1 to "+strconv.Itoa(remote.MaxPage))
	cmd.Flags().BoolVar(&o.all, "all", false, "list all, regardless of --limit")
	remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if len(args) == 1 {
			return showSession(ctx, r, args[0])
		}
		return listSessions(ctx, r, o)
	})
	cmd.AddCommand(newRemoveSession(), newReleaseSession())
	return cmd
}

func newRemoveSession() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "rm ID",
		Aliases: []string{"delete", "remove"},
		Short:   "Delete a session with its state and its runs",
		Long: `Delete a session: its state, its journal, and all handlers that have run in it, with
their runs and streams. The server refuses this while runs of the session are active. A
later session of the same name is a new one.`,
		Example: "  weft sessions rm chat-42",
		Args:    cli.Takes("ID"),
	}
	cli.YesFlag(cmd, &yes)
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if !yes && r.Asks() {
			s, err := r.Session(ctx, args[0])
			if err != nil {
				return unknownSession(r, err, args[0])
			}
			if err := r.Confirm(ctx, yes, "Delete session %s with its state and %s (%d active)?", screen.Printable(args[0]), screen.Counted(uint64(s.Runs), "run"), s.Active); err != nil {
				return err
			}
		}
		if err := r.DeleteSession(ctx, args[0]); err != nil {
			return unknownSession(r, err, args[0])
		}
		return r.Done("deleted session %s", args[0])
	})
}

func newReleaseSession() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release ID",
		Short: "Take a session out of quarantine",
		Long: `Take a session out of quarantine and load it now. Do this after the cause is fixed: the
journal was repaired, or a missing module was uploaded. If the session still does not
load, it is quarantined again and the command prints the reason.`,
		Example: "  weft sessions release chat-42",
		Args:    cli.Takes("ID"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if _, err := r.ReleaseSession(ctx, args[0]); err != nil {
			return unknownSession(r, err, args[0])
		}
		if r.JSON {
			return r.PrintAnswer()
		}
		return r.Done("released session %s", args[0])
	})
}

// unknownSession explains the not-found error of a session.
func unknownSession(r *remote.Conn, err error, id string) error {
	return remote.Reworded(err, host.CodeNotFound, "no session %q at %s: %q lists them", id, r.Address, r.Hint("sessions"))
}

func listSessions(ctx context.Context, r *remote.Conn, o sessionOptions) error {
	if o.limit < 1 || o.limit > remote.MaxPage {
		return cli.Usage("--limit %d: must be a number from 1 to %d; --all lists everything", o.limit, remote.MaxPage)
	}
	if o.all {
		o.limit = remote.MaxPage
	}
	page, err := r.Sessions(ctx, o.limit, "")
	if err != nil {
		return err
	}
	if r.JSON && !o.all {
		return r.PrintAnswer()
	}
	list := page.Sessions
	for o.all && page.Next != "" {
		if page, err = r.Sessions(ctx, o.limit, page.Next); err != nil {
			return err
		}
		list = append(list, page.Sessions...)
	}
	switch {
	case r.JSON:
		return r.PrintJSON(sessionListing(list))
	case len(list) == 0:
		r.Note("no sessions")
		return nil
	}
	if err := r.Print(sessionTable(list, time.Now()).Render(r.Screen)); err != nil {
		return err
	}
	if page.Next != "" {
		r.Note("there are more: --limit N or --all shows them")
	}
	return nil
}

// sessionListing joins the sessions of several pages into one answer in the API's form.
func sessionListing(list []client.Session) []byte {
	var b bytes.Buffer
	b.WriteString(`{"sessions":[`)
	for i := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(list[i].JSON)
	}
	b.WriteString(`],"next_cursor":null}`)
	return b.Bytes()
}

func sessionTable(list []client.Session, now time.Time) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "SESSION", Elastic: true}, {Title: "RUNS", Right: true}, {Title: "ACTIVE", Right: true}, {Title: "CREATED"}, {Title: "UPDATED"},
	}}
	for i := range list {
		s := &list[i]
		t.Add(s.SessionID, strconv.Itoa(s.Runs), strconv.Itoa(s.Active), agoOf(s.Created, now), agoOf(s.Updated, now))
	}
	return t
}

// agoOf is ago for a time in Unix nanoseconds that may be unknown.
func agoOf(at int64, now time.Time) string {
	if at == 0 {
		return "-"
	}
	return screen.Ago(time.Unix(0, at), now)
}

func showSession(ctx context.Context, r *remote.Conn, id string) error {
	s, err := r.Session(ctx, id)
	if err != nil {
		return unknownSession(r, err, id)
	}
	if r.JSON {
		return r.PrintAnswer()
	}
	page, err := r.List(ctx, client.ListQuery{Session: id, Limit: remote.DefaultListed})
	if err != nil {
		return err
	}
	sh := &screen.Sheet{}
	sh.Add("session", s.SessionID)
	sh.Add("runs", strconv.Itoa(s.Runs))
	sh.Add("active", strconv.Itoa(s.Active))
	if s.Created != 0 {
		sh.Add("created", screen.Stamp(time.Unix(0, s.Created)))
	}
	if s.Updated != 0 {
		sh.Add("updated", screen.Stamp(time.Unix(0, s.Updated)))
	}
	text := sh.Render("")
	if len(page.Records) > 0 {
		text += "\n" + runTable(page.Records, time.Now()).Render(r.Screen)
	}
	if err := r.Print(text); err != nil {
		return err
	}
	if page.Next != "" {
		r.Note("it has more handlers: %s", r.Hint("runs", "--session", id, "--all"))
	}
	return nil
}
