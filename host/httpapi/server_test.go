package httpapi_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/host/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer makes a server over a fake host. Change sets more of its Config.
func newServer(tb testing.TB, f *fakeHost, change ...func(*httpapi.Config)) *httpapi.Server {
	cfg := httpapi.Config{
		Runs: f, Sessions: &f.sessions, Plugins: fakePlugins{f}, Health: f, Version: "test",
		Log: slog.New(slog.NewTextHandler(tb.Output(), nil)),
	}
	for _, set := range change {
		set(&cfg)
	}
	return httpapi.New(cfg)
}
