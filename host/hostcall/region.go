package hostcall

import "time"

// Burn counts units that the guest has burnt, on its goroutine: those before a
// host call come before the call. The error ends the guest: it belongs to an
// open edit that burnt too much, be it in a loop without host calls.
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

// Idle says that the guest had to wait for its run token: that time is not the
// open edit's.
func (a *Attempt) Idle(waited time.Duration) {
	for _, r := range []*region{a.region, a.stage.region()} {
		if r != nil {
			r.start += int64(max(waited, 0))
		}
	}
}

// checkRegion bounds an open edit at a host call inside it.
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
