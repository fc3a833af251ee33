package weft

import (
	"reflect"
	"testing"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// partOf returns a part of the first step of a manifest vector, encoded.
func partOf(t *testing.T, name, key string) []byte {
	t.Helper()
	var m struct{ Steps []map[string]any }
	if err := codec.Unmarshal(vector(t, name), &m); err != nil {
		t.Fatal(err)
	}
	b, err := codec.Append(nil, m.Steps[0][key])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each retry policy of the vectors can be said.
func TestVectorsOfRetryPolicies(t *testing.T) {
	const s = time.Second
	for name, rules := range map[string][]RetryRule{
		"always":        {Always(), Forever()},
		"chain-and-sum": {Chain(Fixed(0), Sum(Fixed(s), RandomWait(s, s)))},
		"conditions": {AnyOf(OnCodes("flaky", "timeout"), OnMessage("connection refused"),
			AllOf(Not(OnCodes("invalid")), OnMessage("")))},
		"empty":        {},
		"exponential":  {Exponential(s, 2, time.Hour)},
		"incrementing": {Incrementing(s, 2*s, time.Minute)},
		"jitter":       {ExponentialJitter(s, 1.5, time.Minute, s)},
		"never":        {Never()},
		"random":       {RandomWait(0, s)},
		"stops":        {AnyOf(Attempts(100), AllOf(GiveUpAfter(time.Hour), Forever()))},
	} {
		step := &step{}
		if err := Retry(rules...).applyStep(step); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := partOf(t, "manifest-retry-"+name, "retry"); hexOf(step.retry) != hexOf(want) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, []byte(step.retry), want)
		}
	}
}

// Several conditions must all hold, and the first rule to give up counts.
func TestRetryRulesSideBySide(t *testing.T) {
	var one, other step
	a, b, c, d := OnCodes("a"), Not(OnMessage("b")), Attempts(3), GiveUpAfter(time.Hour)
	for s, rules := range map[*step][]RetryRule{&one: {a, c, Fixed(1), d, b}, &other: {AllOf(a, b), Fixed(1), AnyOf(c, d)}} {
		if err := Retry(rules...).applyStep(s); err != nil {
			t.Fatal(err)
		}
	}
	if hexOf(one.retry) != hexOf(other.retry) {
		t.Errorf("%x and %x", []byte(one.retry), []byte(other.retry))
	}
}

// What the full manifest vector says can be said.
func TestVectorOfTheFullManifest(t *testing.T) {
	type ItemsEvent struct {
		Start `doc:"the items"`
	}
	type ItemEvent struct{}
	type AskEvent struct{ InputRequired }
	type AnswerEvent struct{ HumanResponse }
	type ProcessedEvent struct {
		_ struct{} `doc:"one is done"`
	}
	type DoneEvent struct{ Stop }
	type counter struct {
		Count int `default:"0"`
	}
	define(t, Version("1.2.0"), Doc("processes items one by one"), Part(), Timeout(45*time.Second),
		Resource{Name: "llm", Kind: "llm", Doc: "writes the answers", Optional: true}, Resource{Name: "api", Kind: "http"},
		Step("start", func(*Context[counter], ItemsEvent) (Event, error) { return nil, nil }, Emits([]ItemEvent{}, AskEvent{})),
		Step("process_item", func(*untypedContext, Event) (ProcessedEvent, error) { return ProcessedEvent{}, nil },
			Accepts(ItemEvent{}, AnswerEvent{}), Atomic(), AcceptSubtypes(), Workers(4), Timeout(time.Minute), Doc("does the work"),
			Retry(OnCodes("flaky"), Fixed(10*time.Millisecond), Attempts(3))),
		Step("finalize", func(*untypedContext, []ProcessedEvent) (DoneEvent, error) { return DoneEvent{}, nil }, Take(2)),
		Step("recover", func(*untypedContext, StepFailed) (DoneEvent, error) { return DoneEvent{}, nil },
			Catches("process_item", "cancelled", "timeout"), MaxRecoveries(1)))
	m, err := defined.manifest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := codec.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	var got, want object
	for target, encoded := range map[*object][]byte{&got: b, &want: vector(t, "manifest-full")} {
		if err := codec.Unmarshal(encoded, target); err != nil {
			t.Fatal(err)
		}
	}
	want["workflow"] = "test"
	// A step that both waits and is atomic is refused by this SDK, and the order in
	// which it lists emits is its own.
	delete(want["steps"].([]any)[1].(object), "waits")
	steps := got["steps"].([]any)
	emits := steps[0].(object)["emits"].([]any)
	emits[0], emits[1] = emits[1], emits[0]
	delete(want, "state") // a schema from types allows undeclared keys
	delete(got, "state")
	for _, ev := range got["events"].(object) { // so do those of events, which all have one
		delete(ev.(object), "schema")
	}
	delete(want["events"].(object)["ItemsEvent"].(object), "schema")
	for key, kind := range map[string]string{"AskEvent": "InputRequiredEvent", "AnswerEvent": "HumanResponseEvent"} {
		want["events"].(object)[key].(object)["extends"] = kind // which the vector leaves to the kind
	}
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s:\ngot  %v\nwant %v", key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Errorf("keys: %v, want %v", got, want)
	}
}
