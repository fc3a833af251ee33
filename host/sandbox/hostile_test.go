package sandbox

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

func TestHostileInvocations(t *testing.T) {
	tests := []struct {
		name string
		code string
		want []string // in the message
	}{
		{"loop", codeFuel, []string{"burnt more than 50000000 units of fuel (limit fuel)"}},
		{"recursion", codeLimit, []string{"the frames of nested calls have more than 1048576 bytes (limit call_depth)"}},
		{"deep_trap", codeLimit, []string{"limit call_depth"}},
		{"memory_grow", codeTrap, []string{"unreachable", "weft_step", "memory.grow was refused at the limit of 8388608 bytes"}},
		{"unreachable", codeTrap, []string{"unreachable in function boom"}},
		{"divide", codeTrap, []string{"divide by zero"}},
		{"panic_text", codePanic, []string{"boom | with more"}},
		{"input_range", codeTrap, []string{"input: 4294967295 bytes from offset 1 are out of range: there are 12"}},
		{"input_address", codeTrap, []string{"input: 12 bytes at address 65535 are out of range: the memory has 65536 bytes"}},
		{"response_range", codeTrap, []string{"response: 1 bytes from offset 0 are out of range: there are 0"}},
		{"output_range", codeTrap, []string{"output: 2 bytes at address 4294967295 are out of range"}},
		{"request_range", codeTrap, []string{"state_get: 32 bytes at address 4294967280 are out of range"}},
		{"output_none", codeOutput, []string{"weft_step returned without calling output"}},
		{"output_twice", codeOutput, []string{"weft_step called output twice"}},
		{"output_garbage", codeOutput, []string{"not a step output"}},
		{"output_empty", codeOutput, []string{"not a step output"}},
		{"code_wrong", codeOutput, []string{"weft_step returned 1, but its output begins with 0"}},
		{"code_large", codeOutput, []string{"weft_step returned 7"}},
		{"call_flood", codeLimit, []string{"more than 1000 host calls"}},
		{"log_flood", codeLimit, []string{"more than 100 lines of log"}},
		{"print_flood", codeLimit, []string{"more than 1048576 bytes of log"}},
		{"poll_flood", codeLimit, []string{"poll_oneoff was called more than 100000 times"}},
		{"table_grow", "", nil},
		{"vector_flood", "", nil},
		{"good", "", nil},
	}
	b := newBench(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inv := b.invocation(b.library.add(hostile(t, tt.name)), []byte("twelve bytes"))
			inv.Limits.MemoryBytes = 8 << 20
			inv.Limits.HostCalls = 1000
			inv.Limits.LogLines = 100
			inv.Limits.Fuel = 50_000_000
			res, err := b.Invoke(suite.Context(t), inv)
			if err != nil {
				t.Fatal(err)
			}
			if tt.code == "" {
				if res.Err != nil {
					t.Errorf("failed: %v", res.Err)
				}
				return
			}
			if res.Err == nil || res.Err.Code != tt.code {
				t.Fatalf("result = %+v, want %s", res, tt.code)
			}
			for _, part := range append(tt.want, "") {
				if !strings.Contains(res.Err.Message, part) {
					t.Errorf("message = %q, want %q in it", res.Err.Message, part)
				}
			}
			if strings.ContainsAny(res.Err.Message, "\n\r\x00") || strings.Contains(res.Err.Message, "path.go") || len(res.Err.Message) > 2000 {
				t.Errorf("message = %q", res.Err.Message)
			}
			if res.Output != nil || res.Code != 0 {
				t.Errorf("a failed invocation has output % x and code %d", res.Output, res.Code)
			}
		})
	}
}

func TestHostileModules(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.DescribeFuel = 1_000_000 })
	tests := []struct {
		name string
		want []string // CODE: part of the message; all of them, in order
	}{
		{"good", nil},
		{"describe_loop", []string{"describe_fuel_exhausted: weft_describe: burnt more than 1000000 units of fuel (limit describe_fuel)"}},
		{"describe_trap", []string{"describe_trap: weft_describe: unreachable"}},
		{"describe_call", []string{"describe_forbidden_call: weft_describe: called weft:v1.state_get"}},
		{"describe_none", []string{"describe_invalid_output: weft_describe: returned without calling output"}},
		{"describe_twice", []string{"describe_invalid_output: weft_describe: called output twice"}},
		{"initialize_trap", []string{"describe_trap: _initialize: unreachable"}},
		{"initialize_output", []string{"describe_forbidden_call: _initialize: called weft:v1.output"}},
		{"start_trap", []string{"describe_trap: _initialize: unreachable"}},
		{"start_loop", []string{"describe_fuel_exhausted: _initialize: burnt more than 1000000 units"}},
		{"data_range", []string{"invalid_module: out of bounds memory access"}},
		{"command", []string{"missing_export: weft_describe", "missing_export: weft_step", "command_module: buildmode=c-shared"}},
		{"empty", []string{"missing_export: weft_describe", "missing_export: weft_step", "missing_export: memory"}},
		{"wrong_signatures", []string{
			"wrong_signature: weft:v1.state_get must be (i32, i32) -> (i64), not (i64) -> (i64)",
			"wrong_signature: weft_describe must be () -> (), not () -> (i32)",
			"wrong_signature: weft_step must be (i32) -> (i32), not () -> ()",
			"wrong_signature: _initialize must be () -> (), not (i32) -> ()",
			"wrong_signature: memory must be the memory, not a global"}},
		{"forbidden_import", []string{
			"forbidden_import: env.system is not allowed; imports may come from weft:v1 and wasi_snapshot_preview1",
			"forbidden_import: weft:v1.state_steal is not allowed; allowed of weft:v1 are call_resource, collect_events",
			"forbidden_import: wasi_snapshot_preview1.fork is not allowed",
			"forbidden_import: env.table is a table",
			"forbidden_import: env.global is a global"}},
		{"imported_memory", []string{"imported_memory: env.memory"}},
		{"memory_large", []string{"too_large: the memory begins with 4294967296 bytes"}},
		{"table_large", []string{"too_large: the tables begin with 10000000 entries"}},
		{"reserved_name", []string{"reserved_name: weft_migrate", "reserved_name: weft:fuel"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkProblems(t, check(t, b, hostile(t, tt.name)), tt.want)
		})
	}
}

