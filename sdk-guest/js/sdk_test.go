package js_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/guest/script"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// sdkProbe is a workflow upon the SDK whose step evaluates the script in its event: the
// body of a function of ctx and the SDK. The names in its list bring their globals.
const sdkProbe = `import * as weft from "weft";
const { result, startEvent, step, Stop, t, workflow } = weft;
(globalThis as any).all = [URL, URLSearchParams, structuredClone, crypto, TextEncoder, TextDecoder, AbortController, AbortSignal, EventTarget, Event];
export default workflow("probe", {}, [step("run", startEvent("StartEvent", { script: t.string() }), Stop, async (ctx, ev) => {
  const make = (0, eval)("(async (ctx, weft) => {" + ev.script + "\n})");
  return result(await make(ctx, weft));
})]);
`

// build builds a project of files.
func build(files map[string]string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "weft-js-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	return script.Build(dir, script.Options{Language: "ts", Version: "v1", Said: os.Stderr})
}

// describe registers a module and describes it.
func describe(wasm []byte) (plugin, host.Description, error) {
	sum := sha256.Sum256(wasm)
	p := plugin{hex.EncodeToString(sum[:])}
	plugins.mu.Lock()
	plugins.plugins[p.digest] = wasm
	plugins.mu.Unlock()
	d, err := box.Describe(context.Background(), p.digest, wasm, suite.Limits())
	return p, d, err
}

// project is a plugin of one file on the SDK.
func project(tb testing.TB, main string) plugin {
	tb.Helper()
	wasm, err := build(map[string]string{"main.ts": main})
	if err != nil {
		tb.Fatal(err)
	}
	p, _, err := describe(wasm)
	if err != nil {
		tb.Fatalf("describe: %v", problems(err))
	}
	return p
}

var sdkEvaluator = sync.OnceValues(func() (plugin, error) {
	wasm, err := build(map[string]string{"main.ts": sdkProbe})
	if err != nil {
		return plugin{}, err
	}
	p, _, err := describe(wasm)
	return p, err
})

// onSDK runs the body of a function in a step upon the SDK.
func onSDK(t *testing.T, c *calls, body string) (string, *abi.Error) {
	t.Helper()
	p, err := sdkEvaluator()
	if err != nil {
		t.Fatalf("describe: %v", problems(err))
	}
	return p.run(t, c, scriptOf(t, body))
}

// sdkResult runs the body of a function that gives what the JSON text says.
func sdkResult(t *testing.T, body, want string) {
	t.Helper()
	got, failed := onSDK(t, &calls{}, body)
	if failed != nil {
		t.Fatalf("failed: %v %s", failed, dataOf(failed))
	}
	if want = `{"result":` + want + "}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStructuredClone(t *testing.T) {
	sdkResult(t, `  const a = { d: new Date(5), m: new Map([[1, { x: 1 }]]), s: new Set([2]), r: /x/gi, b: new Uint8Array([1, 2, 3]).subarray(1), n: [1, , undefined], e: new RangeError("far", { cause: 1 }), ["__proto__"]: 3 };
  a.self = a; a.m.set("a", a);
  const c = structuredClone(a), no = v => { try { structuredClone(v); } catch (e) { return e instanceof DOMException ? e.name : String(e); } };
  const buffer = new ArrayBuffer(8), moved = structuredClone({ buffer }, { transfer: [buffer] });
  return [c !== a, c.self === c, c.m.get("a") === c, c.m.get(1).x, c.m.get(1) !== a.m.get(1), c.d.getTime(), [...c.s], String(c.r), [...c.b], c.b.buffer.byteLength, c.n.length, 1 in c.n,
    c.e instanceof RangeError, c.e.message, c.e.cause, Object.hasOwn(c, "__proto__"), no(() => 1), no(Symbol("x")), no(new WeakMap()), no(Promise.resolve()), buffer.byteLength, moved.buffer.byteLength];`, `[true,true,true,1,true,5,[2],"/x/gi",[2,3],3,3,false,true,"far",1,true,"DataCloneError","DataCloneError","DataCloneError","DataCloneError",0,8]`)
}

