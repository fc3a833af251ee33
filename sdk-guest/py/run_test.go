package py_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// Every vector decodes to a value of Python that encodes to the same bytes.
func TestVectors(t *testing.T) {
	p := evaluator(t)
	files, err := filepath.Glob(filepath.Join(suite.Root(), "testdata", "abi", "*.cbor"))
	if err != nil || len(files) < 90 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	var all []any
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	body, err := abi.EncodeValue(map[string]any{"all": all, "script": "import _weft\ndef run(): return [_weft.encode(_weft.decode(b)) for b in ev.all]"})
	if err != nil {
		t.Fatal(err)
	}
	res := p.invoke(t, &calls{}, "run", "StartEvent", "{}", func(inv *host.Invocation) {
		in, err := abi.DecodeStepInput(inv.Input)
		if err != nil {
			t.Fatal(err)
		}
		in.Trigger[0].Body = body
		if inv.Input, err = in.Encode(); err != nil {
			t.Fatal(err)
		}
	})
	out, err := abi.DecodeStepOutput(res.Output)
	if err != nil || out.Err != nil {
		t.Fatalf("%v %v %v", res.Err, err, out.Err)
	}
	v, err := abi.DecodeValue(out.Events[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	got := v.(map[string]any)["result"].([]any)
	for i, want := range all {
		if abi.Diag(got[i].([]byte)) != abi.Diag(want.([]byte)) {
			t.Errorf("%s: encoded again as\n%s\nwant\n%s", files[i], abi.Diag(got[i].([]byte)), abi.Diag(want.([]byte)))
		}
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	wantResult(t, `
import _weft
def run():
    seen = []
    for text in ["", "18", "1b00000000000000", "62c328", "63eda080", "7bffffffffffffffff", "5bffffffffffffffff", "9bffffffffffffffff", "bbffffffffffffffff",
                 "9f00ff", "c000", "f7", "f97e00", "3bffffffffffffffff", "a10001", "a2616100616101", "0000", "81" * 73 + "00", "81" * 100000]:
        try:
            seen.append(["decoded", repr(_weft.decode(bytes.fromhex(text)))])
        except ValueError as e:
            if not str(e).startswith("malformed CBOR at byte "): seen.append([text[:20], str(e)])
    return seen`, `[]`)
}

func TestValues(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{`[1, -1, 2**64 - 1, -2**63, 1.5, 2.0, -0.0, True, None]`, `[1,-1,18446744073709551615,-9223372036854775808,1.5,2.0,-0.0,true,null]`},
		{`["\ud800", b"\x01\xff", (1, 2), {1}]`, `["�",{"$bytes":"Af8="},[1,2],[1]]`},
		{`[__import__("datetime").datetime(2026, 1, 2), __import__("enum").Enum("E", "a").a, range(3), __import__("decimal").Decimal("1.5")]`, `["2026-01-02T00:00:00",1,[0,1,2],"1.5"]`},
		{`weft.Event(a=1, b=weft.StopEvent("x"))`, `{"a":1,"b":{"result":"x"}}`},
		{`[__import__("json").dumps({"a": [1, None]}), __import__("re").findall(r"\d+", "a1b22"), __import__("hashlib").sha256(b"abc").hexdigest()[:8]]`,
			`["{\"a\": [1, null]}",["1","22"],"ba7816bf"]`},
		{`[open("notes.txt").read(), __import__("pure").answer, __import__("pathlib").Path("notes.txt").read_text()]`, `["read me\n",42,"read me\n"]`},
	} {
		wantResult(t, "def run(): return "+tt.script, tt.want)
	}
	for _, tt := range []struct{ script, code, want string }{
		{`{"items": [1, {"when": float("nan")}]}`, "error", "ValueError: nan is not a value that can leave a step (at result.items[1].when)"},
		{`2**64`, "panic", "OverflowError: an integer must be from -2^63 to 2^64-1 (at result)"},
		{`{1: 2}`, "panic", "TypeError: a key of a dict must be a str: 1 is int (at result)"},
		{`[lambda: 1]`, "panic", "an object of the type function cannot leave a step: use numbers, text, bytes, lists, dicts or models (at result[0])"},
		{`(lambda a: a.append(a) or a)([])`, "error", "a value that contains itself cannot leave a step"},
	} {
		wantError(t, "def run(): return "+tt.script, tt.code, tt.want)
	}
}

func TestErrorsOfAStep(t *testing.T) {
	for _, tt := range []struct{ script, code, want string }{
		{"def run():\n    return None.x", "panic", "AttributeError: 'NoneType' object has no attribute 'x' (script.py:2)"},
		{"def run():\n    return helper.fail(1)", "panic", `"stack":["fail (helper.py:5)","run (script.py:2)"`},
		{"def run():\n    raise ValueError('bad') from KeyError('deep')", "error", `ValueError: bad (script.py:2)`},
		{"def run():\n    raise weft.WeftError('busy', code='unavailable', data={'after': 3})", "unavailable", `{"after":3}`},
		{"def run(): raise SystemExit(3)", "error", "SystemExit: 3"},
		{"async def run(): await asyncio.Event().wait()", "failed_precondition", "step run waits for something that nothing in the step brings about"},
		{"class E(Exception):\n    def __str__(self): raise self\ndef run(): raise E()", "error", "(an exception without text)"},
		{"async def run():\n    async with asyncio.TaskGroup() as g: g.create_task(ctx.store.missing())", "panic", "has no attribute 'missing'"},
		{"def run(): ctx.send_event(weft.StartEvent())", "invalid_message", "step run does not declare StartEvent: add it to the annotation of its result"},
		{"async def run(): await ctx.wait_for_event(weft.HumanResponseEvent)", "invalid_message", "add @step(waits=[HumanResponseEvent])"},
	} {
		wantError(t, tt.script, tt.code, tt.want)
	}
}

// What a step does not have says what to use instead.
func TestWhatToUseInstead(t *testing.T) {
	for script, want := range map[string]string{
		"import requests":            "a step has no module requests: use await ctx.http(name)",
		"import socket":              "use await ctx.http(name)",
		"import urllib.request":      "use await ctx.http(name)",
		"import subprocess":          "return a list of events",
		"import numpy":               "native code",
		"import pydantic":            "import BaseModel and Field from weft",
		"import workflows":           "import from weft instead",
		"import nowhere":             "pip install --target vendor nowhere",
		"import sqlite3":             "keep data in ctx.store",
		"import time; time.sleep(1)": "use await ctx.sleep(seconds), or await asyncio.sleep(seconds)",
		"open('/etc/passwd')":        "a step has no files but those of its project (notes.txt)",
		"open('x', 'w')":             "a step cannot write files (x): keep data in ctx.store",
		"import os; os.system('ls')": "a step cannot run programs",
		"input('?')":                 "InputRequiredEvent",
		"import threading; threading.Thread().start()": "a step has no threads: return a list of events",
		"asyncio.run(asyncio.sleep(0))":                "weft runs the steps",
		"weft.Workflow().run()":                        "ctx.run_workflow(name, ...)",
	} {
		t.Run("", func(t *testing.T) {
			got, failed := evaluate(t, &calls{}, "def run():\n    "+script, nil)
			if failed == nil || !strings.Contains(failed.Message, want) {
				t.Errorf("%s: %v %v, want %q", script, got, failed, want)
			}
		})
	}
}

func TestAsyncio(t *testing.T) {
	wantResult(t, `
import time
async def work(name, delay, log):
    await asyncio.sleep(delay)
    log.append([name, round(time.time() - start)])
    return name
async def run():
    global start
    start, log = time.time(), []
    done = await asyncio.gather(work("c", 20, log), work("a", 1, log), work("b", 10, log))
    async with asyncio.TaskGroup() as g:
        t = g.create_task(work("d", 86400 * 30, log))
    try:
        async with asyncio.timeout(5): await asyncio.sleep(50)
    except TimeoutError:
        log.append("timeout")
    q = asyncio.Queue(1)
    async def fill():
        for i in range(3): await q.put(i)
    g = asyncio.create_task(fill())
    got = [await q.get() for _ in range(3)]
    lock = asyncio.Lock()
    async with lock: pass
    asyncio.create_task(asyncio.sleep(1e9))
    return [done, log, t.result(), got, await asyncio.to_thread(sum, [1, 2])]`,
		`[["c","a","b"],[["a",1],["b",10],["c",20],["d",2592020],"timeout"],"d",[0,1,2],3]`)
}

// Every invocation starts from the same memory: nothing that a step changes is seen by the
// next. Chance is that of the invocation: the same seed gives the same numbers, another seed
// gives others, whether the module was imported while describing or in the step, and whether
// the author's code drew from it while describing. Hashes and the clock are the same.
func TestPristine(t *testing.T) {
	const script = `
import random, secrets, time, uuid, builtins, gc, os
def run():
    builtins.leak = getattr(builtins, "leak", 0) + 1
    weft.Event.leak = getattr(weft.Event, "leak", 0) + 1
    helper.names.add(f"e{len(helper.names)}")
    chance = [random.random(), random.randint(1, 10**9), random.choice(range(10**9)), random.Random().random(), random.SystemRandom().random(),
              secrets.token_hex(8), secrets.randbelow(10**9), str(uuid.uuid4()), str(uuid.uuid1()), os.urandom(8).hex()]
    same = [helper.add(), builtins.leak, weft.Event.leak, helper.drawn, helper.generator.random(), list(helper.names), hash("weft"), hash(1.5), id(helper),
            time.time(), time.monotonic(), time.perf_counter(), len(gc.get_objects())]
    return [same, chance]
`
	evaluate := func(seed byte) (same, chance []any) {
		t.Helper()
		rnd := byte(0)
		c := &calls{answer: func(im abi.Import, req []byte) ([]byte, abi.Status) {
			if im != abi.ImportRandom {
				return abi.Null, abi.StatusOK
			}
			n, err := abi.DecodeValue(req)
			if err != nil {
				t.Error(err)
			}
			out := make([]byte, n.([]any)[0].(int64))
			for i := range out {
				rnd = rnd*5 + 3
				out[i] = rnd + seed
			}
			answer, err := abi.EncodeValue(out)
			if err != nil {
				t.Error(err)
			}
			return answer, abi.StatusOK
		}}
		got, failed := evaluate(t, c, script, func(inv *host.Invocation) { inv.Seed = [32]byte{seed} })
		var lists [2][]any
		if err := json.Unmarshal([]byte(got), &lists); failed != nil || err != nil {
			t.Fatalf("%s %v %v", got, failed, err)
		}
		return lists[0], lists[1]
	}
	same, chance := evaluate(1)
	if got := fmt.Sprint(same[:3]); got != "[1 1 1]" {
		t.Errorf("the first invocation has changed %s", got)
	}
	for range 20 {
		if s, c := evaluate(1); !reflect.DeepEqual(s, same) || !reflect.DeepEqual(c, chance) {
			t.Fatalf("a later invocation gives\n%v %v, the first\n%v %v", s, c, same, chance)
		}
	}
	s, c := evaluate(9)
	if !reflect.DeepEqual(s, same) {
		t.Errorf("with another seed\n%v, want\n%v", s, same)
	}
	for i := range c {
		if c[i] == chance[i] {
			t.Errorf("number %d by chance is %v with another seed too", i, c[i])
		}
	}
}

func TestHostileScriptsAreStopped(t *testing.T) {
	small := func(inv *host.Invocation) { inv.Limits.Fuel = 300_000_000 }
	for _, tt := range []struct{ name, script, code string }{
		{"loop", "def run():\n    while True: pass", "fuel_exhausted"},
		{"caught", "def run():\n    while True:\n        try: run()\n        except BaseException: pass", "fuel_exhausted"},
		{"regexp", "import re\ndef run(): return re.match(r'^(a+)+$', 'a' * 60 + 'b')", "fuel_exhausted"},
		{"tasks", "async def run():\n    while True: await asyncio.sleep(0)", "fuel_exhausted"},
		{"sleeps", "async def run():\n    while True: await asyncio.sleep(1)", "fuel_exhausted limit_exceeded"},
		{"integers", "def run(): return 10 ** 10 ** 9", "fuel_exhausted"},
		{"recursion", "def run(): return run()", "panic"},
		{"recursion in C", "def run():\n    a = []\n    for _ in range(100000): a = [a]\n    return repr(a)", "panic"},
		{"recursion by a key", "def run(): return sorted([1, 2], key=lambda _: run())", "panic"},
		{"recursion of JSON", "import json\ndef run(): return json.loads('[' * 100000)", "panic"},
		{"recursion of a parser", "def run(): return eval('(' * 100000 + ')' * 100000)", "panic"},
		{"recursion without a limit", "import sys\nsys.setrecursionlimit(10**6)\ndef run(): return sorted([1], key=lambda _: run())", "call_depth trap"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, failed := evaluate(t, &calls{}, tt.script, small)
			if failed == nil || !strings.Contains(" "+tt.code+" ", " "+failed.Code+" ") {
				t.Errorf("%s %v, want %s", got, failed, tt.code)
			}
		})
	}
	t.Run("memory", func(t *testing.T) {
		_, failed := evaluate(t, &calls{}, "def run():\n    a = []\n    while True: a.append(bytes(1 << 20))", nil)
		if failed == nil || failed.Code != "memory_exhausted" && !strings.Contains(failed.Message, "MemoryError") {
			t.Errorf("failed = %v", failed)
		}
	})
}

func TestErrorsWhileDescribing(t *testing.T) {
	const head = "from weft import StartEvent, StopEvent, Workflow, step, Context, Event\n"
	for _, tt := range []struct{ name, main, want string }{
		{"syntax", head + "def f(:\n    pass\n", "SyntaxError: invalid syntax (main.py:2)"},
		{"import", head + "import requests\n", "a step has no module requests: use await ctx.http(name)"},
		{"chance", head + "import uuid\nID = uuid.uuid4()\n", "call uuid4, secrets or os.urandom in a step (main.py:3)"},
		{"chance of a state", head + `import secrets, weft
class State(weft.BaseModel):
    token: str = weft.Field(default_factory=lambda: secrets.token_hex(8))
class A(Workflow):
    @step
    async def one(self, ctx: Context[State], ev: StartEvent) -> StopEvent:
        return StopEvent()
`, "call uuid4, secrets or os.urandom in a step (main.py:4)"},
		{"faults", head + `class A(Workflow):
    @step
    async def one(self, ev: StartEvent):
        pass
    @step(num_workers=0)
    async def two(self, ev: int) -> StopEvent:
        pass
`, "workflow a: 3 faults:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			suite.OnlySoak(t) // each compiles the engine; TestMistakes has two
			_, _, err := load(build(t, map[string]string{"main.py": tt.main}))
			if err == nil || !strings.Contains(problems(err), tt.want) {
				t.Errorf("error = %s, want %q", problems(err), tt.want)
			}
		})
	}
}

