package hostcall

import "time"

// Burn counts units that the guest has burnt. It is called on the guest's goroutine, and
// for the units before a host call ahead of that call. An error ends the guest: an open
// edit exceeded its limit, even in a loop without host calls.
func (a *Attempt) Burn(units uint64) error {
	if a.stage != nil && a.stage.alone != nil {
		if err := a.burnAlone(units); err != nil {
			return err
		}
	}
	if a.region == nil {
		return nil
	}
	free := min(a.region.free, units)
	a.region.free -= free
	a.region.fuel += units - free
	if limit := a.open.Limits.RegionFuel; a.region.fuel > limit {
		return limitf("an edit burnt %d units between state_begin and state_commit, more than %d (limit region_fuel)", a.region.fuel, limit)
	}
	return a.checkRegionTime()
}

// Idle says that the guest had to wait for its run token. The time does not count against
// the open edit.
func (a *Attempt) Idle(waited time.Duration) {
	for _, r := range []*region{a.region, a.stage.region()} {
		if r != nil {
			r.start += int64(max(waited, 0))
		}
	}
}

// checkRegion enforces the limits of an open edit at a host call inside it.
func (a *Attempt) checkRegion() error {
	if calls, limit := a.n-a.region.begin, a.open.Limits.RegionCalls; calls > uint64(limit) {
		return limitf("an edit made %d host calls between state_begin and state_commit, more than %d (limit region_calls)", calls, limit)
	}
	return a.checkRegionTime()
}

func (a *Attempt) checkRegionTime() error {
	if took, limit := time.Duration(a.live.Now()-a.region.start), a.open.Limits.RegionTime; took > limit {
		return limitf("an edit was open for %s, longer than %s (limit region_time)", took.Round(time.Millisecond), limit)
	}
	return nil
}