func TestGlobals(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`const d = new TextDecoder(), e = new TextEncoder(), u = new Uint8Array(3);
		return [e.encode("é€").length, d.decode(new Uint8Array([0xef, 0xbb, 0xbf, 65])), new TextDecoder("UTF8", { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 65])).length,
			e.encodeInto("aé€", u), [...u], e.encoding, d.encoding]`, `[5,"A",2,{"read":2,"written":3},[97,195,169],"utf-8","utf-8"]`},
		{`const d = new TextDecoder(), f = new TextDecoder("utf-8", { fatal: true }), s = { stream: true }, parts = [[0xef], [0xbb, 0xbf, 0xf0, 0x9f], [0x98], [0x80, 0xe2], []];
		let bad; try { f.decode(new Uint8Array([0xff])); } catch (e) { bad = e.name; }
		return [parts.map(p => d.decode(new Uint8Array(p), s)), d.decode(), f.decode(new Uint8Array([65])), bad, d.decode(new ArrayBuffer(0))]`, `[["","","","😀",""],"�","A","TypeError",""]`},
		{`const no = f => { try { f(); } catch (e) { return e.name; } };
		return [no(() => new TextDecoder("latin1")), no(() => new TextDecoder().decode("x")), no(() => crypto.getRandomValues(new Float32Array(1))), no(() => crypto.getRandomValues(new Uint8Array(65537)))]`,
			`["RangeError","TypeError","TypeMismatchError","QuotaExceededError"]`},
		{`const hex = b => new Uint8Array(b).toHex(), u = s => new TextEncoder().encode(s), algorithm = { name: "hmac", hash: "sha-256" };
		const key = await crypto.subtle.importKey("raw", u("key"), algorithm, true, ["sign", "verify"]), mac = await crypto.subtle.sign("HMAC", key, u("x"));
		const only = await crypto.subtle.importKey("raw", u("key"), algorithm, false, ["verify"]), no = p => p.catch(e => e.name);
		return [hex(await crypto.subtle.digest("SHA-1", u("abc"))), hex(mac).slice(0, 8), await crypto.subtle.verify("HMAC", key, mac, u("x")), await crypto.subtle.verify("HMAC", key, mac, u("y")),
			await crypto.subtle.verify("HMAC", key, mac.slice(1), u("x")), hex(await crypto.subtle.exportKey("raw", key)), await no(crypto.subtle.digest("MD5", u(""))),
			await no(crypto.subtle.sign("HMAC", only, u("x"))), await no(crypto.subtle.exportKey("raw", only)), await no(crypto.subtle.importKey("jwk", {}, algorithm, true, []))]`,
			`["a9993e364706816aba3e25717850c26c9cd0d89d","4fc3b7ea",true,false,false,"6b6579","NotSupportedError","InvalidAccessError","InvalidAccessError","NotSupportedError"]`},
		{`const c = new AbortController(), seen = []; c.signal.addEventListener("abort", e => seen.push(e.type, e.target === c.signal), { once: true }); c.signal.onabort = () => seen.push("on");
		const any = AbortSignal.any([c.signal, AbortSignal.timeout(50)]); c.abort(); c.abort("again");
		const late = AbortSignal.timeout(20), from = Date.now(); await new Promise(r => late.addEventListener("abort", r));
		let why; try { late.throwIfAborted(); } catch (e) { why = e.name; }
		return [seen, c.signal.aborted, c.signal.reason.name, any.aborted, Date.now() - from, why, AbortSignal.abort(5).reason]`, `[["on","abort",true],true,"AbortError",true,20,"TimeoutError",5]`},
		{`const t = new EventTarget(), seen = [], f = e => seen.push(e.detail), stop = e => e.stopImmediatePropagation();
		t.addEventListener("x", f); t.addEventListener("x", f); t.addEventListener("x", { handleEvent: e => { seen.push("object"); e.preventDefault(); } });
		t.dispatchEvent(new CustomEvent("x", { detail: 1 })); t.removeEventListener("x", f);
		const ok = t.dispatchEvent(new CustomEvent("x", { cancelable: true })); t.addEventListener("y", stop); t.addEventListener("y", () => seen.push("never")); t.dispatchEvent(new Event("y"));
		return [seen, ok]`, `[[1,"object","object"],false]`},
		{`const seen = []; return [typeof fetch, typeof process, typeof require, typeof Buffer, typeof WebAssembly, typeof Intl, typeof window, globalThis.process === undefined]`,
			`["undefined","undefined","undefined","undefined","undefined","undefined","undefined",true]`},
		{`return [Date.now() === performance.timeOrigin, new Date(0).getTimezoneOffset(), (1234.5).toLocaleString()]`, `[false,0,"1234.5"]`},
	} {
		t.Run("", func(t *testing.T) { sdkResult(t, tt.body, tt.want) })
	}
}

