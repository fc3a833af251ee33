package httpapi_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weftrun/weft/host"
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

// TestAddressOfTheServer: a browser that opens the address is sent to the description.
func TestAddressOfTheServer(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	if w := call(t, h, "GET", "/", ""); w.Code != http.StatusFound || w.Header().Get("Location") != "/docs" {
		t.Errorf("GET / = %d to %q", w.Code, w.Header().Get("Location"))
	}
	if got := wantError(t, call(t, h, "GET", "/handler/h", ""), http.StatusNotFound, host.CodeNotFound); !strings.Contains(got, "GET /handler/h is not a path of the API") {
		t.Errorf("detail = %q", got)
	}
}