// The author's files stay intact, however much memory a step takes.
func TestFilesStayIntact(t *testing.T) {
	wantResult(t, `
import _weft
def run():
    before = _weft.files()
    taken = [bytearray(b"\xff" * (1 << 16)) for _ in range(500)]
    return [_weft.files() == before, len(before), len(taken)]`, `[true,4,500]`)
}

// The fuel of a step is what its author pays beyond the work of the function.
func TestFuelOfACounterStep(t *testing.T) {
	const most = 115_000
	p := evaluator(t)
	state, err := abi.EncodeValue(map[string]any{"count": int64(4)})
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{answer: func(im abi.Import, _ []byte) ([]byte, abi.Status) {
		if im == abi.ImportStateBegin {
			return state, abi.StatusOK
		}
		return abi.Null, abi.StatusOK
	}}
	res := p.invoke(t, c, "counter", "HumanResponseEvent", "{}", nil)
	again := p.invoke(t, c, "counter", "HumanResponseEvent", "{}", nil)
	if got, failed := result(t, res); failed != nil || got != "5" || again.Fuel != res.Fuel {
		t.Fatalf("result = %s %v %+v, then %d units", got, failed, res, again.Fuel)
	}
	t.Logf("%d units", res.Fuel)
	if res.Fuel > most {
		t.Errorf("a counter step burns %d units, at most %d are meant", res.Fuel, most)
	}
}

