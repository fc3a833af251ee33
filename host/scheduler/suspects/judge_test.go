package suspects

import (
	"testing"

	"github.com/weftrun/weft/host/deaths"
)

// judge's rules, death by death.
func TestJudge(t *testing.T) {
	note := func(inv, calls, burnt, kept uint64) deaths.CoreNote {
		return deaths.CoreNote{Kind: deaths.CoreRun, Tenant: "t", Session: "s", Invocation: inv, Attempt: 1, Calls: calls, Burnt: burnt, Kept: kept, Digest: [8]byte{1}, Step: [8]byte{byte(inv % 2)}}
	}
	alone := func(class deaths.DeathClass, n deaths.CoreNote) deaths.Death {
		return deaths.Death{Class: class, Phase: deaths.PhaseApart, Noted: []deaths.CoreNote{n}}
	}
	unknown, crash := deaths.DeathUnknown, deaths.DeathCrash
	for name, tt := range map[string]struct {
		deaths []deaths.Death
		want   deaths.Suspect // counts of invocation 1
	}{
		"beside others":        {[]deaths.Death{{Class: unknown, Phase: deaths.PhaseServing, Noted: []deaths.CoreNote{note(1, 0, 0, 0), note(2, 0, 0, 0)}}}, deaths.Suspect{Noted: 1}},
		"two apart":            {[]deaths.Death{{Class: crash, Phase: deaths.PhaseApart, Noted: []deaths.CoreNote{note(1, 0, 0, 0), note(2, 0, 0, 0)}}}, deaths.Suspect{Noted: 1}},
		"one place":            {[]deaths.Death{alone(unknown, note(1, 3, 5e6, 0)), alone(unknown, note(1, 3, 30e6, 0)), alone(unknown, note(1, 3, 1e6, 0))}, deaths.Suspect{Noted: 3, Alone: 3, Same: 3, Blamed: true}},
		"places apart":         {[]deaths.Death{alone(unknown, note(1, 3, 5e6, 0)), alone(unknown, note(1, 3, 36e6, 0)), alone(unknown, note(1, 4, 36e6, 0))}, deaths.Suspect{Noted: 3, Alone: 3, Same: 1}},
		"crashes anywhere":     {[]deaths.Death{alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 2, 0, 0)), alone(crash, note(1, 3, 0, 0))}, deaths.Suspect{Noted: 3, Alone: 3, Hard: 3, Same: 1, Blamed: true}},
		"not all crashes":      {[]deaths.Death{alone(crash, note(1, 1, 0, 0)), alone(unknown, note(1, 2, 0, 0)), alone(crash, note(1, 3, 0, 0))}, deaths.Suspect{Noted: 3, Alone: 3, Hard: 2, Same: 1}},
		"it got further":       {[]deaths.Death{alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 2, 0, 1))}, deaths.Suspect{Noted: 3, Alone: 1, Hard: 1, Same: 1}},
		"the journal did":      {[]deaths.Death{alone(unknown, note(1, 2, 0, 0)), alone(unknown, note(1, 2, 0, 1)), alone(unknown, note(1, 2, 0, 2))}, deaths.Suspect{Noted: 3, Alone: 3, Same: 3, Blamed: true}},
		"in a pause":           {[]deaths.Death{alone(crash, note(1, 1, 0, 0)), alone(crash, note(1, 1, 0, 0)), {Class: unknown, Phase: deaths.PhaseControl}}, deaths.Suspect{Noted: 1}},
		"while nothing ran":    {[]deaths.Death{alone(crash, note(1, 1, 0, 0)), {Class: unknown, Phase: deaths.PhaseServing}, alone(crash, note(1, 1, 0, 0))}, deaths.Suspect{Noted: 2, Alone: 1, Hard: 1, Same: 1}},
		"its like was blamed":  {[]deaths.Death{alone(crash, note(3, 1, 0, 0)), alone(crash, note(3, 1, 0, 0)), alone(crash, note(3, 1, 0, 0)), alone(unknown, note(1, 7, 0, 0))}, deaths.Suspect{Noted: 1, Alone: 1, Same: 1, Blamed: true}},
		"another step's blame": {[]deaths.Death{alone(crash, note(4, 1, 0, 0)), alone(crash, note(4, 1, 0, 0)), alone(crash, note(4, 1, 0, 0)), alone(unknown, note(1, 7, 0, 0))}, deaths.Suspect{Noted: 1, Alone: 1, Same: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var known deaths.Suspicion
			for _, d := range tt.deaths {
				d.Suspicion = known
				known = Judge(d, 1)
			}
			for _, s := range known.Suspects {
				if s.Invocation != 1 {
					continue
				}
				if s.CoreNote = (deaths.CoreNote{}); s != tt.want {
					t.Errorf("counts %+v, want %+v", s, tt.want)
				}
				return
			}
			t.Error("invocation 1 is not suspected")
		})
	}
}
