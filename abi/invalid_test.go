package abi_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

var invalidDir = filepath.Join(vectorDir, "invalid")

// refused is one vector that every decoder refuses. The bytes come from hex,
// or from JSON for what is well-formed.
type refused struct {
	name string
	hex  string
	json string
	want string // part of the error
}

func (r refused) bytes(t *testing.T) []byte {
	t.Helper()
	var b []byte
	var err error
	if r.json != "" {
		b, err = abi.FromJSON([]byte(r.json))
	} else {
		b, err = hex.DecodeString(strings.ReplaceAll(r.hex, " ", ""))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// nested65 nests 65 arrays.
var nested65 = strings.Repeat("81", abi.MaxValueDepth) + "80"

var refusedValues = []refused{
	{name: "value-empty", want: "unexpected end of data (at byte 0)"},
	{name: "value-trailing", hex: "00 00", want: "trailing data (at byte 1)"},
	{name: "value-truncated-head", hex: "19 01", want: "unexpected end of data"},
	{name: "value-truncated-text", hex: "63 6161", want: "unexpected end of data"},
	{name: "value-truncated-array", hex: "82 01", want: "unexpected end of data"},
	{name: "value-truncated-map", hex: "a1 6161", want: "a: unexpected end of data"},
	{name: "value-length-huge", hex: "9b ffffffffffffffff 00", want: "unexpected end of data"},
	{name: "value-map-length-huge", hex: "bb 8000000000000001 00", want: "unexpected end of data"},
	{name: "value-text-length-huge", hex: "7b 7fffffffffffffff 00", want: "unexpected end of data"},
	{name: "value-tag", hex: "c1 1a 514b67b0", want: "tags are not allowed (at byte 0)"},
	{name: "value-bignum", hex: "c2 49 010000000000000000", want: "tags are not allowed"},
	{name: "value-indefinite-array", hex: "9f ff", want: "indefinite lengths are not allowed"},
	{name: "value-indefinite-map", hex: "bf ff", want: "indefinite lengths are not allowed"},
	{name: "value-indefinite-text", hex: "7f 6161 ff", want: "indefinite lengths are not allowed"},
	{name: "value-indefinite-bytes", hex: "5f 4101 ff", want: "indefinite lengths are not allowed"},
	{name: "value-indefinite-int", hex: "1f", want: "malformed item 0x1f"},
	{name: "value-reserved-info", hex: "1c", want: "malformed item 0x1c"},
	{name: "value-break", hex: "ff", want: "unknown simple value 0xff"},
	{name: "value-undefined", hex: "81 f7", want: "0: undefined is not allowed (at byte 1)"},
	{name: "value-simple-0", hex: "e0", want: "unknown simple value"},
	{name: "value-simple-byte", hex: "f8 ff", want: "unknown simple value"},
	{name: "value-simple-true-wide", hex: "f8 15", want: "unknown simple value"},
	{name: "value-nan-half", hex: "f9 7e00", want: "NaN and infinities are not allowed"},
	{name: "value-nan-double", hex: "fb 7ff8000000000001", want: "NaN and infinities are not allowed"},
	{name: "value-infinity-half", hex: "f9 7c00", want: "NaN and infinities are not allowed"},
	{name: "value-infinity-single", hex: "fa ff800000", want: "NaN and infinities are not allowed"},
	{name: "value-infinity-double", hex: "a1 6161 fb 7ff0000000000000", want: "a: NaN and infinities are not allowed"},
	{name: "value-int-below-min", hex: "3b 8000000000000000", want: "integer below -2^63"},
	{name: "value-text-not-utf8", hex: "62 c328", want: "text is not valid UTF-8"},
	{name: "value-text-surrogate", hex: "63 eda080", want: "text is not valid UTF-8"},
	{name: "value-key-not-utf8", hex: "a1 61ff 00", want: "text is not valid UTF-8"},
	{name: "value-key-int", hex: "a1 01 02", want: "a map key must be text"},
	{name: "value-key-bytes", hex: "a1 4161 02", want: "a map key must be text"},
	{name: "value-key-twice", hex: "a2 6161 01 6161 02", want: "a: duplicate key (at byte 4)"},
	{name: "value-key-twice-apart", hex: "a3 6162 01 6161 02 6162 03", want: "b: duplicate key (at byte 7)"},
	{name: "value-key-twice-in-other-width", hex: "a2 6161 01 7801 61 02", want: "a: duplicate key"},
	{name: "value-key-twice-below", hex: "a1 6178 81 a3 6162 01 6161 02 6162 03", want: "x.0.b: duplicate key"},
	{name: "value-key-bytes-alone", hex: "a1 66 246279746573 61 61", want: `a map whose only key is "$bytes"`},
	{name: "value-depth-65", hex: nested65, want: "nested too deep (at byte 64)"},
}

var refusedSteps = []refused{
	{name: "event-no-body", json: `["E"]`, want: "has 1 items, needs at least 2"},
	{name: "event-longer", json: `["E", {}, 1, null]`, want: "has 4 items, at most 3 are known: needs a newer weft"},
	{name: "event-type-empty", json: `["", {}]`, want: "type: must be 1 to 256 bytes long, not 0 (at byte 1)"},
	{name: "event-type-257", json: `["` + strings.Repeat("e", 257) + `", {}]`, want: "type: must be 1 to 256 bytes long, not 257"},
	{name: "event-body-list", json: `["E", []]`, want: "body: must be a map, not an array"},
	{name: "event-body-null", json: `["E", null]`, want: "body: must be a map, not a simple value"},
	{name: "event-body-key-twice", hex: "82 6145 a3 6162 01 6161 02 6162 03", want: "body.b: duplicate key (at byte 10)"},
	{name: "event-body-depth-65", hex: "82 6145 a1 616b" + nested65[2:], want: "body.k.0.0.0"},
	{name: "event-id-negative", json: `["E", {}, -1]`, want: "id: must be an unsigned integer, not a negative integer"},
	{name: "event-id-float", json: `["E", {}, 1.0]`, want: "id: must be an unsigned integer, not a simple value"},
	{name: "event-map", json: `{"type": "E"}`, want: "must be an array, not a map"},

	{name: "error-no-code", json: `{"message": "m"}`, want: "code: is missing (at byte 0)"},
	{name: "error-no-message", json: `{"code": "c"}`, want: "message: is missing"},
	{name: "error-unknown-key", json: `{"code": "c", "message": "m", "cause": 1}`, want: `unknown key "cause": needs a newer weft (at byte 8)`},
	{name: "error-key-twice", hex: "a3 64636f6465 6163 64636f6465 6163 676d657373616765 616d", want: "code: duplicate key"},
	{name: "error-retryable-null", json: `{"code": "c", "message": "m", "retryable": null}`, want: "retryable: must be true or false"},
	{name: "error-code-int", json: `{"code": 1, "message": "m"}`, want: "code: must be text, not an unsigned integer"},

	{name: "step-input-short", json: `["s", ["E", {}]]`, want: "has 2 items, needs at least 3"},
	{name: "step-input-step-empty", json: `["", ["E", {}], ["t", "w", "r", "s", 1, 1, 0]]`, want: "step: must be 1 to 128 bytes long"},
	{name: "step-input-trigger-null", json: `["s", null, ["t", "w", "r", "s", 1, 1, 0]]`, want: "trigger: must be an event or an array of events"},
	{name: "step-input-trigger-body", json: `["s", [["E", {}], ["E", 1]], ["t", "w", "r", "s", 1, 1, 0]]`, want: "trigger.1.body: must be a map"},
	{name: "step-input-workflow", json: `["s", ["E", {}], ["t", "Work", "r", "s", 1, 1, 0]]`, want: "run.workflow: must match"},
	{name: "step-input-clock-float", json: `["s", ["E", {}], ["t", "w", "r", "s", 1, 1, 0.0]]`, want: "run.clock: must be an integer"},
	{name: "step-input-clock-large", json: `["s", ["E", {}], ["t", "w", "r", "s", 1, 1, 9223372036854775808]]`, want: "run.clock: must be within 64 bits"},
	{name: "step-input-last-error", json: `["s", ["E", {}], ["t", "w", "r", "s", 1, 1, 0, {"code": "c"}]]`, want: "run.last-error.message: is missing"},
	{name: "step-input-config-list", json: `["s", ["E", {}], ["t", "w", "r", "s", 1, 1, 0], []]`, want: "config: must be a map"},

	{name: "step-output-empty", json: `[]`, want: "has 0 items, needs at least 2"},
	{name: "step-output-outcome-2", json: `[2, null]`, want: "outcome: must be 0 or 1 (at byte 1)"},
	{name: "step-output-error-null", json: `[1, null]`, want: "error: must be a map"},
	{name: "step-output-error-unknown-key", json: `[1, {"code": "c", "message": "m", "fatal": true}]`, want: `error: unknown key "fatal": needs a newer weft`},
	{name: "step-output-event-map", json: `[0, {}]`, want: "events: must be an event or an array of events, not a map"},
	{name: "step-output-second-event", json: `[0, [["E", {}], ["", {}]]]`, want: "events.1.type: must be 1 to 256"},
	{name: "step-output-longer", json: `[0, null, 1]`, want: "needs a newer weft"},
}

var refusedCalls = []refused{
	{name: "state_get-path-bytes", json: `[{"$bytes": "YQ=="}]`, want: "path: must be text, not a byte string"},
	{name: "state_get-path-4097", json: `["` + strings.Repeat("p", 4097) + `"]`, want: "path: must be 0 to 4096 bytes long"},
	{name: "state_get-segments-65", json: `["a` + strings.Repeat(".a", 64) + `"]`, want: "path: has 65 segments, at most 64"},
	{name: "state_get-longer", json: `["a", 1, 2]`, want: "needs a newer weft"},
	{name: "state_edit-none", json: `[]`, want: "has 0 items, needs at least 1"},
	{name: "state_edit-empty", json: `[[]]`, want: "0: has 0 items, needs at least 1"},
	{name: "state_edit-unknown-op", json: `[["clear"], ["rename", "a", "b"]]`, want: `1.op: unknown operation "rename": needs a newer weft`},
	{name: "state_edit-set-no-value", json: `[["set", "a"]]`, want: "0: has 2 items, needs at least 3"},
	{name: "state_edit-delete-value", json: `[["delete", "a", 1]]`, want: "0: has 3 items, at most 2"},
	{name: "state_edit-clear-path", json: `[["clear", "a"]]`, want: "0: has 2 items, at most 1"},
	{name: "state_edit-increment-text", json: `[["increment", "a", "1"]]`, want: "0.value: must be a number"},
	{name: "state_edit-increment-null", json: `[["increment", "a", null]]`, want: "0.value: must be a number"},
	{name: "state_edit-merge-list", json: `[["merge", "a", []]]`, want: "0.value: must be a map"},
	{name: "state_begin-none", json: `[]`, want: "has 0 items, needs at least 1"},
	{name: "state_commit-none", json: `[]`, want: "has 0 items, needs at least 1"},
	{name: "state_abort-more", json: `[1]`, want: "has 1 items, at most 0"},
	{name: "now-null", json: `null`, want: "must be an array"},
	{name: "send_event-step-empty", json: `[["E", {}], ""]`, want: "step: must be 1 to 128 bytes long"},
	{name: "collect_events-expected-text", json: `[["E", {}], "E"]`, want: "expected: must be an array, not text"},
	{name: "collect_events-expected-empty-name", json: `[["E", {}], ["E", ""]]`, want: "expected.1: must be 1 to 256 bytes long"},
	{name: "wait_for_event-no-type", json: `{"timeout": 1}`, want: "type: is missing"},
	{name: "wait_for_event-unknown-key", json: `{"type": "E", "deadline": 1}`, want: `unknown key "deadline": needs a newer weft`},
	{name: "wait_for_event-timeout-negative", json: `{"type": "E", "timeout": -1}`, want: "timeout: must be an unsigned integer"},
	{name: "wait_for_event-timeout-large", json: `{"type": "E", "timeout": 9223372036854775808}`, want: "timeout: must be at most 2^63-1 nanoseconds"},
	{name: "wait_for_event-requirements-list", json: `{"type": "E", "requirements": []}`, want: "requirements: must be a map"},
	{name: "write_event_to_stream-bare", json: `["E", {}]`, want: "has 2 items, at most 1"},
	{name: "run_workflow-name", json: `{"workflow": "../x", "event": ["StartEvent", {}]}`, want: "workflow: must match"},
	{name: "run_workflow-not-shared", json: `{"workflow": "w", "event": ["StartEvent", {}], "session": {"shared": false}}`, want: "session.shared: must be true, or absent"},
	{name: "run_workflow-session-key", json: `{"workflow": "w", "event": ["StartEvent", {}], "session": {"name": "s"}}`, want: `session: unknown key "name"`},
	{name: "call_resource-short", json: `["llm", "POST"]`, want: "has 2 items, needs at least 3"},
	{name: "sleep-float", json: `[1.5]`, want: "duration: must be an unsigned integer"},
	{name: "random-4097", json: `[4097]`, want: "n: must be 0 to 4096, not 4097"},
	{name: "log-level-1", json: `[1, "m"]`, want: "level: must be -4, 0, 4 or 8, not 1"},
	{name: "log-attrs-null", json: `[0, "m", null]`, want: "attrs: must be a map"},
}

// manifestJSON returns a manifest with more members in its only step and at the
// top.
func manifestJSON(step, more string) string {
	return `{"abi": 1, "workflow": "w", "events": {}, "steps": [{"name": "s", "accepts": ["StartEvent"]` + step + `}]` + more + `}`
}

var refusedManifests = []refused{
	{name: "manifest-abi-2", json: strings.Replace(manifestJSON("", ""), `"abi": 1`, `"abi": 2`, 1), want: "abi: version 2 is not served, only 1"},
	{name: "manifest-no-steps", json: `{"abi": 1, "workflow": "w", "events": {}}`, want: "steps: is missing"},
	{name: "manifest-steps-empty", json: `{"abi": 1, "workflow": "w", "events": {}, "steps": []}`, want: "steps: has 0 items, needs at least 1"},
	{name: "manifest-unknown-key", json: manifestJSON("", `, "license": "MIT"`), want: `unknown key "license": needs a newer weft`},
	{name: "manifest-workflow-name", json: strings.Replace(manifestJSON("", ""), `"w"`, `"-w"`, 1), want: "workflow: must match [a-z0-9][a-z0-9._-]{0,127}"},
	{name: "manifest-timeout-text", json: manifestJSON("", `, "timeout": "45s"`), want: "timeout: must be an unsigned integer, not text"},
	{name: "manifest-part-int", json: manifestJSON("", `, "part": 1`), want: "part: must be true or false"},
	{name: "manifest-state-schema-list", json: manifestJSON("", `, "state": {"schema": []}`), want: "state.schema: must be a map"},
	{name: "manifest-state-unknown-key", json: manifestJSON("", `, "state": {"defaults": {}}`), want: `state: unknown key "defaults"`},
	{name: "manifest-resource-no-kind", json: manifestJSON("", `, "resources": [{"name": "llm"}]`), want: "resources.0.kind: is missing"},
	{name: "manifest-event-kind", json: strings.Replace(manifestJSON("", ""), `"events": {}`, `"events": {"E": {"kind": "begin"}}`, 1), want: `events.E.kind: unknown kind "begin"`},
	{name: "manifest-event-name-empty", json: strings.Replace(manifestJSON("", ""), `"events": {}`, `"events": {"": {}}`, 1), want: `events."": must be 1 to 256 bytes long`},
	{name: "manifest-event-twice", hex: "a4 63616269 01 666576656e7473 a2 6145 a0 6145 a0", want: "events.E: duplicate key (at byte 17)"},
	{name: "manifest-step-name-129", json: strings.Replace(manifestJSON("", ""), `"s"`, `"`+strings.Repeat("s", 129)+`"`, 1), want: "steps.0.name: must be 1 to 128 bytes long, not 129"},
	{name: "manifest-step-name-reserved", json: strings.Replace(manifestJSON("", ""), `"s"`, `"cancelled"`, 1), want: `steps.0.name: "cancelled" is reserved`},
	{name: "manifest-step-no-accepts", json: `{"abi": 1, "workflow": "w", "events": {}, "steps": [{"name": "s"}]}`, want: "steps.0.accepts: is missing"},
	{name: "manifest-step-unknown-key", json: manifestJSON(`, "priority": 1`, ""), want: `steps.0: unknown key "priority": needs a newer weft`},
	{name: "manifest-workers-0", json: manifestJSON(`, "workers": 0`, ""), want: "steps.0.workers: must be 1 to 1000, not 0"},
	{name: "manifest-workers-1001", json: manifestJSON(`, "workers": 1001`, ""), want: "steps.0.workers: must be 1 to 1000, not 1001"},
	{name: "manifest-slot-kind", json: strings.Replace(manifestJSON("", ""), `"StartEvent"`, `["all", ["E"]]`, 1), want: `steps.0.accepts.0.kind: unknown kind of slot "all"`},
	{name: "manifest-slot-any-take", json: strings.Replace(manifestJSON("", ""), `"StartEvent"`, `["any", ["E"], 2]`, 1), want: "steps.0.accepts.0: has 3 items, at most 2"},
	{name: "manifest-slot-take-0", json: strings.Replace(manifestJSON("", ""), `"StartEvent"`, `["list", ["E"], 0]`, 1), want: "steps.0.accepts.0.take: must be 1 to 4294967295, not 0"},
	{name: "manifest-slot-take-large", json: strings.Replace(manifestJSON("", ""), `"StartEvent"`, `["list", ["E"], 4294967296]`, 1), want: "take: must be 1 to 4294967295"},
	{name: "manifest-slot-no-types", json: strings.Replace(manifestJSON("", ""), `"StartEvent"`, `["list", []]`, 1), want: "steps.0.accepts.0.types: has 0 items"},
	{name: "manifest-emit-any", json: manifestJSON(`, "emits": ["E", ["any", ["E"]]]`, ""), want: `steps.0.emits.1.kind: unknown kind of emit "any"`},
	{name: "manifest-catches-text", json: manifestJSON(`, "catches": "all"`, ""), want: `steps.0.catches: must be an array of names or "*"`},
	{name: "manifest-waits-empty-name", json: manifestJSON(`, "waits": [""]`, ""), want: "steps.0.waits.0: must be 1 to 256"},
	{name: "manifest-retry-unknown-key", json: manifestJSON(`, "retry": {"until": 1}`, ""), want: `steps.0.retry: unknown key "until"`},
	{name: "manifest-retry-when-word", json: manifestJSON(`, "retry": {"when": "sometimes"}`, ""), want: `steps.0.retry.when: unknown word "sometimes"`},
	{name: "manifest-retry-when-two", json: manifestJSON(`, "retry": {"when": {"code": ["a"], "message": "b"}}`, ""), want: "retry.when: must have exactly one key, not 2"},
	{name: "manifest-retry-when-none", json: manifestJSON(`, "retry": {"when": {}}`, ""), want: "retry.when: must have exactly one key, not 0"},
	{name: "manifest-retry-base-int", json: manifestJSON(`, "retry": {"wait": {"exponential": [1, 2, 3]}}`, ""), want: "retry.wait.exponential.base: must be a float"},
	{name: "manifest-retry-base-zero", json: manifestJSON(`, "retry": {"wait": {"exponential": [1, 0.0, 3]}}`, ""), want: "base: must be finite and greater than 0"},
	{name: "manifest-retry-base-negative", json: manifestJSON(`, "retry": {"wait": {"exponential_jitter": [1, -1.5, 3, 4]}}`, ""), want: "exponential_jitter.base: must be finite and greater than 0"},
	{name: "manifest-retry-random-turned", json: manifestJSON(`, "retry": {"wait": {"random": [2, 1]}}`, ""), want: "retry.wait.random: max must not be less than min"},
	{name: "manifest-retry-fixed-negative", json: manifestJSON(`, "retry": {"wait": {"fixed": -1}}`, ""), want: "retry.wait.fixed: must be an unsigned integer"},
	{name: "manifest-retry-chain-empty", json: manifestJSON(`, "retry": {"wait": {"chain": []}}`, ""), want: "retry.wait.chain: has 0 items"},
	{name: "manifest-retry-stop-always", json: manifestJSON(`, "retry": {"stop": "always"}`, ""), want: `retry.stop: unknown word "always"`},
	{name: "manifest-retry-depth-73", hex: "a1 657374657073 81 a1 657265747279 a1 647768656e" + strings.Repeat("a1 636e6f74", abi.MaxMessageDepth-3), want: "nested too deep"},
}

func allRefused() []refused {
	return slices.Concat(refusedValues, refusedSteps, refusedCalls, refusedManifests)
}

func TestInvalidVectors(t *testing.T) {
	if *update {
		replaceFolder(t, invalidDir, ".cbor", ".txt")
	}
	var names []string
	for _, r := range allRefused() {
		names = append(names, r.name)
		t.Run(r.name, func(t *testing.T) { checkRefused(t, r) })
	}
	slices.Sort(names)
	if files := vectorFiles(t, invalidDir); !slices.Equal(names, files) {
		t.Errorf("files and literals differ: run with -update\nfiles    %v\nliterals %v", files, names)
	}
}

func checkRefused(t *testing.T, r refused) {
	rule, c := ruleOf(t, r.name)
	b := r.bytes(t)
	if *update {
		writeFile(t, b, invalidDir, r.name+".cbor")
		writeFile(t, fmt.Appendf(nil, "rule: %s\nerror: %s\n", rule, r.want), invalidDir, r.name+".txt")
	}
	if file := readFile(t, invalidDir, r.name+".cbor"); string(file) != string(b) {
		t.Fatalf("the file holds %x, not %x", file, b)
	}
	text := string(readFile(t, invalidDir, r.name+".txt"))
	if want := fmt.Sprintf("rule: %s\nerror: %s\n", rule, r.want); text != want {
		t.Fatalf("the text holds %q, not %q", text, want)
	}
	v, err := c.decode(b)
	if err == nil {
		t.Fatalf("accepted as %#v", v)
	}
	if !strings.Contains(err.Error(), r.want) {
		t.Errorf("error %q, want %q in it", err, r.want)
	}
}
