package js_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// wantError runs a script whose step fails with a code and a message.
func wantError(t *testing.T, script, code string, parts ...string) {
	t.Helper()
	got, failed := evaluate(t, script)
	if failed == nil {
		t.Fatalf("the step succeeded with %s", got)
	}
	if failed.Code != code {
		t.Errorf("code = %s (%s), want %s", failed.Code, failed.Message, code)
	}
	for _, part := range parts {
		if !strings.Contains(failed.Message+"\n"+dataOf(failed), part) {
			t.Errorf("error = %q %s, want %q in it", failed.Message, dataOf(failed), part)
		}
	}
}

// Every vector of a value decodes to a value of JavaScript that encodes to the same
// bytes, except that a whole float comes back as an integer and that keys which are
// numbers come first.
func TestVectors(t *testing.T) {
	p := start(t, `const run = f => { const v = weft.decode(f.bytes); return { again: weft.encode(v), whole: JSON.stringify(v, (k, x) => typeof x === "bigint" ? "big" : x) }; };`)
	files, err := filepath.Glob(filepath.Join(suite.Root(), "testdata", "abi", "*.cbor"))
	if err != nil || len(files) < 90 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".cbor")
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, failed := again(t, p, want)
		if failed != nil {
			t.Errorf("%s: %v", name, failed)
			continue
		}
		if canonical(t, got) != canonical(t, want) {
			t.Errorf("%s: encoded again as\n%s\nwant\n%s", name, abi.Diag(got), abi.Diag(want))
		}
	}
}

