package suspects

import (
	"testing"

	"github.com/weftrun/weft/host"
)

// judge's rules, death by death.
func TestJudge(t *testing.T) {
	note := func(inv, calls, burnt, kept uint64) host.CoreNote {
		return host.CoreNote{Kind: host.CoreRun, Tenant: "t", Session: "s", Invocation: inv, Attempt: 1, Calls: calls, Burnt: burnt, Kept: kept, Digest: [8]byte{1}, Step: [8]byte{byte(inv % 2)}}
	}
	alone := func(class host.DeathClass, n host.CoreNote) host.Death {
		return host.Death{Class: class, Phase: host.PhaseApart, Noted: []host.CoreNote{n}}
	}
	unknown, crash := host.DeathUnknown, host.DeathCrash
	for name, tt := range map[string]struct {
		deaths []host.Death
		want   host.Suspect // counts of invocation 1
	}{
		"beside others":        {[]host.Death{{Class: unknown, Phase: host.PhaseServing, Noted: []host.CoreNote{note(1, 0, 0, 0), note(2, 0, 0, 0)}}}, host.Suspect{Noted: 1}},
		"two apart":            {[]host.Death{{Class: crash, Phase: host.PhaseApart, Noted: []host.CoreNote{note(1, 0, 0, 0), note(2, 0, 0, 0)}}}, host.Suspect{Noted: 1}},
		"one place":            {[]host.Death{alone(unknown, note(1, 3, 5e6, 0)), alone(unknown, note(1, 3, 30e6, 0)), alone(unknown, note(1, 3, 1e6, 0))}, host.Suspect{Noted: 3, Alone: 3, Same: 3, Blamed: true}},
		"places apart":         {[]host.Death{alone(unknown, note(1, 3, 5e6, 0)), alone(unknown, note(1, 3, 36e6, 0)), alone(unknown, note(1, 4, 36e6, 0))}, host.Suspect{Noted: 3, Alone: 3, Same: 1}},
		"crashes anywhere":     {[]host.Death{alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 2, 0, 0)), alone(crash, note(1, 3, 0, 0))}, host.Suspect{Noted: 3, Alone: 3, Hard: 3, Same: 1, Blamed: true}},
		"not all crashes":      {[]host.Death{alone(crash, note(1, 1, 0, 0)), alone(unknown, note(1, 2, 0, 0)), alone(crash, note(1, 3, 0, 0))}, host.Suspect{Noted: 3, Alone: 3, Hard: 2, Same: 1}},
		"it got further":       {[]host.Death{alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 2, 0, 1))}, host.Suspect{Noted: 3, Alone: 1, Hard: 1, Same: 1}},
		"the journal did":      {[]host.Death{alone(unknown, note(1, 2, 0, 0)), alone(unknown, note(1, 2, 0, 1)), alone(unknown, note(1, 2, 0, 2))}, host.Suspect{Noted: 3, Alone: 3, Same: 3, Blamed: true}},
		"in a pause":           {[]host.Death{alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 1, 0, 0)), {Class: unknown, Phase: host.PhaseControl}}, host.Suspect{Noted: 1}},
		"while nothing ran":    {[]host.Death{alone(crash, note(1, 1, 0, 0)), {Class: unknown, Phase: host.PhaseServing}, alone(crash, note(1, 1, 0, 0))}, host.Suspect{Noted: 2, Alone: 1, Hard: 1, Same: 1}},
		"its like was blamed":  {[]host.Death{alone(crash, note(3, 1, 0, 0)), alone(crash, note(3, 1, 0, 0)), alone(crash, note(3, 1, 0, 0)), alone(unknown, note(1, 7, 0, 0))}, host.Suspect{Noted: 1, Alone: 1, Same: 1, Blamed: true}},
		"another step's blame": {[]host.Death{alone(crash, note(4, 1, 0, 0)), alone(crash, note(4, 1, 0, 0)), alone(crash, note(4, 1, 0, 0)), alone(unknown, note(1, 7, 0, 0))}, host.Suspect{Noted: 1, Alone: 1, Same: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var known host.Suspicion
			for _, d := range tt.deaths {
				d.Suspicion = known
				known = Judge(d, 1)
			}
			for _, s := range known.Suspects {
				if s.Invocation != 1 {
					continue
				}
				if s.CoreNote = (host.CoreNote{}); s != tt.want {
					t.Errorf("counts %+v, want %+v", s, tt.want)
				}
				return
			}
			t.Error("invocation 1 is not suspected")
		})
	}
}