// A step imports modules of the library that describing has not imported; the bytecode of
// those that it has imported is gone.
func TestImportsInAStep(t *testing.T) {
	wantResult(t, `
import importlib, sys
def run():
    seen = []
    for name in ["statistics", "html", "xml.etree.ElementTree", "csv", "difflib"]:
        seen.append(name in sys.modules)
        importlib.import_module(name)
    try:
        importlib.reload(sys.modules["json"])
    except ImportError as e:
        seen.append(str(e))
    return seen`, `[false,false,false,false,false,"Excluded frozen object named 'json'"]`)
}

// A typed edit writes what its class declares, and keeps the rest.
func TestEditKeepsUndeclaredFields(t *testing.T) {
	state, err := abi.EncodeValue(map[string]any{"count": int64(4), "of": "another", "list": []any{int64(1)}})
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[string]string{
		"weft.BaseModel": `{"of": "another", "list": [1], "count": 5}`,
		"weft.DictState": `{"count": 5, "list": [1]}`, // it has all entries, so that an entry can be deleted
	} {
		var committed []byte
		c := &calls{answer: func(im abi.Import, req []byte) ([]byte, abi.Status) {
			switch im {
			case abi.ImportStateBegin:
				return state, abi.StatusOK
			case abi.ImportStateCommit:
				committed = req
			}
			return abi.Null, abi.StatusOK
		}}
		got, failed := evaluate(t, c, `
class State(`+class+`):
    count: int = 0
async def run():
    async with weft._state.Store(State).edit_state() as state:
        state.count += 1
        if "of" in dir(state): del state["of"]
    return state.count`, nil)
		if failed != nil || got != "5" || !strings.Contains(abi.Diag(committed), want) {
			t.Errorf("%s: %s %v, committed %s, want %s", class, got, failed, abi.Diag(committed), want)
		}
	}
}