// again lets the script decode and encode bytes.
func again(t *testing.T, p plugin, b []byte) (abi.Raw, *abi.Error) {
	t.Helper()
	body, err := abi.EncodeValue(map[string]any{"bytes": b})
	if err != nil {
		t.Fatal(err)
	}
	res := p.invoke(t, &calls{}, "{}", func(inv *host.Invocation) {
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
	if err != nil || res.Err != nil {
		t.Fatalf("%v %v", res.Err, err)
	}
	if out.Err != nil {
		return nil, out.Err
	}
	v, err := abi.DecodeValue(out.Events[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)["result"].(map[string]any)["again"].([]byte), nil
}

// canonical is a message's diagnostic text in canonical order, with whole floats as
// integers.
func canonical(t *testing.T, b []byte) string {
	t.Helper()
	r, err := abi.Canonical(b, abi.MaxMessageDepth)
	if err != nil {
		t.Fatalf("% x: %v", b, err)
	}
	return wholeFloat.ReplaceAllString(abi.Diag(r), "$1")
}

func TestInvalidVectorsAreRefused(t *testing.T) {
	p := start(t, `const run = f => ({ again: weft.encode(weft.decode(f.bytes)) });`)
	for _, tt := range []struct{ hex, want string }{
		{"", "byte 0: the message ends early"},
		{"18", "byte 0: the message ends early"},
		{"1b00000000000000", "ends early"},
		{"62c328", "byte 1: a text that is not UTF-8"},
		{"63eda080", "a text that is not UTF-8"},
		{"64f4908080", "a text that is not UTF-8"},
		{"62c080", "a text that is not UTF-8"},
		{"7bffffffffffffffff", "a text longer than the message"},
		{"5bffffffffffffffff", "a byte string longer than the message"},
		{"9bffffffffffffffff", "an array longer than the message"},
		{"bbffffffffffffffff", "a map longer than the message"},
		{"9b7fffffffffffffff00", "an array longer than the message"},
		{"9f00ff", "a length that is not definite"},
		{"c000", "a tag"},
		{"f7", "a simple value"},
		{"f97e00", "a float that is not finite"},
		{"fa7f800000", "a float that is not finite"},
		{"3bffffffffffffffff", "an integer below -2^63"},
		{"a10001", "a key that is not a text"},
		{"a2616100616101", "a key that is there twice"},
		{"a3616200616100616201", "a key that is there twice"},
		{"0000", "byte 1: bytes after the message"},
		{strings.Repeat("81", 73) + "00", "byte 72: it nests too deep"},
		{strings.Repeat("81", 100_000), "it nests too deep"},
	} {
		b, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		got, failed := again(t, p, b)
		if failed == nil {
			t.Errorf("%.40s: decoded as % x", tt.hex, got)
		} else if !strings.Contains(failed.Message, "TypeError: malformed CBOR at ") || !strings.Contains(failed.Message, tt.want) {
			t.Errorf("%.40s: %s, want %q", tt.hex, failed.Message, tt.want)
		}
	}
}

func TestValuesThatLeaveAStep(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{`[1, -1, 2 ** 53, -(2 ** 53), 2 ** 53 + 2, 1.5, -0, 0.1, 65504, 1e300]`, `[1,-1,9007199254740992,-9007199254740992,9007199254740994.0,1.5,-0.0,0.1,65504,1e+300]`},
		{`[2n ** 64n - 1n, -(2n ** 63n), 5n]`, `[18446744073709551615,-9223372036854775808,5]`},
		{`({ a: undefined, b: [undefined, , null], c: new Date(0), d: new String("s"), e: new Number(2), f: new Boolean(false) })`,
			`{"b":[null,null,null],"c":"1970-01-01T00:00:00.000Z","d":"s","e":2,"f":false}`},
		{`({ ["__proto__"]: 1, constructor: 2, 1: 3 })`, `{"1":3,"__proto__":1,"constructor":2}`},
		{`["\ud800", "a\udc00b", "\ud83d\ude00", "x\ud800".length]`, `["�","a�b","😀",2]`},
		{`new Uint8Array([1, 2, 255])`, `{"$bytes":"AQL/"}`},
		{`[weft.float(1), weft.float(2.5)]`, `[1.0,2.5]`},
		{`({ toJSON() { return { toJSON: 1, x: [2] }; } })`, `{"x":[2],"toJSON":1}`},
		{`Object.fromEntries(Array.from({ length: 30 }, (_, i) => ["k" + i, i % 2 ? i : undefined]).filter(([k]) => k.length == 2))`, `{"k1":1,"k3":3,"k5":5,"k7":7,"k9":9}`},
		{`Object.keys(Object.fromEntries(Array.from({ length: 300 }, (_, i) => ["k" + i, i])))
			.length + Object.keys(weft.decode(weft.encode(Object.fromEntries(Array.from({ length: 300 }, (_, i) => ["k" + i, i > 5 ? i : undefined]))))).length`, `594`},
		{`weft.decode(weft.encode({ ["__proto__"]: { x: 1 } })).x === undefined`, `true`},
		{`typeof weft.decode(weft.encode(2n ** 53n)) + typeof weft.decode(weft.encode(2 ** 53 - 1)) + typeof weft.decode(weft.encode(-(2n ** 53n)))`, `"bigintnumberbigint"`},
		{`new Proxy({ a: 1 }, {})`, `{"a":1}`},
		{`(() => { class A { x = 1; #y = 2; get z() { return 3; } } return new A(); })()`, `{"x":1}`},
		{`[weft.utf8Decode(weft.utf8Encode("aé€😀\ud800"), true), weft.utf8Decode(new Uint8Array([0xe2, 0x82, 0x41, 0xff, 0xf0, 0x9f]), false)]`, `["aé€😀�","�A��"]`},
	} {
		t.Run("", func(t *testing.T) { wantResult(t, "const run = () => ("+tt.script+");", tt.want) })
	}
}

func TestValuesThatCannotLeaveAStep(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{`({ items: [1, { when: NaN }] })`, "TypeError: NaN is not a value that can leave a step (at result.items[1].when)"},
		{`[-Infinity]`, "-Infinity is not a value that can leave a step (at result[0])"},
		{`() => 1`, "a function cannot leave a step (at result)"},
		{`({ s: Symbol("x") })`, "a symbol cannot leave a step (at result.s)"},
		{`[Promise.resolve(1)]`, "a promise cannot leave a step: await it (at result[0])"},
		{`new Map([[1, 2]])`, "a Map cannot leave a step: use Object.fromEntries"},
		{`new Set([1])`, "a Set cannot leave a step: use an array"},
		{`new Error("x")`, "an Error cannot leave a step: use its message"},
		{`/x/`, "a RegExp cannot leave a step"},
		{`new ArrayBuffer(8)`, "an ArrayBuffer cannot leave a step"},
		{`new Int16Array(8)`, "an Int16Array cannot leave a step"},
		{`(() => { const a = { b: {} }; a.b.c = a; return a; })()`, "a value that contains itself cannot leave a step (at result.b.c)"},
		{`(() => { let a = 1; for (let i = 0; i < 80; i++) a = [a]; return a; })()`, "a value nests deeper than 72 levels"},
		{`2n ** 64n`, "RangeError: a bigint must be from -2^63 to 2^64-1 (at result)"},
		{`-(2n ** 63n) - 1n`, "a bigint must be from -2^63 to 2^64-1 (at result)"},
		{`2n ** 4000n`, "a bigint must be from -2^63 to 2^64-1 (at result)"},
		{`new Array(4294967295)`, "an array of 4294967295 items is too long for a message"},
		{`new Proxy({}, { ownKeys() { throw new TypeError("no keys"); } })`, "TypeError: no keys"},
	} {
		t.Run("", func(t *testing.T) { wantError(t, "const run = () => ("+tt.script+");", "panic", tt.want) })
	}
}

func TestErrorsOfAStep(t *testing.T) {
	for _, tt := range []struct{ name, script, code, want string }{
		{"language", `const run = () => { const x = null; return x.y; };`, "panic", "TypeError: cannot read property 'y' of null ("},
		{"named", "const run = () => inner();\nfunction inner() { throw new RangeError('far'); }", "panic", `"stack":["inner (`},
		{"own class", `class Oops extends Error { name = "Oops"; } const run = () => { throw new Oops("bad", { cause: new Error("deep") }); };`, "error", `"cause":"Error: deep"`},
		{"text", `const run = () => { throw "just text"; };`, "error", "just text"},
		{"nothing", `const run = () => { throw undefined; };`, "error", "undefined"},
		{"object", `const run = () => { throw { toString() { throw 1; } }; };`, "error", "(a value without text)"},
		{"weft", `const run = () => { throw new WeftError("busy", { code: "unavailable", retryable: true, data: { after: 3 } }); };`, "unavailable", `{"after":3}`},
		{"weft without encoding", `const run = () => { throw new WeftError("busy", { code: "unavailable", data: () => 1 }); };`, "panic", "a function cannot leave a step (at data)"},
		{"getter of message", `const run = () => { const e = new Error("x"); Object.defineProperty(e, "message", { get() { throw e; } }); throw e; };`, "error", "Error"},
		{"getter while encoding", `const run = () => ({ get a() { throw new TypeError("from the getter"); } });`, "panic", "TypeError: from the getter"},
		{"call in a getter", `const run = () => ({ get a() { return weft.now([]); }, b: { get c() { return weft.random([3]); } }, d() {} });`, "panic", "a function cannot leave a step (at result.d)"},
		{"pending", `const run = () => new Promise(() => {});`, "failed_precondition", "step run waits for a promise that nothing settles"},
		{"unhandled", `const run = () => { Promise.reject(new TypeError("lost")); return 1; };`, "panic", "TypeError: lost"},
		{"microtask", `const run = () => { queueMicrotask(() => { throw new TypeError("in a task"); }); return 1; };`, "panic", "TypeError: in a task"},
		{"timer", `const run = () => { setTimeout(() => { throw new TypeError("in a timer"); }, 5); return 1; };`, "panic", "TypeError: in a timer"},
		{"polluted toJSON", `Object.prototype.toJSON = function () { throw new TypeError("polluted"); }; const run = () => ({});`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.code != "" {
				wantError(t, tt.script, tt.code, tt.want)
			}
		})
	}
	t.Run("handled later", func(t *testing.T) {
		wantResult(t, `const run = async () => { const p = Promise.reject(1); await null; await null; return p.catch(x => x + 1); };`, "2")
	})
}