// A global of another platform is an error that says what to use instead.
func TestMissingGlobals(t *testing.T) {
	for body, want := range map[string]string{
		`fetch("https://example.com")`: "ReferenceError: fetch is not defined: a step calls others by ctx.http(name)",
		`new XMLHttpRequest()`:         "ctx.http(name)",
		`return process.env.HOME`:      "settings of a step are in ctx.config()",
		`require("fs")`:                "require is not defined: use import",
		`new Worker("x")`:              "return a list of events",
		`WebAssembly.compile()`:        "write the step in Go or Rust",
		`new Intl.NumberFormat()`:      "Intl is not defined: toLocaleString is plain",
		`Buffer.from("x")`:             "use Uint8Array",
		`window.location`:              "a step runs on a server",
		`new SharedArrayBuffer(1)`:     "return a list of events",
	} {
		got, failed := onSDK(t, &calls{}, body)
		if failed == nil || failed.Code != "panic" || !strings.Contains(failed.Message, want) {
			t.Errorf("%s gives %s %v, want %q", body, got, failed, want)
		}
	}
	if _, failed := onSDK(t, &calls{}, `unknown()`); failed == nil || !strings.HasPrefix(failed.Message, "ReferenceError: unknown is not defined (") {
		t.Errorf("failed with %v", failed)
	}
}