// Models within the state keep what they do not declare as well, also when they move within
// the state or are copied; other values do not get it.
func TestNestedModelsKeepUndeclaredFields(t *testing.T) {
	state, err := abi.EncodeValue(map[string]any{
		"items": []any{map[string]any{"name": "tea", "price": int64(3)}, map[string]any{"name": "jam", "price": int64(4)}},
		"owner": map[string]any{"name": "Ada", "address": map[string]any{"city": "London", "zip": "N1"}},
		"by":    map[string]any{"a": map[string]any{"n": int64(1), "of": "another"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	c := &calls{answer: func(im abi.Import, req []byte) ([]byte, abi.Status) {
		switch im {
		case abi.ImportStateBegin, abi.ImportStateGet:
			return state, abi.StatusOK
		case abi.ImportStateCommit, abi.ImportStateEdit:
			written = append(written, abi.Diag(req))
		}
		return abi.Null, abi.StatusOK
	}}
	got, failed := evaluate(t, c, `
import dataclasses
class Item(weft.BaseModel):
    name: str
class Address(weft.BaseModel):
    city: str
class Owner(weft.BaseModel):
    name: str
    address: Address
@dataclasses.dataclass
class Count:
    n: int
class State(weft.BaseModel):
    items: list[Item]
    owner: Owner
    by: dict[str, Count]
async def run():
    store = weft._state.Store(State)
    async with store.edit_state() as state:
        state.items.reverse()
        state.items[0] = state.items[0].model_copy(update={"name": "honey"})
        state.owner.address.city = "Paris"
        state.by["a"].n += 1
        given = [state.model_dump(), state.owner]
    await store.set_state(await store.get_state())
    return [given, Item(name="x", price=1)]`, nil)
	if want := `[[{"by":{"a":{"n":2}},"items":[{"name":"honey"},{"name":"tea"}],"owner":{"name":"Ada","address":{"city":"Paris"}}},` +
		`{"name":"Ada","address":{"city":"Paris"}}],{"name":"x"}]`; failed != nil || got != want {
		t.Errorf("got %s %v, want %s", got, failed, want)
	}
	want := []string{
		`[{"items": [{"price": 4, "name": "honey"}, {"price": 3, "name": "tea"}], "owner": {"name": "Ada", "address": {"zip": "N1", "city": "Paris"}}, "by": {"a": {"of": "another", "n": 2}}}]`,
		`[["set", "", {"items": [{"price": 3, "name": "tea"}, {"price": 4, "name": "jam"}], "owner": {"name": "Ada", "address": {"zip": "N1", "city": "London"}}, "by": {"a": {"of": "another", "n": 1}}}]]`,
	}
	if fmt.Sprint(written) != fmt.Sprint(want) {
		t.Errorf("written\n%s\nwant\n%s", written, want)
	}
}

// Validators and the configuration of models are those of pydantic, or errors that say what
// to use.
func TestValidators(t *testing.T) {
	const models = `
class Item(weft.BaseModel):
    name: str
    price: int = weft.Field(default=1, ge=0)
    @weft.field_validator("name")
    @classmethod
    def check_name(cls, v):
        if not v: raise ValueError("a name has letters")
        return v.strip()
    @weft.field_validator("price", mode="before")
    def cents(cls, v, info):
        assert info.field_name == "price"
        return round(float(v.removeprefix("$")) * 100) if isinstance(v, str) else v
class Order(weft.BaseModel):
    model_config = weft.ConfigDict(extra="forbid")
    items: list[Item]
    total: int = 0
    @weft.model_validator(mode="before")
    @classmethod
    def single(cls, data):
        return {**data, "items": [data["items"]]} if isinstance(data.get("items"), dict) else data
    @weft.model_validator(mode="after")
    def add(self):
        if not self.items: raise ValueError("an order has items")
        self.total = sum(i.price for i in self.items)
        return self
class Special(Order):
    def single(cls, data): return data
class Open(weft.BaseModel):
    model_config = {"extra": "allow"}
    n: int
`
	for _, tt := range []struct{ call, want string }{
		{`Order(items={"name": " tea ", "price": "$1.50"})`, `{"items":[{"name":"tea","price":150}],"total":150}`},
		{`[Open(n=1, m=2), Order.model_json_schema()["additionalProperties"]]`, `[{"m":2,"n":1},false]`},
	} {
		wantResult(t, models+"def run(): return "+tt.call, tt.want)
	}
	for _, tt := range []struct{ call, code, want string }{
		{`Order(items=[{"name": ""}])`, "schema_violation", "items[0]: name: a name has letters"},
		{`Order(items=[{"name": "tea", "price": "$-1"}])`, "schema_violation", "price must be at least 0, and it is -100"},
		{`Order(items=[])`, "schema_violation", "Order: an order has items"},
		{`Order(items=[], note="x")`, "schema_violation", "Order has no field note"},
		{`Special(items={"name": "tea"})`, "schema_violation", "items must be a list"},
		{`weft.field_validator("name", mode="wrap")`, "invalid_message", "field_validator has no mode 'wrap' in a step"},
		{`type("T", (weft.BaseModel,), {"__module__": "main", "f": weft.field_validator("absent")(lambda cls, v: v)})()`, "invalid_message", `T: field_validator('absent'): there is no field absent`},
		{`type("T", (weft.BaseModel,), {"__module__": "main", "model_config": {"from_attributes": True}})()`, "invalid_message", "T: model_config has no from_attributes=True in a step"},
		{`weft.Field(validation_alias="itemName")`, "panic", "Field has no validation_alias in a step: give the field the name that it has in the JSON"},
		{`exec("from weft import computed_field")`, "panic", `weft has no computed_field: a dump holds fields only`},
		{`weft.validators`, "panic", `module 'weft' has no attribute 'validators'`},
	} {
		wantError(t, models+"def run(): return "+tt.call, tt.code, tt.want)
	}
}

// A model's dump leaves out what its options say, and options that do not work are errors.
func TestModelDump(t *testing.T) {
	const models = `
class Item(weft.BaseModel):
    name: str
    note: str | None = None
class Cart(weft.BaseModel):
    items: list[Item] = weft.Field(default_factory=list, title="Items")
    open: bool = True
cart = Cart(items=[Item(name="tea")])
`
	for _, tt := range []struct{ call, want string }{
		{`cart.model_dump()`, `{"open":true,"items":[{"name":"tea","note":null}]}`},
		{`cart.model_dump(exclude_none=True)`, `{"open":true,"items":[{"name":"tea"}]}`},
		{`cart.model_dump(mode="json", exclude_defaults=True)`, `{"items":[{"name":"tea"}]}`},
		{`[cart.model_dump(include={"items"}), cart.model_copy(update={"items": cart.items[0]}).model_dump(include={"items": {"name"}}),
			cart.model_copy(update={"items": cart.items[0]}).model_dump(exclude={"open": True, "items": {"note"}})]`,
			`[{"items":[{"name":"tea","note":null}]},{"items":{"name":"tea"}},{"items":{"name":"tea"}}]`},
		{`[Cart().model_dump(exclude_defaults=True), Cart(open=False).model_dump_json(exclude_defaults=True)]`, `[{},"{\"open\":false}"]`},
	} {
		wantResult(t, models+"def run(): return "+tt.call, tt.want)
	}
	for call, want := range map[string]string{
		`cart.model_dump(exclude_unset=True)`: "model_dump has no exclude_unset",
		`weft.Field(alias="itemName")`:        "Field has no alias in a step: give the field the name",
		`weft.Field(default=1, max_digits=3)`: "Field has no max_digits in a step",
	} {
		wantError(t, models+"def run(): return "+call, "panic", want)
	}
}

// Models do what those of pydantic do: the values are what pydantic gives.
func TestModelsOfPydantic(t *testing.T) {
	const models = `
import datetime, decimal, enum, functools, typing
T = typing.TypeVar("T")
class Cat(weft.BaseModel):
    kind: typing.Literal["cat"] = "cat"
    lives: int = 9
class Dog(weft.BaseModel):
    kind: typing.Literal["dog"] = "dog"
    name: str = "rex"
class Page(weft.BaseModel, typing.Generic[T]):
    items: list[T]
    first: T | None = None
class Tree(weft.BaseModel, typing.Generic[T]):
    value: T
    page: Page[T] | None = None
class Numbers(Page[int]): pass
class Color(enum.Enum): RED = "red"
class Frozen(weft.BaseModel):
    model_config = weft.ConfigDict(frozen=True, str_strip_whitespace=True)
    a: str = ""
class Raw(weft.BaseModel):
    raw: bytes = b"xy"
    empty: bytes = b""
class All(weft.BaseModel):
    pet: Cat | Dog = weft.Field(default_factory=Dog, discriminator="kind")
    took: datetime.timedelta = datetime.timedelta(0)
    price: decimal.Decimal = decimal.Decimal(1)
    day: datetime.date | None = None
    at: datetime.datetime | None = None
    rows: dict[int, str] = {}
    nested: list[dict[Color, int]] = []
    five: int = weft.Field(default=5, multiple_of=5)
    total: int = 0
    def model_post_init(self, context): self.total = self.five + 1
    @functools.cached_property
    def double(self): return self.total * 2
class Range(weft.BaseModel):
    low: int
    high: int
    @weft.field_validator("high")
    @classmethod
    def above(cls, v, info):
        assert v > info.data["low"], "high is not above low"
        return v
class Holder(weft.BaseModel):
    ranges: list[Range] = []
    cat: Cat | None = None
def problem(f):
    try: f()
    except weft.ValidationError as e: return [list(e.errors()[0]["loc"]), e.errors()[0]["msg"], e.error_count()]
def took(v): return All(took=v).took.total_seconds()
`
	for _, tt := range []struct{ call, want string }{
		{`[Page[int](items=["1"]), Page[Cat](items=[{}], first={"lives": 1}).first.lives, Page(items=["x", 1]), Numbers(items=["2"], first="3")]`,
			`[{"first":null,"items":[1]},1,{"first":null,"items":["x",1]},{"first":3,"items":[2]}]`},
		{`[Tree[int](value="1", page={"items": ["2"]}), Page[int] is Page[int], Page[int].__name__, isinstance(Page[int](items=[]), Page)]`,
			`[{"page":{"first":null,"items":[2]},"value":1},true,"Page[int]",true]`},
		{`[type(All(pet={"name": "z"}).pet).__name__, type(All(pet={"kind": "cat"}).pet).__name__, type(All(pet={}).pet).__name__]`, `["Dog","Cat","Cat"]`},
		{`[took(5), took("5"), took("PT1M"), took("P1DT2H"), took("-PT0.5S"), took("00:01:30"), took("1 day, 0:00:01.5")]`, `[5.0,5.0,60.0,93600.0,-0.5,90.0,86401.5]`},
		{`[datetime.timedelta(seconds=s) for s in (0, 90, 93600.25, -3600, 86400)]`, `["PT0S","PT1M30S","P1DT2H0.25S","-PT1H","P1D"]`},
		{`[All(price=0.1).price, All(day="2026-01-02T00:00:00").day, All(at=datetime.date(2026, 1, 2)).at, All(at="2026-01-02T03:04:05+00:00").at]`,
			`["0.1","2026-01-02","2026-01-02T00:00:00","2026-01-02T03:04:05Z"]`},
		{`[All(rows={"1": "a"}).rows == {1: "a"}, All(rows={1: "a"}, nested=[{"red": 1}]).model_dump(include={"rows"}, mode="json"), All(rows={1: "a"}, nested=[{"red": 1}])]`,
			`[true,{"rows":{"1":"a"}},{"at":null,"day":null,"pet":{"kind":"dog","name":"rex"},"five":5,"rows":{"1":"a"},"took":"PT0S","price":"1","total":6,"nested":[{"red":1}]}]`},
		{`[All(five=10).total, All().double, "double" in (lambda a: a.double and a.model_dump())(All())]`, `[11,12,false]`},
		{`[Frozen(a=" x ").a, hash(Frozen()) == hash(Frozen()), {Frozen(): 1}[Frozen()], str(Frozen(a="x")), repr(Frozen(a="x"))]`, `["x",true,1,"a='x'","Frozen(a='x')"]`},
		{`[Raw().model_dump_json(), weft._model.schema_of(Raw)["properties"]["raw"]["default"], weft._model.initial_of(Raw)]`,
			`["{\"raw\":\"xy\",\"empty\":\"\"}","xy",{"raw":"xy","empty":""}]`},
		{`[list(Range.model_fields), Range.model_fields["low"].is_required(), Raw.model_fields["raw"].annotation is bytes, Range.model_rebuild(), Raw().model_extra]`,
			`[["low","high"],true,true,null,null]`},
		{`problem(lambda: Holder(ranges=[{"low": 1, "high": 2}, {"low": 2, "high": 1}]))`, `[["ranges",1,"high"],"ranges[1]: high: high is not above low",1]`},
		{`problem(lambda: Holder(ranges=[{"low": 1}]))`, `[["ranges",0,"high"],"ranges[0]: Range: the field high is missing",1]`},
		{`problem(lambda: Holder(cat={"lives": "many"}))[0]`, `["cat","lives"]`},
		{`problem(lambda: Holder.model_validate_json("{"))[0]`, `[]`},
	} {
		wantResult(t, models+"def run(): return "+tt.call, tt.want)
	}
	for _, tt := range []struct{ call, code, want string }{
		{`Page[int](items=["x"])`, "schema_violation", "items[0] must be an int"},
		{`Cat[int]`, "panic", "Cat takes no types: write class Cat(BaseModel, Generic[T])"},
		{`setattr(Cat(), "live", 1)`, "error", `"Cat" object has no field "live"`},
		{`setattr(Frozen(), "a", 1)`, "schema_violation", "a: Frozen is frozen"},
		{`All(five=7)`, "schema_violation", "five must be a multiple of 5, and it is 7"},
		{`took("soon")`, "schema_violation", "took must be a timedelta, and 'soon'"},
		{`took("P")`, "schema_violation", "took must be a timedelta, and 'P'"},
	} {
		wantError(t, models+"def run(): return "+tt.call, tt.code, tt.want)
	}
}

// Schemas of states have no anyOf: those of unions name the types. They have no format, and a
// model within itself is any map.
func TestUnionsInAState(t *testing.T) {
	wantResult(t, `
import datetime
class Item(weft.BaseModel):
    note: str | None = None
class State(weft.BaseModel):
    tags: list[str] | None = None
    id: int | str = 0
    items: list[Item] = []
    format: datetime.datetime | None = None
    days: list[datetime.date] = []
    tree: helper.Node | None = None
def run():
    from weft._workflow import _of_state
    p = _of_state(weft._model.schema_of(State))["properties"]
    return [p["tags"]["type"], p["tags"]["items"], p["id"]["type"], p["items"]["items"]["properties"]["note"]["type"], "anyOf" in str(p),
            p["format"], p["days"]["items"], p["tree"]]`,
		`[["array","null"],{"type":"string"},["integer","string"],["string","null"],false,{"type":["string","null"],"default":null},{"type":"string"},`+
			`{"type":["object","null"],"default":null,"properties":{"kind":{"type":["string","null"],"default":null},"left":{"type":["object","null"],"default":null}}}]`)
}

// The program of the SDK's page runs.
func TestPage(t *testing.T) {
	suite.NotShort(t, "compiles an interpreter")
	page, err := os.ReadFile("sdk/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```python\n")
	program, _, found := strings.Cut(program, "```\n")
	if !found {
		t.Fatal("the page has no program")
	}
	p, d, err := load(build(t, map[string]string{"main.py": program}))
	if err != nil {
		t.Fatal(problems(err))
	}
	if m, err := abi.DecodeManifest(d.Manifest); err != nil || m.Workflow != "greet" {
		t.Errorf("manifest = %+v %v", m, err)
	}
	state, err := abi.EncodeValue(map[string]any{"greeted": int64(4)})
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{answer: func(abi.Import, []byte) ([]byte, abi.Status) { return state, abi.StatusOK }}
	if got, failed := result(t, p.invoke(t, c, "greet", "GreetEvent", `{"name":"Ada"}`, nil)); failed != nil || got != `"Hello, Ada, number 5"` {
		t.Errorf("result = %s %v", got, failed)
	}
}
