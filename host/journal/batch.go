package journal

import (
	"fmt"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/usage"
)

// attempt identifies an attempt within a batch.
type attempt struct {
	key                 host.SessionKey
	invocation, attempt uint64
}

// part collects one session's share of a batch.
type part struct {
	host.SessionBatch
	entries [][]byte
	runs    map[string]int // run id -> index in Runs
	merged  bool           // the last row of Stream has an array of its own, shared with no item
}

// batch encodes items into one transaction. An attempt that finishes within the batch
// writes no record, because nobody will replay it. dropped counts the entries that were
// written without a record.
func (j *Journal) batch(items []queued) (b host.Batch, dropped uint64, err error) {
	finished := map[attempt]bool{}
	for i := range items {
		if it := &items[i]; it.Finish {
			finished[attempt{it.Key, it.Invocation, it.Attempt}] = true
		}
	}
	var order []*part
	parts := map[host.SessionKey]*part{}
	for i := range items {
		it := &items[i]
		if it.Entry == nil && len(it.Drop)+len(it.Purge)+it.Erase == 0 {
			continue // the item only reports what was spent
		}
		p := parts[it.Key]
		if p == nil {
			p = &part{SessionBatch: host.SessionBatch{Key: it.Key}, runs: map[string]int{}}
			parts[it.Key] = p
			order = append(order, p)
		}
		record := it.Invocation == 0 || !finished[attempt{it.Key, it.Invocation, it.Attempt}]
		if !record {
			dropped++
		}
		if err := p.add(&it.JournalItem, record); err != nil {
			return host.Batch{}, 0, err
		}
	}
	b = host.Batch{Epoch: j.epoch, Sessions: make([]host.SessionBatch, len(order)), Spent: spent(items), KV: newest(items)}
	for i, p := range order {
		if len(p.entries) > 0 {
			p.Data = encodeRow(p.entries)
		}
		b.Sessions[i] = p.SessionBatch
	}
	return b, dropped, nil
}

// newest returns the writes of the items to resources of kind kv, in order. Of several
// writes to one key it keeps the last, with the growth of all of them.
func newest(items []queued) (list []kv.Write) {
	type place struct {
		space kv.Space
		key   string
	}
	var of map[place]int
	for i := len(items) - 1; i >= 0; i-- {
		for _, w := range slices.Backward(items[i].KV) {
			at := place{w.Space, w.Item.Key}
			if last, written := of[at]; written {
				list[last].Growth += w.Growth
				list[last].Keys += w.Keys
				continue
			}
			if of == nil {
				of = map[place]int{}
			}
			of[at] = len(list)
			list = append(list, w)
		}
	}
	slices.Reverse(list)
	return list
}

// spent adds up what the items have used, by tenant and month.
func spent(items []queued) (list []usage.MonthSpent) { // the key has zero spending; the value is its place in list
	var of map[usage.MonthSpent]int // without what was spent: its place in list
	for i := range items {
		it := &items[i]
		if it.Spent == (usage.Spent{}) {
			continue
		}
		key := usage.MonthSpent{Tenant: it.Key.Tenant, Month: usage.MonthOf(it.At)}
		at, known := of[key]
		if !known {
			if of == nil {
				of = map[usage.MonthSpent]int{}
			}
			at, of[key] = len(list), len(list)
			list = append(list, key)
		}
		list[at].Add(it.Spent)
	}
	return list
}

func (p *part) add(it *host.JournalItem, record bool) error {
	if it.Entry != nil {
		data, err := it.Entry.Append(nil, record)
		if err != nil {
			return fmt.Errorf("encode entry %d of session %q: %w", it.Seq, it.Key.Session, err)
		}
		if p.First == 0 {
			p.First = it.Seq
		} else if it.Seq != p.Last+1 {
			return fmt.Errorf("session %q: entry %d follows %d", it.Key.Session, it.Seq, p.Last)
		}
		p.Last = it.Seq
		if it.Snapshot {
			p.Snapshot, p.Cut = it.Seq, max(p.Cut, it.Cut)
		}
		p.entries = append(p.entries, data)
		p.WakeAt, p.At, p.StateBytes = it.WakeAt, it.At, it.StateBytes
		p.StateGrowth += it.StateGrowth
	}
	for _, r := range it.Runs {
		if i, ok := p.runs[r.RunID]; ok {
			p.Runs[i] = r
			continue
		}
		p.runs[r.RunID] = len(p.Runs)
		p.Runs = append(p.Runs, r)
	}
	p.Started = append(p.Started, it.Started...)
	p.use(it.Versions)
	p.Repeats = append(p.Repeats, it.Repeats...)
	for _, row := range it.Stream {
		if n := len(p.Stream); n > 0 && p.Stream[n-1].HandlerID == row.HandlerID && p.Stream[n-1].RunID == row.RunID {
			last := &p.Stream[n-1]
			if !p.merged {
				// The item keeps its array. The row gets its own, once.
				last.Events, p.merged = slices.Clip(last.Events), true
			}
			last.Events = append(last.Events, row.Events...)
			continue
		}
		p.Stream, p.merged = append(p.Stream, row), false
	}
	p.Drop = append(p.Drop, it.Drop...)
	p.Purge = append(p.Purge, it.Purge...)
	p.Erase = max(p.Erase, it.Erase)
	return nil
}

// use records the versions that an entry needs, each once, with the last entry that needs
// it.
func (p *part) use(versions []host.VersionUse) {
	for _, v := range versions {
		i := slices.IndexFunc(p.Versions, func(known host.VersionUse) bool { return known.Digest == v.Digest })
		if i < 0 {
			p.Versions = append(p.Versions, v)
			continue
		}
		p.Versions[i].Seq = max(p.Versions[i].Seq, v.Seq)
	}
}
