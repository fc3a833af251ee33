package hosttest_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// BenchmarkPostgres runs a workflow of one step over HTTP, on SQLite and on PostgreSQL in
// turn, so that the two can be compared: both, the clients and PostgreSQL are on the same
// machine. In addition to what BenchmarkHTTP reports, it reports the CPU time of PostgreSQL
// and the bytes of its log for a run.
func BenchmarkPostgres(b *testing.B) {
	pg := pgtest.Own(b)
	const body = `{"start_event":{"n":1}}`
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("sqlite/clients=%d", clients), func(b *testing.B) {
			benchWorkflow(b, hosttest.New(b, hosttest.Config{Data: b.TempDir()}), "tinygo", "chain", body, clients)
		})
		b.Run(fmt.Sprintf("postgres/clients=%d", clients), func(b *testing.B) {
			url := pg.Database(b, "")
			h := hosttest.New(b, hosttest.Config{Data: b.TempDir(), StoreURL: url})
			const position = `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`
			wal, cpu := number(b, pg.Query(b, url, position)), pg.CPU(b)
			benchWorkflow(b, h, "tinygo", "chain", body, clients)
			n := float64(b.N)
			b.ReportMetric((number(b, pg.Query(b, url, position))-wal)/n, "wal-B/run")
			b.ReportMetric(float64((pg.CPU(b)-cpu).Microseconds())/1e3/n, "pg-cpu-ms/run")
		})
	}
}

func number(tb testing.TB, text string) float64 {
	tb.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