// console writes to the log, with levels.
func TestConsole(t *testing.T) {
	var got []string
	c := &calls{answer: func(im abi.Import, req []byte) ([]byte, abi.Status) {
		if im == abi.ImportLog {
			got = append(got, abi.Diag(req))
		}
		return abi.Null, abi.StatusOK
	}}
	if _, failed := onSDK(t, c, `console.log("a %s has %d", "b", 2, { c: 1n }); console.warn(1, null, undefined); console.error("100%"); console.debug([1]); console.assert(true); console.assert(false, "x");`); failed != nil {
		t.Fatal(failed)
	}
	want := `[0, "a b has 2 {\"c\":\"1n\"}"] [4, "1 null undefined"] [8, "100%"] [-4, "[1]"] [8, "assertion failed x"]`
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// Errors name the line of the author's file, also those of what a script parses.
func TestErrorsNameTheAuthorsLine(t *testing.T) {
	p := project(t, `import { result, startEvent, step, Stop, t, workflow } from "weft";
const work: ((ev: any) => any)[] = [
  (ev) => JSON.parse("{oops"),
  (ev) => new Function("let x = ;"),
  function named(ev) {
    const a = ev.missing.deep;
    return a;
  },
  (ev) => (globalThis as any).fetch ?? fetch(ev),
  async (ev) => {
    await null;
    throw new RangeError("far");
  },
];
const Start = startEvent("StartEvent", { n: t.integer() });
export default workflow("probe", {}, [step("run", Start, Stop, async (ctx, ev) => result(await work[ev.n]!(ev)))]);
`)
	for i, want := range []string{
		"SyntaxError: Expected property name or '}' in JSON at position 1 (line 1 column 2) (main.ts:3:16)",
		"SyntaxError: unexpected token in expression: ';' (main.ts:4:15)",
		"TypeError: cannot read property 'deep' of undefined (main.ts:6:15)",
		`a resource of the kind "http" (main.ts:9:40)`,
		"RangeError: far (main.ts:12:15)",
	} {
		_, failed := p.run(t, &calls{}, fmt.Sprintf(`{"n":%d}`, i))
		if failed == nil || !strings.Contains(failed.Message, want) {
			t.Errorf("failed with %v %s, want %q", failed, dataOf(failed), want)
		}
	}
}

// numbers gives what is declared as a number, in events, in the state and in edits.
const numbers = `import { event, float, result, startEvent, state, step, stopEvent, t, workflow } from "weft";
const End = stopEvent("End", { n: t.number(), list: t.array(t.number()), whole: t.integer(), some: t.record(t.number()), pair: t.tuple(t.string(), t.number()), in: t.object({ x: t.number().default(2) }), any: t.any() });
const State = state({ sum: t.number().default(1), list: t.array(t.number()), n: t.integer() });
export default workflow("probe", { state: State }, [step("run", startEvent("StartEvent"), End, async ctx => {
  await ctx.set("sum", 3); await ctx.append("list", 4); await ctx.set("n", 5); await ctx.batch().set("list", [6]).set("n", 7).do(); await ctx.increment("sum", 1);
  await ctx.edit(s => { s.sum = 8; s.n = 9; }); await ctx.editAt("list", l => { l.push(10); });
  return End({ n: 1, list: [2, 2.5], whole: 3, some: { a: 4 }, pair: ["p", 5], in: { x: 6 }, any: [7, float(8)] });
})]);
`

func TestNumbersAreFloats(t *testing.T) {
	var got []string
	c := &calls{answer: func(im abi.Import, req []byte) ([]byte, abi.Status) {
		var answer any
		switch im {
		case abi.ImportStateBegin:
			if answer = map[string]any{"sum": 1.0}; bytes.Contains(req, []byte("list")) {
				answer = []any{6.0}
			}
		case abi.ImportStateEdit:
			answer = []any{int64(1), int64(2)}
			fallthrough
		default:
			got = append(got, abi.Diag(req))
		}
		b, err := abi.EncodeValue(answer)
		if err != nil {
			t.Fatal(err)
		}
		return b, abi.StatusOK
	}}
	p := project(t, numbers)
	result, failed := p.run(t, c, "{}")
	if failed != nil {
		t.Fatal(failed)
	}
	if want := `{"n":1.0,"in":{"x":6.0},"any":[7,8.0],"list":[2.0,2.5],"pair":["p",5.0],"some":{"a":4.0},"whole":3}`; result != want {
		t.Errorf("the event is %s\nwant         %s", result, want)
	}
	want := `[["set", "sum", 3.0]] [["append", "list", 4.0]] [["set", "n", 5]] [["set", "list", [6.0]], ["set", "n", 7]] [["increment", "sum", 1.0]] [{"sum": 8.0, "n": 9}] [[6.0, 10.0]]`
	if text := strings.Join(got, " "); text != want {
		t.Errorf("the calls are %s\nwant          %s", text, want)
	}
}

// A step that takes a field named __proto__ gets a field.
func TestFieldsAreOrdinary(t *testing.T) {
	p := project(t, `import { result, startEvent, step, Stop, t, workflow } from "weft";
export default workflow("probe", {}, [step("run", startEvent("StartEvent"), Stop, (ctx, ev: any) => result([Object.keys(ev), ev.polluted === undefined, ({} as any).polluted === undefined]))]);`)
	if got, failed := p.run(t, &calls{}, `{"__proto__":{"polluted":1},"a":2}`); failed != nil || got != `{"result":[["a","__proto__"],true,true]}` {
		t.Errorf("got %s %v", got, failed)
	}
}

// What every author pays: the image of which each invocation begins, and the fuel of a
// step beyond its function.
func TestBudgetsOfTheSDK(t *testing.T) {
	const mostKept, mostFuel, mostDescribing = 650_000, 31_000, 14_000_000
	main, err := os.ReadFile(filepath.Join(suite.Root(), "plugins", "counter-ts", "main.ts"))
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := build(map[string]string{"main.ts": string(main)})
	if err != nil {
		t.Fatal(err)
	}
	r, faults := box.Report(suite.Context(t), wasm, suite.Limits())
	if len(faults) > 0 || !r.InPlace {
		t.Fatalf("faults %v, in place %v %v", faults, r.InPlace, r.Reasons)
	}
	p, _, err := describe(wasm)
	if err != nil {
		t.Fatal(problems(err))
	}
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
	in := func(inv *host.Invocation) {
		input, err := abi.DecodeStepInput(inv.Input)
		if err != nil {
			t.Fatal(err)
		}
		input.Step = "increment"
		if inv.Input, err = input.Encode(); err != nil {
			t.Fatal(err)
		}
	}
	res := p.invoke(t, c, "{}", in)
	if out, err := abi.DecodeStepOutput(res.Output); err != nil || out.Err != nil {
		t.Fatalf("%v %+v %v", res.Err, out, err)
	}
	t.Logf("image %d bytes, describing %d units, a step %d units", r.SnapshotBytes, r.DescribeFuel, res.Fuel)
	if r.SnapshotBytes > mostKept || res.Fuel > mostFuel || r.DescribeFuel > mostDescribing {
		t.Errorf("at most %d bytes, %d units and %d units are meant", mostKept, mostDescribing, mostFuel)
	}
}

// A project's schema in zod's form is read by its library, which builds what it needs
// while the module is described.
func TestForeignSchemas(t *testing.T) {
	p := project(t, `import { result, startEvent, step, Stop, t, workflow } from "weft";
let built = 0;
const lazy = (json: any, read: (v: any) => any) => {
  let parse: any;
  return { "~standard": { version: 1, vendor: "test", jsonSchema: { input: () => ({ $schema: "x", ...json }) }, validate: (v: any) => (parse ??= (built++, read))(v) } } as const;
};
const name = lazy({ type: "object", properties: { name: { type: "string" }, n: { type: "number" } }, required: ["name"] },
  (v) => (typeof v?.name === "string" ? { value: { ...v, name: v.name.trim(), extra: [1] } } : { issues: [{ path: ["name", { key: 0 }], message: "is missing" }, { message: "no" }] }));
const box = { type: "object", properties: { size: { type: "integer" } } }; // as TypeBox gives it
const Start = startEvent("StartEvent", { who: t.of(name), box: t.of(box).optional(), all: t.array(t.of(name)).default([]) });
export default workflow("probe", {}, [step("run", Start, Stop, (ctx, ev: any) => result([ev.who, ev.box ?? null, ev.all, built]))]);
`)
	if got, failed := p.run(t, &calls{}, `{"who":{"name":" a "},"box":{"size":2},"all":[{"name":"b "}]}`); failed != nil || got != `{"result":[{"name":"a","extra":[1]},{"size":2},[{"name":"b","extra":[1]}],1]}` {
		t.Errorf("got %s %v", got, failed)
	}
	if _, failed := p.run(t, &calls{}, `{"who":{}}`); failed == nil || failed.Code != "schema_violation" || failed.Message != "name.0: is missing; no" {
		t.Errorf("failed with %v", failed)
	}
}
