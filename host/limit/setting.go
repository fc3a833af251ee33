package limit

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
)

// limitSetting is one setting of a file of limits: its name, its valid values and, for a
// field of [Limits], the field.
type limitSetting struct {
	name        string
	form        limitForm
	least, most int64
	orNone      bool  // 0 is valid, too
	builtin     int64 // of one of tenantSettings; see LimitTable.ofTenant
	get         func(*Limits) int64
	set         func(*Limits, int64)
}

// limitForm says how the values of a setting are written.
type limitForm uint8

const (
	formCount limitForm = iota // a number
	formSize                   // bytes: a number, or a text such as "64MiB"
	formSpan                   // a text such as "30s"; the value is in nanoseconds
)

// The units of sizes.
const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// limitSettings are the fields of [Limits], in their order. Each maximum is safe for the
// host, whoever sets it; with each minimum a step can still run.
var limitSettings = []limitSetting{
	bytesSetting("module_bytes", kib, 256*mib, func(l *Limits) *int { return &l.ModuleBytes }),
	bytesSetting("memory_bytes", 64*kib, min(4*gib, math.MaxInt), func(l *Limits) *int { return &l.MemoryBytes }), // in pages; the most that 32 bits can address
	countSetting("table_entries", 1, 10_000_000, func(l *Limits) *int { return &l.TableEntries }),
	countSetting("fuel", 1_000, 1e15, func(l *Limits) *uint64 { return &l.Fuel }),
	spanSetting("wall_time", time.Millisecond, 24*time.Hour, func(l *Limits) *time.Duration { return &l.WallTime }),
	countSetting("host_calls", 1, 1e9, func(l *Limits) *int { return &l.HostCalls }),
	bytesSetting("call_bytes", kib, int64(abi.DefaultLimits.MaxBytes), func(l *Limits) *int { return &l.CallBytes }), // the most that can be decoded
	bytesSetting("input_bytes", kib, int64(abi.DefaultLimits.MaxBytes), func(l *Limits) *int { return &l.InputBytes }),
	bytesSetting("output_bytes", kib, int64(abi.DefaultLimits.MaxBytes), func(l *Limits) *int { return &l.OutputBytes }),
	bytesSetting("log_bytes", kib, 64*mib, func(l *Limits) *int { return &l.LogBytes }),
	countSetting("log_lines", 1, 1_000_000, func(l *Limits) *int { return &l.LogLines }),
	countSetting("region_calls", 1, 1_000_000, func(l *Limits) *int { return &l.RegionCalls }),
	spanSetting("region_time", time.Millisecond, 10*time.Minute, func(l *Limits) *time.Duration { return &l.RegionTime }),
	bytesSetting("state_bytes", kib, gib, func(l *Limits) *int { return &l.StateBytes }),
	countSetting("run_events", 1, 1e9, func(l *Limits) *int { return &l.RunEvents }),
	bytesSetting("stream_bytes", kib, min(64*gib, math.MaxInt), func(l *Limits) *int { return &l.StreamBytes }),
	bytesSetting("record_bytes", kib, 256*mib, func(l *Limits) *int { return &l.RecordBytes }), // a single row may contain the record
	countSetting("suspensions", 1, 1_000_000, func(l *Limits) *int { return &l.Suspensions }),
	countSetting("inbox_events", 1, 1_000_000, func(l *Limits) *int { return &l.InboxEvents }),
	countSetting("queued_starts", 1, 1_000_000, func(l *Limits) *int { return &l.QueuedStarts }),
	bytesSetting("call_depth", 4*kib, 64*mib, func(l *Limits) *int { return &l.CallDepth }),
	countSetting("region_fuel", 1_000, 1e12, func(l *Limits) *uint64 { return &l.RegionFuel }),
	countSetting("describe_fuel", 1_000, 1e12, func(l *Limits) *uint64 { return &l.DescribeFuel }),
	spanSetting("describe_time", time.Millisecond, 10*time.Minute, func(l *Limits) *time.Duration { return &l.DescribeTime }),
	spanSetting("compile_time", 100*time.Millisecond, time.Hour, func(l *Limits) *time.Duration { return &l.CompileTime }),
	bytesSetting("compile_bytes", 256*mib, min(64*gib, math.MaxInt), func(l *Limits) *int { return &l.CompileBytes }),
	countSetting("child_depth", 1, 1_000, func(l *Limits) *int { return &l.ChildDepth }),                                    // a run ends with one cascade of calls for each level
	spanSetting("cleanup_time", time.Millisecond, 10*time.Minute, func(l *Limits) *time.Duration { return &l.CleanupTime }), // a request that cancels the run waits for it
}

