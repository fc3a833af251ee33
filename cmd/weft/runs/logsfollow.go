package runs

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/position"
)

// How a run's messages are followed: how often the journal is read without a sign, and
// how long to wait before reconnecting.
const (
	logPatience = 2 * time.Second
	logRetry    = 500 * time.Millisecond
)

// followLogs shows a run's messages until the run ends. The run's events are the sign
// that there may be new messages. The messages themselves come only from the journal, by
// the positions of its entries, so that a lost connection neither loses nor repeats a
// message.
func followLogs(ctx context.Context, r *remote.Conn, id string, v *logView) error {
	run, err := r.Get(ctx, id)
	if err != nil {
		return r.UnknownRun(err, id)
	}
	// A client of its own, because the other client keeps the last answer for one user at
	// a time.
	signs, err := client.New(r.Address, client.Options{Key: r.Key, Tenant: r.Tenant})
	if err != nil {
		return err
	}
	defer signs.Close()
	l := v.reader(&run)
	away := remote.Outage{}
	for {
		over, err := l.untilLost(ctx, r, signs)
		switch {
		case over:
			return nil
		case err == nil:
			away.End()
		case host.CodeOf(err) != host.CodeUnavailable || away.TooLong(time.Now()):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logRetry):
		}
	}
}

// untilLost shows messages until the run is over, or the connection is lost. If it has
// shown all existing messages before that, it returns no error.
func (l *logReader) untilLost(ctx context.Context, r *remote.Conn, signs *client.Client) (over bool, err error) {
	stream, err := signs.Events(ctx, l.run.HandlerID, position.FromNow, true)
	if err != nil {
		return l.endless(ctx, r, err)
	}
	defer stream.Close()
	for caughtUp := false; ; caughtUp = true {
		// Read the run's state before its journal: the journal then contains the end of
		// an ended run.
		now, err := r.Get(ctx, l.run.RunID)
		if err == nil {
			err = l.read(ctx, r, l.view.print)
		}
		switch {
		case host.CodeOf(err) == host.CodeNotFound && caughtUp:
			return true, nil // it was deleted
		case err != nil:
			return false, err
		case now.Status.Final():
			return true, nil
		}
		_, err = stream.Next(ctx, logPatience)
		switch {
		case errors.Is(err, io.EOF), host.CodeOf(err) == host.CodeUnavailable:
			return false, nil // of the handler; the run's own status says whether the run is over
		case err != nil:
			return false, err
		}
	}
}

// endless shows the messages of a run whose events cannot be read, for example because
// its handler is gone.
func (l *logReader) endless(ctx context.Context, r *remote.Conn, cause error) (over bool, err error) {
	if host.CodeOf(cause) != host.CodeNotFound {
		return false, cause
	}
	return true, l.read(ctx, r, l.view.print)
}
