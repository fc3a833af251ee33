package sandbox

import (
	"bytes"
	"context"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/weftrun/weft/host"
)

// echoed is an event of 256 bytes, as the output of a step: [0, bytes]. With
// calling as its last bytes the guest makes a host call.
func echoed(last string) []byte {
	const size = 256
	event := append([]byte{0x82, 0, 0x58, size - 4}, bytes.Repeat([]byte("weft"), size/4-1)...)
	copy(event[size-len(last):], last)
	return event
}

const calling = "!"

// BenchmarkEcho takes 256 bytes to a guest and back, by every way to run it:
//
//   - warm: wazero alone, one instance, nothing metered and nothing reset
//   - pristine: as invocations are run, in an instance that is brought back
//   - pristine-calling: the same with one host call
//   - fresh: in a new instance, filled with the image
//   - reference: in a new instance, initialized by the guest's own code
//   - extism-warm: Extism's SDK, one instance, nothing reset
//   - extism-stoppable: the same with a timeout
//   - extism-fresh: a new instance for each call
func BenchmarkEcho(b *testing.B) {
	for _, compiler := range guestCompilers {
		b.Run(compiler, func(b *testing.B) {
			b.Run("warm", func(b *testing.B) { echoWarm(b, compiler) })
			b.Run("pristine", func(b *testing.B) { echoOurs(b, compiler, "", 64, nil) })
			b.Run("pristine-calling", func(b *testing.B) { echoOurs(b, compiler, calling, 64, nil) })
			b.Run("fresh", func(b *testing.B) { echoOurs(b, compiler, "", 1, func(c *Config) { c.Spares = -1 }) })
			b.Run("reference", func(b *testing.B) {
				echoOurs(b, compiler, "", 1, func(c *Config) { c.Reference, c.Spares = true, -1 })
			})
			b.Run("extism-warm", func(b *testing.B) { echoExtism(b, compiler, 0, false) })
			b.Run("extism-stoppable", func(b *testing.B) { echoExtism(b, compiler, 30_000, false) })
			b.Run("extism-fresh", func(b *testing.B) { echoExtism(b, compiler, 0, true) })
		})
	}
}

// inBatches calls f as often as b says. Beside ns/op, in which there is all that
// other programs took meanwhile, it reports the median over batches of calls.
func inBatches(b *testing.B, batch int, f func()) {
	took := make([]time.Duration, 0, 1<<20/batch)
	b.ReportAllocs()
	began := time.Now()
	for n := 1; b.Loop(); n++ {
		f()
		if n%batch == 0 {
			now := time.Now()
			took = append(took, now.Sub(began))
			began = now
		}
	}
	if len(took) > 0 {
		b.ReportMetric(float64(median(took))/float64(batch)/1e3, "median-us")
	}
}

func echoWarm(b *testing.B, compiler string) {
	guest := newBare(b, guestBuild(b, "kernels", compiler, "echo"), wazero.NewRuntimeConfig())
	event := echoed("")
	inBatches(b, 64, func() {
		if err := guest.call(context.Background(), event); err != nil {
			b.Fatal(err)
		}
		// TinyGo's heap is never collected.
		if guest.memory.used > hotMemoryBytes/2 {
			b.StopTimer()
			if err := guest.fresh(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	if !bytes.Equal(guest.output, event) {
		b.Errorf("output = % x", guest.output)
	}
}

func echoOurs(b *testing.B, compiler, last string, batch int, edit func(*Config)) {
	s := newBench(b, edit)
	inv := echoInvocation(s, guestBuild(b, "kernels", compiler, "echo"), last)
	invoke := func() {
		res, err := s.Invoke(context.Background(), inv)
		if err != nil || res.Err != nil || !bytes.Equal(res.Output, inv.Input) {
			b.Fatalf("Invoke = %+v, %v", res, err)
		}
	}
	invoke() // which compiles the guest and makes its image
	inBatches(b, batch, invoke)
}

// echoInvocation has room for its output.
func echoInvocation(s bench, wasm []byte, last string) host.Invocation {
	inv := s.invocation(s.library.add(wasm), echoed(last))
	inv.Calls, inv.Token = &stopwatch{}, &stopwatch{}
	inv.Buffer = make([]byte, 0, len(inv.Input))
	return inv
}

func echoExtism(b *testing.B, compiler string, timeout uint64, fresh bool) {
	ctx := context.Background()
	wasm := guestBuild(b, "kernels", compiler, "echo", "extism")
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}, Timeout: timeout}
	compiled, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := compiled.Close(ctx); err != nil {
			b.Error(err)
		}
	}()
	var instance *extism.Plugin
	renew := func() {
		if instance != nil {
			if err := instance.Close(ctx); err != nil {
				b.Fatal(err)
			}
		}
		if instance, err = compiled.Instance(ctx, extism.PluginInstanceConfig{}); err != nil {
			b.Fatal(err)
		}
	}
	renew()
	event := echoed("")
	inBatches(b, 1, func() {
		if fresh {
			renew()
		}
		_, out, err := instance.Call("echo", event)
		if err != nil || !bytes.Equal(out, event) {
			b.Fatalf("Call = % x, %v", out, err)
		}
	})
	if err := instance.Close(ctx); err != nil {
		b.Error(err)
	}
}