// check asks for all problems of a module: those of Inspect, else of Describe.
func check(t *testing.T, b bench, wasm []byte) []host.Problem {
	t.Helper()
	ctx := suite.Context(t)
	if _, problems := b.Inspect(ctx, wasm, host.Limits{}); len(problems) > 0 {
		if _, err := b.Describe(ctx, digestOf(wasm), wasm, host.Limits{}); host.CodeOf(err) != host.CodeInvalidPlugin {
			t.Errorf("Inspect finds problems, Describe answers %v", err)
		}
		return problems
	}
	_, err := b.Describe(ctx, digestOf(wasm), wasm, host.Limits{})
	if err == nil {
		return nil
	}
	wantError(t, err, host.CodeInvalidPlugin)
	return problemsOf(err)
}

func checkProblems(t *testing.T, problems []host.Problem, want []string) {
	t.Helper()
	for i, p := range problems {
		t.Logf("%s: %s", p.Code, p.Message)
		if strings.ContainsAny(p.Message, "\n\r") {
			t.Errorf("more than one line: %q", p.Message)
		}
		if i >= len(want) {
			continue
		}
		code, part, _ := strings.Cut(want[i], ": ")
		if p.Code != code || !strings.Contains(p.Message, part) {
			t.Errorf("problem %d = %s: %s; want %s", i, p.Code, p.Message, want[i])
		}
	}
	if len(problems) != len(want) {
		t.Errorf("%d problems, want %d", len(problems), len(want))
	}
}

func TestHostileBytes(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.ModuleBytes = 1000 })
	good := hostile(t, "good")
	tests := []struct {
		name string
		wasm []byte
		want []string
	}{
		{"nothing", nil, []string{"not_wasm: \\0asm"}},
		{"text", []byte("(module)"), []string{"not_wasm: \\0asm"}},
		{"header only", good[:6], []string{"truncated: header"}},
		{"truncated", good[:len(good)/2], []string{"truncated: ends too early"}},
		{"component", append([]byte("\x00asm\x0d\x00\x01\x00"), good[8:]...), []string{"component: this is a component, not a core module"}},
		{"version", append([]byte("\x00asm\x02\x00\x00\x00"), good[8:]...), []string{"malformed: version 02 00 00 00"}},
		{"large", make([]byte, 1001), []string{"too_large: 1001 bytes, at most 1000"}},
		{"section twice", append(append([]byte{}, good...), good[8:]...), []string{"malformed: section 1 is out of order, or there twice"}},
		{"number", append([]byte("\x00asm\x01\x00\x00\x00"), 1, 0xff, 0xff, 0xff, 0xff, 0x7f), []string{"malformed: more than 32 bits"}},
		{"garbage in code", corruptCode(good), []string{"malformed: instruction 0xf7 is not supported"}},
		{"locals", withLocals(50_000), []string{"too_many: 50000 locals", "missing_export: weft_describe", "missing_export: weft_step", "missing_export: memory"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkProblems(t, check(t, b, tt.wasm), tt.want)
		})
	}
}

// corruptCode replaces the call of output in weft_step by an unknown opcode.
func corruptCode(good []byte) []byte {
	wasm := append([]byte{}, good...)
	wasm[strings.LastIndex(string(good), "\x41\x80\x04\x41\x03\x10")] = 0xf7
	return wasm
}

// withLocals is a module with one function that has many locals.
func withLocals(n uint64) []byte {
	body := binary.AppendUvarint([]byte{1}, n) // one group
	body = append(body, wasmbin.TypeI64, 0x0b)
	wasm := append([]byte{}, "\x00asm\x01\x00\x00\x00"...)
	wasm = append(wasm, 1, 4, 1, 0x60, 0, 0) // a type
	wasm = append(wasm, 3, 2, 1, 0)          // a function
	wasm = append(wasm, 10, byte(len(body)+2), 1, byte(len(body)))
	return append(wasm, body...)
}

// A recursion takes hundreds of megabytes of stack until it traps; they are
// garbage afterwards.
func TestMemoryIsGivenBack(t *testing.T) {
	b := newBench(t, nil)
	for _, tt := range []struct {
		name string
		runs int
	}{{"recursion", 3}, {"memory_grow", 3}, {"good", 1000}} {
		inv := b.invocation(b.library.add(hostile(t, tt.name)), nil)
		inv.Limits.MemoryBytes = 64 << 20
		for range tt.runs {
			if _, err := b.Invoke(suite.Context(t), inv); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if limit := uint64(128 << 20); after.HeapAlloc > limit {
		t.Errorf("%d bytes of heap are in use, want at most %d", after.HeapAlloc, limit)
	}
}

func FuzzInspect(f *testing.F) {
	for _, name := range []string{"good", "wrong_signatures", "forbidden_import", "table_grow", "print_flood"} {
		f.Add(hostile(f, name))
	}
	limits := limit.Default()
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, problems := inspect(wasm, limits)
		if m == nil && len(problems) == 0 {
			t.Fatal("no module and no problem")
		}
		if len(problems) > 0 {
			return
		}
		importList(m)
	})
}
