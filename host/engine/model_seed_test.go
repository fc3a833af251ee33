package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weftrun/weft/host/engine"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "play only this seed of TestModel")
	modelSeeds = flag.Uint64("model.seeds", seedsByDefault(), "how many seeds TestModel plays")
)

func seedsByDefault() uint64 {
	if engine.Few {
		return 200
	}
	return 2000
}

// playSeed plays a seed, without the ticks whose numbers are left out. Each tick has its
// own random source, so that leaving one out changes the others as little as possible.
func playSeed(seed uint64, without map[int]bool) (p *pair, last int, err error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	if p, err = newPair(drawWorkflow(rng)); err != nil {
		return p, 0, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	p.mood = drawMood(rng)
	n := 10 + rng.IntN(80)
	for last = range n {
		if without[last] {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, uint64(last)+1))
		if rng.IntN(12) == 0 {
			if err := p.reload(); err != nil {
				return p, last, err
			}
		}
		now, t := p.drawTick(rng)
		if err := p.play(now, t); err != nil {
			return p, last, err
		}
	}
	return p, n, p.rest()
}

// shrink leaves out the ticks that the failure of a seed does not need.
func shrink(seed uint64, last int) (*pair, error) {
	without := map[int]bool{}
	for i := last + 1; i < 100; i++ {
		without[i] = true
	}
	for width := 16; width > 0; width /= 2 {
		for at := 0; at <= last; at += width {
			tried := map[int]bool{}
			for i := range 100 {
				tried[i] = without[i] || i >= at && i < at+width
			}
			if _, _, err := playSeed(seed, tried); err != nil {
				without = tried
			}
		}
	}
	p, _, err := playSeed(seed, without)
	return p, err
}

// TestModel compares the engine with its model on random workflows with random ticks in
// random order. A failing seed is shrunk, and can be played alone with -model.seed=N.
func TestModel(t *testing.T) {
	first, n := uint64(1), *modelSeeds
	if *modelSeed != 0 {
		first, n = *modelSeed, 1
	}
	t.Logf("seeds %d to %d", first, first+n-1)
	var next, failed atomic.Uint64
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1); i <= n && failed.Load() < 3; i = next.Add(1) {
				seed := first + i - 1
				_, last, err := playSeed(seed, nil)
				if err == nil {
					continue
				}
				failed.Add(1)
				p, small := shrink(seed, last)
				if small == nil {
					p, small = nil, err
				}
				report(t, seed, p, small)
			}
		})
	}
}

func report(t *testing.T, seed uint64, p *pair, err error) {
	t.Helper()
	if p == nil {
		t.Errorf("seed %d: %v", seed, err)
		return
	}
	var steps strings.Builder
	for _, st := range p.manifest.Steps {
		fmt.Fprintf(&steps, "\n  %+v", st)
	}
	for _, show := range p.played {
		steps.WriteString("\n" + show())
	}
	t.Errorf("seed %d (go test ./host/engine -run TestModel -model.seed=%d): %v%s", seed, seed, err, steps.String())
}