// The manifest is encoded before a script's pollution matters: only the script's own
// manifest and results change.
func TestPollutedPrototypes(t *testing.T) {
	wantError(t, `const run = () => { Object.prototype.toJSON = function () { throw new TypeError("polluted"); }; return { a: {} }; };`, "panic", "TypeError: polluted")
	wantError(t, `const run = () => { Object.prototype.toJSON = () => NaN; throw new Error("still seen"); };`, "error", "still seen")
	wantError(t, `const run = () => { Error.prepareStackTrace = () => { throw 1; }; Object.defineProperty(Error.prototype, "stack", { get() { throw 2; } }); null.x; };`, "panic", "cannot read property 'x' of null")
	wantResult(t, `const run = () => { Object.prototype.code = "odd"; Array.prototype[Symbol.iterator] = null; return weft.decode(new Uint8Array([0xa1, 0x61, 0x61, 0x80])); };`, `{"a":[]}`)
}

func TestHostCallsFail(t *testing.T) {
	p := start(t, `const run = f => { try { return weft.state_get(["a"]); } catch (e) { if (f.again) throw e; return [e instanceof WeftError, e.code, e.message, e.retryable, e.data]; } };`)
	no := false
	answer, err := abi.Error{Code: "not_found", Message: "nothing there", Retryable: &no, Data: abi.Raw{0x05}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{answer: func(abi.Import, []byte) ([]byte, abi.Status) { return answer, abi.StatusNotFound }}
	if got, failed := p.run(t, c, "{}"); failed != nil || got != `{"result":[true,"not_found","nothing there",false,5]}` {
		t.Errorf("got %s, %v", got, failed)
	}
	if _, failed := p.run(t, c, `{"again":true}`); failed == nil || failed.Code != "not_found" || failed.Message != "nothing there" || failed.Retryable == nil || *failed.Retryable || !bytes.Equal(failed.Data, []byte{5}) {
		t.Errorf("failed with %+v", failed)
	}
	c.answer = func(abi.Import, []byte) ([]byte, abi.Status) { return []byte{0xff, 0xff}, abi.StatusOK }
	if _, failed := p.run(t, c, `{"again":true}`); failed == nil || !strings.Contains(failed.Message, "malformed CBOR at byte 0") {
		t.Errorf("failed with %+v", failed)
	}
}

// A regular expression that nests too deep is a SyntaxError, as any that cannot be
// compiled.
func TestRecursionEndsInARangeError(t *testing.T) {
	for name, script := range map[string]string{
		"calls":      `const f = n => f(n + 1) + 1; const deep = () => f(0);`,
		"JSON.parse": `const deep = () => JSON.parse("[".repeat(100000));`,
		"stringify":  `const deep = () => { let a = []; for (let i = 0; i < 100000; i++) a = [a]; return JSON.stringify(a); };`,
		"sort":       `const f = () => [2, 1].sort(f); const deep = f;`,
		"getter":     `const o = { get a() { return this.a; } }; const deep = () => o.a;`,
		"regexp":     `const deep = () => new RegExp("(?:".repeat(50000) + ")".repeat(50000));`,
		"parser":     `const deep = () => new Function("return " + "(".repeat(100000) + "1" + ")".repeat(100000));`,
		"statements": `const deep = () => new Function("{".repeat(100000) + "}".repeat(100000));`,
		"arrays":     `const deep = () => new Function("return " + "[".repeat(100000) + "]".repeat(100000));`,
		"unary":      `const deep = () => new Function("return " + "!".repeat(100000) + "1");`,
		"arrows":     `const deep = () => new Function("return " + "a=>".repeat(100000) + "1");`,
		"functions":  `const deep = () => new Function("return " + "function(){return ".repeat(50000) + "1" + "}".repeat(50000));`,
		"classes":    `const deep = () => new Function("return " + "class{x=".repeat(50000) + "1" + "}".repeat(50000));`,
		"templates":  "const deep = () => new Function('return ' + '`${'.repeat(50000) + '1' + '}`'.repeat(50000));",
		"chains":     `const deep = () => new Function("return " + "a?b:".repeat(50000) + "1");`,
		"ifs":        `const deep = () => new Function("if(1)".repeat(100000) + ";");`,
		"modules":    `const deep = () => JSON.stringify({ toJSON() { return deep(); } });`,
		"eval":       `const f = () => eval("f()"); const deep = f;`,
		"replace":    `const f = () => "a".replace(/a/, f); const deep = f;`,
		"proxy":      `let p = {}; const deep = () => { for (let i = 0; i < 100000; i++) p = new Proxy(p, {}); return p.x; };`,
		"toString":   `const o = { toString() { return "" + this; } }; const deep = () => "" + o;`,
		"bound":      `const deep = () => { let f = () => 1; for (let i = 0; i < 2500; i++) f = f.bind(null); return f(); };`,
		"concat":     `const deep = () => { let a = []; a = [a]; const f = x => [x].flatMap(f); return f(1); };`,
	} {
		t.Run(name, func(t *testing.T) {
			wantResult(t, script+`
const run = () => { try { deep(); return "no error"; } catch (e) { return e instanceof RangeError || String(e) === "SyntaxError: stack overflow" ? "RangeError" : String(e).slice(0, 200); } };`, `"RangeError"`)
		})
	}
}

func TestHostileScriptsAreStopped(t *testing.T) {
	small := func(inv *host.Invocation) { inv.Limits.Fuel = 200_000_000 }
	for _, tt := range []struct{ name, script, code string }{
		{"promises", `const run = async () => { for (;;) await Promise.all(Array.from({ length: 1000000 }, (_, i) => Promise.resolve(i))); };`, "fuel_exhausted"},
		{"rejections", `const run = () => { for (let i = 0; i < 1000000; i++) Promise.reject(i); for (;;); };`, "fuel_exhausted"},
		{"regexp", `const run = () => /^(a+)+$/.test("a".repeat(50) + "b");`, "fuel_exhausted"},
		{"loop", `const run = () => { for (;;); };`, "fuel_exhausted"},
		{"caught", `const run = () => { for (;;) try { (function f() { f(); })(); } catch {} };`, "fuel_exhausted"},
		{"interval", `const run = () => { setInterval(() => 0, 1); return 1; };`, "limit_exceeded"},
		{"numbers", `const run = () => { for (;;) try { 3n ** 1000000n; } catch {} };`, "fuel_exhausted"},
		{"sparse", `const run = () => { const a = []; a.length = 4294967295; for (;;) a.indexOf(1); };`, "fuel_exhausted"},
		{"getter", `const run = () => ({ get a() { for (;;); } });`, "fuel_exhausted"},
		{"toJSON", `const run = () => { Object.prototype.toJSON = function () { for (;;); }; return {}; };`, "fuel_exhausted"},
		{"thenable", `const run = () => { const t = { then(f) { f(t); } }; return t; };`, "fuel_exhausted"},
		{"jobs", `const run = () => { const f = () => Promise.resolve().then(f); return f(); };`, "fuel_exhausted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := evaluator()
			if err != nil {
				t.Fatal(problems(err))
			}
			res := p.invoke(t, &calls{}, scriptOf(t, tt.script), small)
			if res.Err == nil || res.Err.Code != tt.code {
				t.Errorf("result = %+v, want %s", res.Err, tt.code)
			}
		})
	}
	t.Run("doubling", func(t *testing.T) { // no script catches this error
		wantError(t, `const run = () => { for (;;) try { let s = "x"; for (;;) s += s; } catch {} };`, "panic", "InternalError: string too long")
	})
	t.Run("memory", func(t *testing.T) {
		c := &calls{}
		p, err := evaluator()
		if err != nil {
			t.Fatal(problems(err))
		}
		res := p.invoke(t, c, scriptOf(t, `const run = () => { const all = []; for (;;) all.push(new Uint8Array(1 << 20)); };`), small)
		out, err := abi.DecodeStepOutput(res.Output)
		if res.Err == nil && (err != nil || out.Err == nil || !strings.Contains(out.Err.Message, "out of memory")) {
			t.Errorf("result = %+v %v %s", out, err, c.printed.String())
		}
	})
}

