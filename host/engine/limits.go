package engine

import (
	"cmp"

	"github.com/weftrun/weft/host"
)

// complete fills in the defaults, so that an entry says all limits that held.
func complete(l host.Limits) host.Limits {
	d := host.DefaultLimits()
	return host.Limits{
		ModuleBytes:  cmp.Or(l.ModuleBytes, d.ModuleBytes),
		MemoryBytes:  cmp.Or(l.MemoryBytes, d.MemoryBytes),
		TableEntries: cmp.Or(l.TableEntries, d.TableEntries),
		Fuel:         cmp.Or(l.Fuel, d.Fuel),
		WallTime:     cmp.Or(l.WallTime, d.WallTime),
		HostCalls:    cmp.Or(l.HostCalls, d.HostCalls),
		CallBytes:    cmp.Or(l.CallBytes, d.CallBytes),
		InputBytes:   cmp.Or(l.InputBytes, d.InputBytes),
		OutputBytes:  cmp.Or(l.OutputBytes, d.OutputBytes),
		LogBytes:     cmp.Or(l.LogBytes, d.LogBytes),
		LogLines:     cmp.Or(l.LogLines, d.LogLines),
		RegionCalls:  cmp.Or(l.RegionCalls, d.RegionCalls),
		RegionTime:   cmp.Or(l.RegionTime, d.RegionTime),
		StateBytes:   cmp.Or(l.StateBytes, d.StateBytes),
		RunEvents:    cmp.Or(l.RunEvents, d.RunEvents),
		StreamBytes:  cmp.Or(l.StreamBytes, d.StreamBytes),
		RecordBytes:  cmp.Or(l.RecordBytes, d.RecordBytes),
		Suspensions:  cmp.Or(l.Suspensions, d.Suspensions),
		InboxEvents:  cmp.Or(l.InboxEvents, d.InboxEvents),
		QueuedStarts: cmp.Or(l.QueuedStarts, d.QueuedStarts),
	}
}
