package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	sdk "github.com/extism/go-sdk"

	"github.com/weftrun/weft/host"
)

// BenchmarkExtism calls the same plugins, as their authors built them, in both
// hosts:
//
//   - weft: as a step, pristine and metered, with the event decoded and encoded
//   - sdk-warm: Extism's host, one instance, nothing reset
//   - sdk-fresh: Extism's host, a new instance for each call
func BenchmarkExtism(b *testing.B) {
	for _, guest := range []struct {
		name, export string
		wasm         []byte
	}{
		{"tinygo", "count_vowels", extismBuild(b, "tinygo")},
		{"tinygo", "echo", extismBuild(b, "tinygo")},
		{"rust", "count_vowels", extismBuild(b, "rust")},
		{"rust", "echo", extismBuild(b, "rust")},
		{"go", "count_vowels", extismBuild(b, "go")},
		{"go", "echo", extismBuild(b, "go")},
	} {
		for _, size := range []int{256, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%s/%d", guest.name, guest.export, size), func(b *testing.B) {
				s := newBench(b, nil)
				p := inBoth(b, s, guest.wasm, nil, guest.export)
				input := bytes.Repeat([]byte("weft"), size/4)
				b.Run("weft", func(b *testing.B) { benchOurs(b, s, p.invocation(guest.export, input)) })
				b.Run("sdk-warm", func(b *testing.B) { benchTheirs(b, p, guest.export, input, false) })
				b.Run("sdk-fresh", func(b *testing.B) { benchTheirs(b, p, guest.export, input, true) })
			})
		}
	}
}

func benchOurs(b *testing.B, s bench, inv host.Invocation) {
	inv.Calls, inv.Token = answers{}, answers{}
	inBatches(b, 16, func() {
		if res, err := s.Invoke(context.Background(), inv); err != nil || res.Err != nil || res.Code != 0 {
			b.Fatalf("Invoke = %+v, %v", res, err)
		}
	})
}

func benchTheirs(b *testing.B, p *pair, export string, input []byte, fresh bool) {
	ctx := context.Background()
	renew := func() *sdk.Plugin {
		instance, err := p.theirs.Instance(ctx, sdk.PluginInstanceConfig{})
		if err != nil {
			b.Fatal(err)
		}
		return instance
	}
	instance := renew()
	n := 0
	inBatches(b, 4, func() {
		// TinyGo's heap is never collected: it would be full at some time.
		if n++; fresh || n%1000 == 0 {
			if err := instance.Close(ctx); err != nil {
				b.Fatal(err)
			}
			instance = renew()
		}
		if _, _, err := instance.Call(export, input); err != nil {
			b.Fatal(err)
		}
	})
	if err := instance.Close(ctx); err != nil {
		b.Error(err)
	}
}
