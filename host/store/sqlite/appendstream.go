package sqlite

import (
	"context"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// putStream writes the part's stream events. If the latest run of a handler has no events
// yet, putStream then records the number at which they will begin.
func (s *Store) putStream(ctx context.Context, sid int64, p *host.SessionBatch, made madeHandler) error {
	for i := range p.Stream {
		row := &p.Stream[i]
		for events := row.Events; len(events) > 0; {
			n := record.RowLength(events)
			var err error
			if row.HandlerID == made.id && made.hid != 0 {
				err = s.putFirstStreamRow(ctx, made.hid, row, events[:n])
				made = madeHandler{}
			} else {
				err = s.putStreamRow(ctx, sid, p.Key.Tenant, row, events[:n])
			}
			if err != nil {
				return err
			}
			events = events[n:]
		}
	}
	for _, id := range p.Started {
		r := findRun(p.Runs, id)
		if firstEvent(p, r) >= 0 {
			continue
		}
		if _, err := s.stmts.setFirstSeq.ExecContext(ctx, r.Tenant, r.HandlerID); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) putStreamRow(ctx context.Context, sid int64, tenant string, row *host.StreamRow, events []host.StreamEvent) error {
	data, err := encode(events)
	if err != nil {
		return err
	}
	return s.changeOne(ctx, s.stmts.insertStream,
		"handler "+row.HandlerID+" is not of the session, or its stream has such events already",
		tenant, row.HandlerID, sid, int64(events[0].Seq), int64(events[len(events)-1].Seq), row.RunID, data)
}

// putFirstStreamRow writes the first events of a handler that the part has just created.
func (s *Store) putFirstStreamRow(ctx context.Context, hid int64, row *host.StreamRow, events []host.StreamEvent) error {
	data, err := encode(events)
	if err != nil {
		return err
	}
	_, err = s.stmts.firstStream.ExecContext(ctx, hid, int64(events[0].Seq), int64(events[len(events)-1].Seq), row.RunID, data)
	return err
}