func TestErrorsWhileDescribing(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"throw", prelude + "\nfunction early() { throw new TypeError('too early'); }\nearly();", "TypeError: too early (bundle.js:8:"},
		{"syntax", "let x = ;", "SyntaxError"},
		{"host call", prelude + "weft.state_get(['']);", "state_get works only in a step"},
		{"timer", prelude + "setTimeout(() => 1, 1);", "setTimeout works only in a step"},
		{"nothing", "1;", "the bundle registers no workflow"},
		{"rejection", prelude + "Promise.reject(new Error('nobody looks'));", "nobody looks"},
		{"manifest", prelude + "weft.describe = () => ({ steps: [() => 1] });", "a function cannot leave a step (at steps[0])"},
		{"loop", prelude + "for (;;);", "describe_fuel"},
		{"8 MiB", prelude + "const big = [" + strings.Repeat("1,", 4<<20) + "];", "describe_"},
		{"warm", prelude + "weft.warm = () => { throw new Error('cold'); };", "cold"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := load(tt.script, nil)
			if err == nil || !strings.Contains(problems(err), tt.want) {
				t.Errorf("error = %s, want %q", problems(err), tt.want)
			}
		})
	}
}

// Every invocation starts from the same memory: nothing that a step changes is seen by
// the next, and the same seed gives the same numbers.
func TestPristine(t *testing.T) {
	p := start(t, `let n = 0; const seen = []; const top = [Math.random(), Math.random()];
const run = f => { seen.push(f.x); Object.prototype.left = 1; globalThis.leak = 1; const order = [...new Set([3, 1, 2])].map(String).sort(() => Math.random() - 0.5);
  return [++n, seen.length, top[0] !== top[1], Math.random(), Math.random(), Date.now(), performance.now(), order, new Date().toString()]; };`)
	first, failed := p.run(t, &calls{}, `{"x":1}`)
	if failed != nil {
		t.Fatal(failed)
	}
	if !strings.HasPrefix(first, `{"result":[1,1,true,0.`) {
		t.Errorf("result = %s", first)
	}
	for range 2000 { // so often is an instance used again
		if got, failed := p.run(t, &calls{}, `{"x":1}`); failed != nil || got != first {
			t.Fatalf("a later invocation gives %s %v, the first %s", got, failed, first)
		}
	}
	other := p.invoke(t, &calls{}, `{"x":1}`, func(inv *host.Invocation) { inv.Seed = [32]byte{9} })
	out, err := abi.DecodeStepOutput(other.Output)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := abi.ToJSON(out.Events[0].Body); string(text) == first {
		t.Error("another seed gives the same random numbers")
	}
}

