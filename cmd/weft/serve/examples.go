package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
)

// loadExamples uploads the examples, as many at once as there are cores, and returns
// their number.
func loadExamples(ctx context.Context, h *wire.Host, dir string, stdout io.Writer) (int, error) {
	files, err := exampleFiles(dir)
	if err != nil {
		return 0, err
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards the variables below, and stdout
		done int
		errs []error
	)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, file := range files {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := loadExample(ctx, h, file)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			done++
			fmt.Fprintf(stdout, "loaded %d/%d: %s\n", done, len(files), plugins.ExampleName(file))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return done, err
	}
	return done, loadFlows(ctx, h, dir, stdout)
}

// demoPlugin is the example that the demonstration runs.
const demoPlugin = "wordcount"

// loadOne uploads one example.
func loadOne(ctx context.Context, h *wire.Host, dir, name string, stdout io.Writer) error {
	files, err := exampleFiles(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if plugins.ExampleName(file) == name {
			fmt.Fprintf(stdout, "loading the example %s ...\n", name)
			return loadExample(quietContext(ctx), h, file)
		}
	}
	return fmt.Errorf("no example %s in %s: build it with 'make plugins'", name, dir)
}

// backgroundLoads is how many examples are loaded at a time while clients use the server.
const backgroundLoads = 2

// loadRest uploads all examples, and shows the progress in a line. Examples that the
// server already has stay unchanged.
func loadRest(ctx context.Context, h *wire.Host, dir string, stdout io.Writer) error {
	files, err := exampleFiles(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	line := screen.NewLoading(stdout, len(files))
	var g errgroup
	g.limit(backgroundLoads)
	for _, file := range files {
		g.run(func() error {
			if err := loadExample(quietContext(ctx), h, file); err != nil {
				return err
			}
			line.Step(plugins.ExampleName(file))
			return nil
		})
	}
	err = errors.Join(g.wait(), ctx.Err())
	if err == nil {
		err = loadFlows(quietContext(ctx), h, dir, io.Discard)
	}
	line.End()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d example plugins loaded in %s\n", len(files), screen.Span(time.Since(began)))
	return err
}

// quietContext returns a context for background work, whose steps are not logged.
func quietContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, quietKey{}, true)
}

// errgroup runs functions, a few at a time, and joins their errors.
type errgroup struct {
	wg    sync.WaitGroup
	slots chan struct{}
	mu    sync.Mutex // guards errs
	errs  []error
}

func (g *errgroup) limit(n int) { g.slots = make(chan struct{}, n) }

// run waits for a place and runs f.
func (g *errgroup) run(f func() error) {
	g.slots <- struct{}{}
	g.wg.Go(func() {
		defer func() { <-g.slots }()
		if err := f(); err != nil {
			g.mu.Lock()
			g.errs = append(g.errs, err)
			g.mu.Unlock()
		}
	})
}

func (g *errgroup) wait() error {
	g.wg.Wait()
	return errors.Join(g.errs...)
}

// loadFlows composes the flows of the examples, under the names of their plugins.
func loadFlows(ctx context.Context, h *wire.Host, dir string, stdout io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"+plugins.FlowSuffix))
	if err != nil {
		return err
	}
	for _, file := range files {
		doc, err := plugins.ReadFlow(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), plugins.FlowSuffix)
		if _, _, err := h.Plugins.Compose(ctx, host.DefaultTenant, name, host.Composition{Flow: doc}); err != nil {
			return fmt.Errorf("%s: %w", file, plugins.Refusal("flow "+name, err))
		}
		fmt.Fprintf(stdout, "loaded flow %s\n", name)
	}
	return nil
}

func loadExample(ctx context.Context, h *wire.Host, file string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, _, err := h.Plugins.Put(ctx, host.DefaultTenant, plugins.ExampleName(file), wasm); err != nil {
		return pluginError(file, err)
	}
	return nil
}

// exampleFiles lists the modules of a directory, one for each example. In the default
// directory these are the Go builds. In another directory it prefers the Go build if an
// example has one.
func exampleFiles(dir string) ([]string, error) {
	pattern := "*.wasm"
	if dir == plugins.DefaultExamples {
		pattern = "*" + plugins.GoSuffix + ".wasm"
	}
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no %s in %s: build the examples with 'make plugins', or name a directory with --examples=DIR", pattern, dir)
	}
	return slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		return strings.HasSuffix(file, plugins.TinygoSuffix+".wasm") &&
			slices.Contains(files, filepath.Join(dir, plugins.ExampleName(file)+plugins.GoSuffix+".wasm"))
	}), nil
}
