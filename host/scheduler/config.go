package scheduler

import (
	"crypto/rand"
	"log/slog"
	"runtime"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/admission"
)

func (c *Config) setDefaults() {
	if c.Tokens == 0 {
		c.Tokens = runtime.GOMAXPROCS(0)
	}
	if c.Spare == nil {
		c.Spare = func(bool) {}
	}
	if c.Yield == nil {
		c.Yield = runtime.Gosched
	}
	if c.IdleAfter == 0 {
		c.IdleAfter = time.Second
	}
	if c.DueAtOnce == 0 {
		c.DueAtOnce = 256
	}
	if c.AdmitAtOnce == 0 {
		c.AdmitAtOnce = max(admission.LeastPlaces, admission.PlacesPerCore*c.Tokens)
	}
	if c.AdmitLine == 0 {
		c.AdmitLine = admission.DefaultLine
	}
	if c.AdmitPatience == 0 {
		c.AdmitPatience = admission.DefaultPatience
	}
	if c.StartWait == 0 {
		c.StartWait = defaultStartWait
	}
	if c.Timeout == 0 {
		c.Timeout = host.DefaultRunTimeout
	}
	if c.SnapshotEntries == 0 {
		c.SnapshotEntries = 10_000
	}
	if c.SnapshotBytes == 0 {
		c.SnapshotBytes = 8 << 20
	}
	if c.EraseRows == 0 {
		c.EraseRows = 256
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Entropy == nil {
		c.Entropy = func(b []byte) { _, _ = rand.Read(b) } // never fails
	}
	if c.Resources == nil {
		c.Resources = noResources{}
	}
	if c.Notes == nil {
		c.Notes = noNotes{}
	}
	if c.Quotas == nil {
		c.Quotas = noQuotas{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}
