package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// pipeline is a batch as statements, in order.
type pipeline struct {
	list []statement
	at   int64   // time of the newest entry
	part []int16 // the partitions that the batch writes to, each once
}

// statement is one of a batch. what says what is refused if the statement does not find
// what it must find.
type statement struct {
	what string
	sql  string
	args []any
}

func (p *pipeline) add(what, sql string, args ...any) {
	p.list = append(p.list, statement{what, sql, args})
}

const (
	// fence moves the number of the epoch's newest batch, which locks the epoch's row.
	fence = `WITH p AS (UPDATE pulse SET batch = $3, at = greatest(at, $4)
			WHERE epoch = $1 AND mark = $2 AND open AND batch = $3 - 1 RETURNING 1)
		SELECT expect((SELECT count(*) = 1 FROM p), '` + codeFenced + `')`
	ownParts = `SELECT expect(NOT EXISTS (SELECT FROM partitions WHERE part = ANY ($2::smallint[]) AND epoch IS DISTINCT FROM $1), '` +
		codePartition + `')`
)

// send sends all statements in one round trip. The server executes them as one
// transaction, which it commits at the end. failed is what the statement that failed is
// about. replica: only if commits wait for one.
func (p *pipeline) send(ctx context.Context, conn *pgx.Conn, epoch uint64, mark int64, number uint64, replica bool) (failed string, err error) {
	b := &pgx.Batch{}
	if replica {
		b.Queue(confirming)
	}
	b.Queue(fence, int64(epoch), mark, int64(number), p.at)
	b.Queue(ownParts, int64(epoch), p.part)
	first := b.Len()
	for i := range p.list {
		b.Queue(p.list[i].sql, p.list[i].args...)
	}
	results := conn.SendBatch(ctx, b)
	for i := range b.Len() {
		if _, err = results.Exec(); err != nil {
			if i >= first {
				failed = p.list[i-first].what
			}
			break
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr // else the same error
	}
	return failed, err
}
