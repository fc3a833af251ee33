package main

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// sessionOptions are the flags of `weft sessions`.
type sessionOptions struct {
	limit int
	all   bool
}

func newSessions() *cobra.Command {
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
		Args: takes("[ID]"),
	}
	cmd.Flags().IntVar(&o.limit, "limit", defaultListed, "at most `N`, 1 to "+strconv.Itoa(maxPage))
	cmd.Flags().BoolVar(&o.all, "all", false, "list all, regardless of --limit")
	clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
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
		Args:    takes("ID"),
	}
	yesFlag(cmd, &yes)
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if !yes && r.asks() {
			s, err := r.Session(ctx, args[0])
			if err != nil {
				return r.unknownSession(err, args[0])
			}
			if err := r.confirm(ctx, yes, "Delete session %s with its state and %s (%d active)?", printable(args[0]), counted(uint64(s.Runs), "run"), s.Active); err != nil {
				return err
			}
		}
		if err := r.DeleteSession(ctx, args[0]); err != nil {
			return r.unknownSession(err, args[0])
		}
		return r.done("deleted session %s", args[0])
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
		Args:    takes("ID"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if _, err := r.ReleaseSession(ctx, args[0]); err != nil {
			return r.unknownSession(err, args[0])
		}
		if r.json {
			return r.printAnswer()
		}
		return r.done("released session %s", args[0])
	})
}

// unknownSession words the not-found error of a session.
func (r *remote) unknownSession(err error, id string) error {
	return reworded(err, host.CodeNotFound, "no session %q at %s: %q lists them", id, r.server, r.hint("sessions"))
}

func listSessions(ctx context.Context, r *remote, o sessionOptions) error {
	if o.limit < 1 || o.limit > maxPage {
		return usage("--limit %d: it is a number from 1 to %d; --all lists all there are", o.limit, maxPage)
	}
	if o.all {
		o.limit = maxPage
	}
	page, err := r.Sessions(ctx, o.limit, "")
	if err != nil {
		return err
	}
	if r.json && !o.all {
		return r.printAnswer()
	}
	list := page.Sessions
	for o.all && page.Next != "" {
		if page, err = r.Sessions(ctx, o.limit, page.Next); err != nil {
			return err
		}
		list = append(list, page.Sessions...)
	}
	switch {
	case r.json:
		return r.printJSON(sessionListing(list))
	case len(list) == 0:
		r.note("no sessions")
		return nil
	}
	if err := r.print(sessionTable(list, time.Now()).render(r.screen)); err != nil {
		return err
	}
	if page.Next != "" {
		r.note("there are more: --limit N or --all shows them")
	}
	return nil
}

// sessionListing joins the sessions of several pages to one answer of the API's form.
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

func sessionTable(list []client.Session, now time.Time) *table {
	t := &table{columns: []column{
		{title: "SESSION", elastic: true}, {title: "RUNS", right: true}, {title: "ACTIVE", right: true}, {title: "CREATED"}, {title: "UPDATED"},
	}}
	for i := range list {
		s := &list[i]
		t.add(s.SessionID, strconv.Itoa(s.Runs), strconv.Itoa(s.Active), agoOf(s.Created, now), agoOf(s.Updated, now))
	}
	return t
}

// agoOf is ago of a time in Unix nanoseconds that may not be known.
func agoOf(at int64, now time.Time) string {
	if at == 0 {
		return "-"
	}
	return ago(time.Unix(0, at), now)
}

func showSession(ctx context.Context, r *remote, id string) error {
	s, err := r.Session(ctx, id)
	if err != nil {
		return r.unknownSession(err, id)
	}
	if r.json {
		return r.printAnswer()
	}
	page, err := r.List(ctx, client.ListQuery{Session: id, Limit: defaultListed})
	if err != nil {
		return err
	}
	sh := &sheet{}
	sh.add("session", s.SessionID)
	sh.add("runs", strconv.Itoa(s.Runs))
	sh.add("active", strconv.Itoa(s.Active))
	if s.Created != 0 {
		sh.add("created", stamp(time.Unix(0, s.Created)))
	}
	if s.Updated != 0 {
		sh.add("updated", stamp(time.Unix(0, s.Updated)))
	}
	text := sh.render("")
	if len(page.Records) > 0 {
		text += "\n" + runTable(page.Records, time.Now()).render(r.screen)
	}
	if err := r.print(text); err != nil {
		return err
	}
	if page.Next != "" {
		r.note("it has more handlers: %s", r.hint("runs", "--session", id, "--all"))
	}
	return nil
}
