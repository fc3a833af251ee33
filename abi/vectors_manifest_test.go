package abi_test

import (
	"math"
	"time"

	"github.com/weftrun/weft/abi"
)

func one(name string) abi.Slot       { return abi.Slot{Types: []string{name}} }
func emits(name string) abi.Emit     { return abi.Emit{Types: []string{name}} }
func emitsList(t ...string) abi.Emit { return abi.Emit{List: true, Types: t} }

// manifestWith returns a small manifest after a change.
func manifestWith(change func(*abi.Manifest)) abi.Manifest {
	m := abi.Manifest{
		ABI: 1, Workflow: "counter",
		Steps: []abi.StepDecl{{
			Name: "increment", Accepts: []abi.Slot{one("StartEvent")}, Emits: []abi.Emit{emits("StopEvent")},
		}},
		Events: map[string]abi.EventDecl{},
	}
	change(&m)
	return m
}

// retrying returns a manifest whose step has the policy.
func retrying(p abi.RetryPolicy) abi.Manifest {
	return manifestWith(func(m *abi.Manifest) { m.Steps[0].Retry = &p })
}

var countSchema = mustValue(object{
	"type": "object", "properties": object{"count": object{"type": "integer", "default": 0}},
	"required": list{"count"}, "additionalProperties": false,
})

var fullManifest = abi.Manifest{
	ABI: 1, Workflow: "accumulator", Version: "1.2.0", Description: "processes items one by one",
	Part:    true,
	Timeout: new(45 * time.Second),
	State:   &abi.StateDecl{Schema: countSchema, Default: mustValue(object{"count": 0})},
	Resources: []abi.ResourceDecl{
		{Name: "llm", Kind: "llm", Description: "writes the answers", Optional: true},
		{Name: "api", Kind: "http"},
	},
	Events: map[string]abi.EventDecl{
		"ItemsEvent":     {Kind: abi.KindStart, Extends: "StartEvent", Schema: mustValue(object{"type": "object"}), Description: "the items"},
		"ItemEvent":      {},
		"ProcessedEvent": {Description: "one is done"},
		"DoneEvent":      {Kind: abi.KindStop, Extends: "StopEvent"},
		"AskEvent":       {Kind: abi.KindInputRequired},
		"AnswerEvent":    {Kind: abi.KindHumanResponse},
	},
	Steps: []abi.StepDecl{
		{Name: "start", Accepts: []abi.Slot{one("ItemsEvent")}, Emits: []abi.Emit{emitsList("ItemEvent"), emits("AskEvent")}},
		{
			Name: "process_item", Accepts: []abi.Slot{{Kind: abi.SlotAny, Types: []string{"ItemEvent", "AnswerEvent"}}},
			Emits: []abi.Emit{emits("ProcessedEvent")}, Workers: 4, Timeout: time.Minute,
			Retry: &abi.RetryPolicy{
				When: &abi.Condition{Codes: []string{"flaky"}},
				Wait: &abi.WaitRule{Fixed: new(10 * time.Millisecond)},
				Stop: &abi.StopRule{Attempts: new(uint64(3))},
			},
			Waits: []string{"AnswerEvent"}, AcceptSubtypes: true, Atomic: true, Description: "does the work",
		},
		{Name: "finalize", Accepts: []abi.Slot{{Kind: abi.SlotList, Types: []string{"ProcessedEvent"}, Take: 2}}, Emits: []abi.Emit{emits("DoneEvent")}},
		{
			Name: "recover", Accepts: []abi.Slot{one("StepFailedEvent")}, Emits: []abi.Emit{emits("DoneEvent")},
			Catches: []string{"process_item", "cancelled", "timeout"}, MaxRecoveries: new(uint64(1)),
		},
	},
}