// The bounds of a tenant's fuel budget, in units a second; 0 means none. With a smaller
// budget a guest would wait too long between two of its checkpoints.
const (
	leastTenantFuel = 1_000_000
	mostTenantFuel  = 1_000_000_000_000
)

// tenantSettings do not limit an invocation but everything that a tenant does, so they
// are not fields of [Limits]. Each can be 0: none.
var tenantSettings = [...]limitSetting{
	tenantFuel:        {name: "tenant_fuel_per_second", form: formCount, least: leastTenantFuel, most: mostTenantFuel, orNone: true},
	tenantInvocations: {name: "tenant_invocations", form: formCount, least: 1, most: 1_000_000, orNone: true},
	retentionAge:      {name: "retention_age", form: formSpan, least: int64(time.Minute), most: int64(100 * 365 * 24 * time.Hour), orNone: true},
	retentionRuns:     {name: "retention_runs", form: formCount, least: 1, most: 1_000_000_000, orNone: true},
	waitingStarts:     {name: "waiting_starts", form: formCount, least: 1, most: 10_000_000, builtin: DefaultWaitingStarts},

	firstQuota + int(QuotaPlugins):       quotaSetting("tenant_plugins", formCount, 1_000, 1_000_000),
	firstQuota + int(QuotaPluginBytes):   quotaSetting("tenant_plugin_bytes", formSize, 4*gib, mostHeld),
	firstQuota + int(QuotaRunsActive):    quotaSetting("tenant_runs_active", formCount, 100_000, 1_000_000_000),
	firstQuota + int(QuotaRunsWaiting):   quotaSetting("tenant_runs_waiting", formCount, 100_000, 1_000_000_000),
	firstQuota + int(QuotaRequests):      quotaSetting("tenant_requests_per_second", formCount, 10_000, 1_000_000),
	firstQuota + int(QuotaFuel):          quotaSetting("tenant_fuel_per_month", formCount, 0, 1e18),
	firstQuota + int(QuotaLogBytes):      quotaSetting("tenant_log_bytes_per_month", formSize, 64*gib, mostHeld),
	firstQuota + int(QuotaStateBytes):    quotaSetting("tenant_state_bytes", formSize, 16*gib, mostHeld),
	firstQuota + int(QuotaJournalBytes):  quotaSetting("tenant_journal_bytes", formSize, 64*gib, mostHeld),
	firstQuota + int(QuotaStreamReaders): quotaSetting("tenant_stream_readers", formCount, 20_000, 1_000_000),
}

// mostHeld is the largest quota of bytes.
const mostHeld = 1 << 50

func quotaSetting(name string, form limitForm, builtin, most int64) limitSetting {
	return limitSetting{name: name, form: form, least: 1, most: most, orNone: true, builtin: builtin}
}

// The places of the tenant's settings.
const (
	tenantFuel = iota
	tenantInvocations
	retentionAge
	retentionRuns
	waitingStarts
	firstQuota // followed by the other quotas, in order
)

// tenantValues has the tenant settings at one place of the file.
type tenantValues [len(tenantSettings)]struct {
	value int64
	given bool
}

type limitNumber interface{ ~int | ~uint64 | ~int64 }

func newSetting[T limitNumber](name string, form limitForm, least, most int64, field func(*Limits) *T) limitSetting {
	return limitSetting{
		name: name, form: form, least: least, most: most,
		get: func(l *Limits) int64 { return int64(*field(l)) },
		set: func(l *Limits, v int64) { *field(l) = T(v) },
	}
}

