package rewrite

import (
	"context"
	"testing"
	"os"
	"time"
	"path/filepath"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

func TestR(t *testing.T){
	for _, g := range []string{"../../../build/plugins/*.wasm","../../../testdata/hostile/*.wasm"} {
	fs,_ := filepath.Glob(g)
	ctx := context.Background()
	cfg := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2)
	for i, f := range fs {
		if i > 3 && g[9]=='b' {continue}
		b,_ := os.ReadFile(f)
		t0 := time.Now()
		r, err := Rewrite(b, Options{TableEntries: 65536, MemoryPages: 4096, Extract: true})
		if err != nil { t.Log(f, err); continue }
		el := time.Since(t0)
		t.Logf("%s %v %+v %v", filepath.Base(f), el, r.Stats, r.Fallback)
		rt := wazero.NewRuntimeWithConfig(ctx, cfg)
		_, err0 := rt.CompileModule(ctx, b)
		_, err = rt.CompileModule(ctx, r.Wasm)
		if (err0==nil) != (err==nil) { t.Error(f, err0, err) 
			os.WriteFile("/tmp/x.wasm", r.Wasm, 0o600)
		}
		rt.Close(ctx)
	}}
}
