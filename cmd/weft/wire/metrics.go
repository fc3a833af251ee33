package wire

import (
	"context"
	"time"

	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/metrics"
	"github.com/weftrun/weft/host/scheduler"
)

// Series are the metrics of the current host. Hosts may replace each other.
type Series struct {
	counts *metrics.Source
	quotas *metrics.Quotas
}

// NewSeries registers the metrics of hosts; no host provides them yet.
func NewSeries(m *metrics.Metrics) *Series {
	return &Series{m.Source((*Host)(nil).readings()), m.Quotas()}
}

// Count makes the host provide its metrics.
func (h *Host) Count(s *Series) {
	s.counts.Set(h.readings())
	s.quotas.Set(func(ctx context.Context, tenant string) ([]limit.Use, error) {
		if !h.Quotas.Knows(tenant) {
			return nil, nil
		}
		return h.Quotas.Usage(ctx, tenant)
	})
}

// committed and observer are the callbacks of the journal and the scheduler. They are nil
// without metrics, so that no time is spent on them.
func committed(m *metrics.Metrics) func(int, time.Duration, error) {
	if m == nil {
		return nil
	}
	return m.Committed
}

func observer(m *metrics.Metrics) scheduler.Observer {
	if m == nil {
		return nil
	}
	return m
}

// readings are the counters of a host. Without a host there are no readings.
func (h *Host) readings() []metrics.Reading {
	var list []metrics.Reading
	add := func(counter bool, name, help string, read func() float64) {
		if h == nil {
			read = nil
		}
		list = append(list, metrics.Reading{Name: name, Help: help, Counter: counter, Read: read})
	}
	add(true, "attempts_total", "Runs of guests, replays included.", func() float64 { return float64(h.Runs.Counters().Attempts) })
	add(true, "replays_total", "Runs of guests after the first run of an attempt.", func() float64 { return float64(h.Runs.Counters().Replayed) })
	add(true, "suspensions_total", "Runs of guests that ended in a wait, a sleep, a child or a call.", func() float64 { return float64(h.Runs.Counters().Suspended) })
	add(true, "edit_conflicts_total", "Edits of the state that were repeated after a conflict.", func() float64 { return float64(h.Runs.Counters().Conflicts) })
	add(true, "yields_total", "Times that a guest yielded its core to another tenant.", func() float64 { return float64(h.Runs.Counters().Yields) })
	add(true, "budget_holds_total", "Times that a tenant was over its fuel budget.", func() float64 { return float64(h.Runs.Counters().Holds) })
	add(true, "admissions_lined_total", "Starts and events of clients that were queued because too many were in progress.", func() float64 { return float64(h.Runs.Counters().Lined) })
	add(true, "admissions_shed_total", "Starts and events that were answered with 503 because the queue was too long or slow.", func() float64 { return float64(h.Runs.Counters().Shed) })
	add(false, "admissions_in_line", "Starts and events in the queue.", func() float64 { return float64(h.Runs.Load().InLine) })
	add(true, "starts_admitted_total", "Starts of clients that were accepted.", func() float64 { return float64(h.Runs.Counters().Admitted) })
	add(true, "starts_refused_wait_total", "Starts refused because their runs would wait too long for a core.", func() float64 { return float64(h.Runs.Counters().RefusedWait) })
	add(true, "starts_refused_depth_total", "Starts refused because too many runs of their tenant wait for their first core.", func() float64 { return float64(h.Runs.Counters().RefusedDepth) })
	add(true, "starts_refused_bytes_total", "Starts refused because runs that wait for their first core hold too much memory.", func() float64 { return float64(h.Runs.Counters().RefusedBytes) })
	add(true, "starts_refused_heap_total", "Starts refused because the memory is nearly full.", func() float64 { return float64(h.Runs.Counters().RefusedHeap) })
	add(false, "starts_waiting", "Runs that wait for their first core.", func() float64 { return float64(h.Runs.Load().Starts) })
	add(false, "demand_units", "Units that accepted runs are still expected to need.", func() float64 { return float64(h.Runs.Load().Demand) })
	add(false, "start_wait_idle_seconds", "Least time that a new run of an idle tenant waits for its first core.", func() float64 { idle, _ := h.Runs.Waits(); return idle.Seconds() })
	add(false, "start_wait_busiest_seconds", "Least time that a new run of the busiest tenant waits for its first core.", func() float64 { _, most := h.Runs.Waits(); return most.Seconds() })
	add(false, "speed_units_per_second", "Units that all cores complete in a second, measured while all were busy.", func() float64 { return h.Runs.Load().Speed })
	add(true, "calls_underpriced_total", "Pieces of host work that held a core more than ten times longer than their counted units.", func() float64 { return float64(h.Runs.Counters().Underpriced) })
	add(true, "code_waits_total", "Steps that waited without a core until the code of their module was in memory.", func() float64 { return float64(h.Runs.Counters().CodeWaits) })
	add(true, "resource_calls_total", "Calls of external resources.", func() float64 { return float64(h.Runs.Counters().Calls) })
	add(true, "sessions_loaded_total", "Sessions that were read from the store.", func() float64 { return float64(h.Runs.Counters().Loaded) })
	add(true, "sessions_evicted_total", "Sessions that left memory.", func() float64 { return float64(h.Runs.Counters().Evicted) })
	add(false, "sessions_in_memory", "Sessions in memory.", func() float64 { return float64(h.Runs.Load().Sessions) })
	add(false, "attempts_ready", "Steps that wait for a core.", func() float64 { return float64(h.Runs.Load().Ready) })
	add(false, "attempts_running", "Steps that have a core.", func() float64 { return float64(h.Runs.Load().Running) })
	add(false, "cores", "Cores that steps may have.", func() float64 { return float64(h.Runs.Load().Cores) })
	add(false, "cores_spared", "Cores that steps may not use for a while because the system killed the server for its memory use.", func() float64 { return float64(h.Runs.Load().Spared) })
	add(false, "suspects", "Steps, loads and resource calls that held a core when the server ended, and have not run since.", func() float64 { return float64(h.Runs.Load().Suspects) })
	add(true, "blamed_total", "Runs blocked and sessions quarantined because they end the server.", func() float64 { return float64(h.Runs.Counters().Blamed) })
	add(true, "core_unnoted_total", "Steps, loads and resource calls that could not be noted while they held a core.", func() float64 { return float64(h.Runs.Counters().Unnoted) })
	add(false, "started_after", "How the previous server ended: 0 cleanly or unknown, 1 killed or for an unknown reason, 2 for its memory use, 3 by a crash.", func() float64 { return float64(h.Runs.StartedAfter()) })
	add(true, "journal_entries_total", "Entries given to the journal.", func() float64 { return float64(h.Journal.Stats().Items) })
	add(false, "journal_pending_bytes", "Bytes of entries that are not durable yet.", func() float64 { return float64(h.Journal.Stats().Pending) })
	add(true, "journal_bytes_total", "Bytes of journal rows written.", func() float64 { return float64(h.Store.Stats().JournalBytes) })
	return list
}