var manifestVectors = []vector{
	{"manifest-minimal", manifestWith(func(*abi.Manifest) {})},
	{"manifest-full", fullManifest},
	{"manifest-part", manifestWith(func(m *abi.Manifest) { m.Part = true })},
	{"manifest-state-schema", manifestWith(func(m *abi.Manifest) { m.State = &abi.StateDecl{Schema: countSchema} })},
	{"manifest-state-default", manifestWith(func(m *abi.Manifest) { m.State = &abi.StateDecl{Default: emptyBody} })},
	{"manifest-state-empty", manifestWith(func(m *abi.Manifest) { m.State = &abi.StateDecl{} })},
	{"manifest-timeout-off", manifestWith(func(m *abi.Manifest) { m.Timeout = new(time.Duration(0)) })},
	{"manifest-timeout-max", manifestWith(func(m *abi.Manifest) { m.Timeout = new(time.Duration(math.MaxInt64)) })},
	{"manifest-events", manifestWith(func(m *abi.Manifest) { m.Events = fullManifest.Events })},
	{"manifest-resources", manifestWith(func(m *abi.Manifest) { m.Resources = fullManifest.Resources })},
	{"manifest-slots", manifestWith(func(m *abi.Manifest) {
		m.Steps[0].Accepts = []abi.Slot{
			one("AEvent"), {Kind: abi.SlotAny, Types: []string{"BEvent", "CEvent"}},
			{Kind: abi.SlotList, Types: []string{"DEvent"}},
			{Kind: abi.SlotList, Types: []string{"EEvent", "FEvent"}, Take: abi.MaxTake},
		}
	})},
	{"manifest-emits-nothing", manifestWith(func(m *abi.Manifest) { m.Steps[0].Emits = nil })},
	{"manifest-emits", manifestWith(func(m *abi.Manifest) {
		m.Steps[0].Emits = []abi.Emit{emits("AEvent"), emitsList("BEvent"), emitsList("CEvent", "DEvent")}
	})},
	{"manifest-workers", manifestWith(func(m *abi.Manifest) {
		m.Steps[0].Workers = abi.MaxWorkers
		m.Steps = append(m.Steps, abi.StepDecl{Name: "single", Accepts: []abi.Slot{one("AEvent")}, Workers: 1})
	})},
	{"manifest-catches-all", manifestWith(func(m *abi.Manifest) {
		m.Steps[0].CatchesAll, m.Steps[0].MaxRecoveries = true, new(uint64(0))
	})},
	{"manifest-catches", manifestWith(func(m *abi.Manifest) { m.Steps[0].Catches = []string{"work", "cancelled"} })},
	{"manifest-retry-empty", retrying(abi.RetryPolicy{})},
	{"manifest-retry-always", retrying(abi.RetryPolicy{When: &abi.Condition{Always: true}, Stop: &abi.StopRule{Never: true}})},
	{"manifest-retry-never", retrying(abi.RetryPolicy{When: &abi.Condition{Never: true}})},
	{"manifest-retry-conditions", retrying(abi.RetryPolicy{When: &abi.Condition{Any: []abi.Condition{
		{Codes: []string{"flaky", "timeout"}},
		{Message: new("connection refused")},
		{All: []abi.Condition{{Not: &abi.Condition{Codes: []string{"invalid"}}}, {Message: new("")}}},
	}}})},
	{"manifest-retry-incrementing", retrying(abi.RetryPolicy{
		Wait: &abi.WaitRule{Incrementing: &[3]time.Duration{time.Second, 2 * time.Second, time.Minute}},
	})},
	{"manifest-retry-exponential", retrying(abi.RetryPolicy{
		Wait: &abi.WaitRule{Exponential: &abi.ExponentialRule{Multiplier: time.Second, Base: 2, Max: time.Hour}},
	})},
	{"manifest-retry-jitter", retrying(abi.RetryPolicy{
		Wait: &abi.WaitRule{ExponentialJitter: &abi.JitterRule{Initial: time.Second, Base: 1.5, Max: time.Minute, Jitter: time.Second}},
	})},
	{"manifest-retry-random", retrying(abi.RetryPolicy{Wait: &abi.WaitRule{Random: &[2]time.Duration{0, time.Second}}})},
	{"manifest-retry-chain-and-sum", retrying(abi.RetryPolicy{Wait: &abi.WaitRule{Chain: []abi.WaitRule{
		{Fixed: new(time.Duration(0))},
		{Sum: []abi.WaitRule{{Fixed: new(time.Second)}, {Random: &[2]time.Duration{time.Second, time.Second}}}},
	}}})},
	{"manifest-retry-stops", retrying(abi.RetryPolicy{Stop: &abi.StopRule{Any: []abi.StopRule{
		{Attempts: new(uint64(100))},
		{All: []abi.StopRule{{Delay: new(time.Hour)}, {Never: true}}},
	}}})},
}