// random is the answer to the host call of that name: n bytes that count up.
func random(t *testing.T) *calls {
	return &calls{answer: func(im abi.Import, req []byte) ([]byte, abi.Status) {
		if im != abi.ImportRandom {
			t.Errorf("called %s", im)
		}
		r, err := abi.DecodeRandom(req)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, r.N)
		for i := range b {
			b[i] = byte(i)
		}
		v, err := abi.EncodeValue(b)
		if err != nil {
			t.Fatal(err)
		}
		return v, abi.StatusOK
	}}
}

func TestRandomBytesComeFromTheHost(t *testing.T) {
	p := start(t, `const run = f => { const b = new Uint8Array(f.n); weft.randomFill(b); return [b[0], b[b.length - 1], b.reduce((a, x) => a + x, 0)]; };`)
	for _, tt := range []struct{ in, want string }{
		{`{"n":1}`, `[0,0,0]`}, {`{"n":23}`, `[0,22,253]`}, {`{"n":24}`, `[0,23,276]`}, {`{"n":255}`, `[0,254,32385]`},
		{`{"n":256}`, `[0,255,32640]`}, {`{"n":5000}`, `[0,135,629340]`},
	} {
		if got, failed := p.run(t, random(t), tt.in); failed != nil || got != `{"result":`+tt.want+"}" {
			t.Errorf("%s: %s %v, want %s", tt.in, got, failed, tt.want)
		}
	}
	if _, failed := p.run(t, &calls{}, `{"n":3}`); failed == nil || !strings.Contains(failed.Message, "the host gives no random bytes") {
		t.Errorf("failed = %v", failed)
	}
}

