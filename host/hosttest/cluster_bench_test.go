package hosttest_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// BenchmarkCluster runs a workflow of one step over HTTP on clusters of one to three nodes,
// by the owner of the sessions, by another node, and by all in turn. All nodes, PostgreSQL and
// the clients are on the same machine, so it shows what it costs to hand requests on, and not
// what further machines give. cpu-ms/run is that of the nodes, pg-cpu-ms/run that of PostgreSQL.
func BenchmarkCluster(b *testing.B) {
	for _, count := range []int{1, 2, 3} {
		pg := pgtest.Own(b)
		n := newNodes(b, count, pg.URL)
		put(b, n.list[0].Process, "chain", hosttest.Plugin(b, "chain-tinygo"))
		owner := n.awaitOwner()
		ways := map[string][]string{"owner": {owner.URL}}
		for _, p := range n.list {
			ways["all"] = append(ways["all"], p.URL)
			if p != owner {
				ways["other"] = []string{p.URL}
			}
		}
		for _, clients := range []int{1, 64} {
			for _, way := range []string{"owner", "other", "all"} {
				if ways[way] == nil || count == 1 && way == "all" {
					continue
				}
				b.Run(fmt.Sprintf("nodes=%d/clients=%d/by=%s", count, clients, way), func(b *testing.B) {
					var nodesCPU, pgCPU time.Duration
					benchRequests(b, ways[way], "chain", `{"start_event":{"n":1}}`, clients, func() { nodesCPU, pgCPU = n.cpu(b), pg.CPU(b) })
					b.ReportMetric(float64((n.cpu(b)-nodesCPU).Microseconds())/1e3/float64(b.N), "cpu-ms/run")
					b.ReportMetric(float64((pg.CPU(b)-pgCPU).Microseconds())/1e3/float64(b.N), "pg-cpu-ms/run")
				})
			}
		}
		for _, p := range n.list {
			p.Kill(b)
		}
	}
}

// cpu returns the CPU time of all nodes so far, in ticks of 10 ms; 0 where the system has no
// /proc.
func (n *nodes) cpu(tb testing.TB) (sum time.Duration) {
	tb.Helper()
	for _, p := range n.list {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			return 0
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, field := range fields[11:13] { // utime and stime
			ticks, err := strconv.Atoi(field)
			if err != nil {
				tb.Fatal(err)
			}
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}