func countSetting[T limitNumber](name string, least, most int64, field func(*Limits) *T) limitSetting {
	return newSetting(name, formCount, least, most, field)
}

func bytesSetting(name string, least, most int64, field func(*Limits) *int) limitSetting {
	return newSetting(name, formSize, least, most, field)
}

func spanSetting(name string, least, most time.Duration, field func(*Limits) *time.Duration) limitSetting {
	return newSetting(name, formSpan, int64(least), int64(most), field)
}

// tenantSettingNamed finds the index of a tenant's setting; -1 if it does not exist.
func tenantSettingNamed(name string) int {
	return slices.IndexFunc(tenantSettings[:], func(s limitSetting) bool { return s.name == name })
}

// settingNamed finds the setting of a field of [Limits]; nil if it does not exist.
func settingNamed(name string) *limitSetting {
	for i := range limitSettings {
		if limitSettings[i].name == name {
			return &limitSettings[i]
		}
	}
	return nil
}

// parse reads a value, a token of encoding/json with numbers as json.Number. ok is false
// if the value is not valid for the setting.
func (s *limitSetting) parse(token any) (v int64, ok bool) {
	switch t := token.(type) {
	case json.Number:
		if v, ok = wholeNumber(t.String()); s.form == formSpan && (!s.orNone || v != 0) {
			return 0, false
		}
	case string:
		switch s.form {
		case formSize:
			v, ok = parseSize(t)
		case formSpan:
			d, err := time.ParseDuration(t)
			v, ok = int64(d), err == nil
		}
	}
	if s.orNone && v == 0 {
		return 0, ok
	}
	return v, ok && v >= s.least && v <= s.most
}

// wholeNumber reads a JSON number that is whole, including forms such as 1e9.
func wholeNumber(text string) (int64, bool) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	const exact = 1 << 53 // a float64 represents every whole number below it
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < -exact || f > exact || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

// sizeUnits are the units of sizes, largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", gib}, {"MiB", mib}, {"KiB", kib},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

// parseSize reads a text such as 64MiB, with or without a space before the unit.
func parseSize(text string) (int64, bool) {
	for _, u := range sizeUnits {
		number, found := strings.CutSuffix(text, u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(number, " "), 10, 62)
		if err != nil || n > uint64(1<<62/u.bytes) {
			return 0, false
		}
		return int64(n) * u.bytes, true
	}
	return 0, false
}

// takes says which values the setting accepts.
func (s *limitSetting) takes() string {
	span := fmt.Sprintf("from %s to %s", s.show(s.least), s.show(s.most))
	switch {
	case s.orNone && s.form == formSpan:
		return "a time " + span + `, as a text such as "720h", or 0 for none`
	case s.orNone && s.form == formSize:
		return "a size " + span + `, as a number of bytes or a text such as "64MiB", or 0 for none`
	case s.orNone:
		return "a number " + span + ", or 0 for none"
	case s.form == formSize:
		return "a size " + span + `, as a number of bytes or a text such as "64MiB"`
	case s.form == formSpan:
		return "a time " + span + `, as a text such as "30s"`
	}
	return "a number " + span
}

// show formats a value for people: 64MiB, 30s, 10,000.
func (s *limitSetting) show(v int64) string {
	switch s.form {
	case formSize:
		for _, u := range sizeUnits[:4] {
			if v >= u.bytes && v%u.bytes == 0 {
				return strconv.FormatInt(v/u.bytes, 10) + u.name
			}
		}
		return grouped(v) + "B"
	case formSpan:
		return shortSpan(time.Duration(v))
	}
	return grouped(v)
}

// value returns a value in the form of a file of limits: an int64, or a string for times.
func (s *limitSetting) value(v int64) any {
	if s.form == formSpan {
		return shortSpan(time.Duration(v))
	}
	return v
}

// shortSpan formats a duration without zero minutes and seconds at its end.
func shortSpan(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// grouped formats a number with commas: 10,000.
func grouped(v int64) string {
	text := strconv.FormatInt(v, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