func TestTimersMoveTheClock(t *testing.T) {
	wantResult(t, `const sleep = ms => new Promise(r => setTimeout(r, ms));
const run = async () => {
  const from = Date.now(), log = [], at = name => log.push(name + (Date.now() - from));
  setTimeout(() => at("c"), 20); setTimeout(() => at("a"), 10); setTimeout(x => at(x), 10, "b"); setTimeout(() => at("zero"));
  const gone = setTimeout(() => at("gone"), 5); clearTimeout(gone);
  let n = 0; const every = setInterval(() => { at("i"); if (++n === 3) clearInterval(every); }, 15);
  await sleep(20 * 24 * 3600 * 1000); at("later");
  await Promise.resolve(); return [log, performance.now() > 0];
};`, `[["zero0","a10","b10","i15","c20","i30","i45","later1728000000"],true]`)
}

func TestHashes(t *testing.T) {
	wantResult(t, `const hex = b => [...b].map(x => x.toString(16).padStart(2, "0")).join("").slice(0, 16), u = s => weft.utf8Encode(s);
const run = () => [
  ...["SHA-1", "SHA-256", "SHA-384", "SHA-512"].map(a => hex(weft.digest(a, u("abc")))),
  ...["SHA-1", "SHA-256", "SHA-384", "SHA-512"].map(a => hex(weft.digest(a, new Uint8Array(0)))),
  ...[55, 56, 63, 64, 65, 111, 112, 127, 128, 1000].flatMap(n => ["SHA-256", "SHA-512"].map(a => hex(weft.digest(a, new Uint8Array(n).fill(97))))),
  hex(weft.hmac("SHA-256", u("key"), u("The quick brown fox jumps over the lazy dog"))),
  hex(weft.hmac("SHA-512", new Uint8Array(200).fill(1), u("x"))), hex(weft.hmac("SHA-1", u("key"), new Uint8Array(0))),
];`, hashes())
	wantError(t, `const run = () => weft.digest("MD5", new Uint8Array(1));`, "panic", "TypeError: no hash is called MD5")
	wantError(t, `const run = () => weft.digest("SHA-1", "text");`, "panic", "TypeError: a Uint8Array is expected")
}
