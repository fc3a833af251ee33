package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
)

// A flow may lie beside the module whose functions it calls, as NAME.flow.json with
// the plugin's name: 'weft build' puts that of a project there, 'make plugins' those
// of the examples. Who uploads the module puts the flow in place too, as the workflow
// of that name.

// FlowBeside reads the flow beside a module; nil: there is none.
func FlowBeside(module string) (abi.Raw, error) {
	doc, err := ReadFlow(filepath.Join(filepath.Dir(module), ExampleName(module)+FlowSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return doc, err
}

// BuildFlow checks the flow of a project, if it has one, together with the module that
// was built of it, and puts it beside that.
func BuildFlow(ctx context.Context, p guest.Project, module string) error {
	beside := filepath.Join(filepath.Dir(module), p.Name+FlowSuffix)
	if p.Flow == "" {
		if err := os.Remove(beside); !errors.Is(err, fs.ErrNotExist) {
			return err // nil, if one of long ago is gone now
		}
		return nil
	}
	doc, err := ReadFlow(p.Flow)
	if err != nil {
		return err
	}
	wasm, err := ReadModule(module)
	if err != nil {
		return err
	}
	if err := Fitting(ctx, p.Name, wasm, doc); err != nil {
		return Refusal(p.Flow, err)
	}
	text, err := abi.ToJSON(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Flow, err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return fmt.Errorf("%s: %w", p.Flow, err)
	}
	return cli.ReplaceFile(beside, append(out.Bytes(), '\n'))
}

// elsewhere are problems of what a flow names, and only the server has.
var elsewhere = []string{"unknown_plugin", "unknown_workflow"}

// Fitting checks a flow with its plugin, on a host in memory. Which other plugins and
// workflows there are is not known here.
func Fitting(ctx context.Context, name string, wasm []byte, doc abi.Raw) (err error) {
	h, err := wire.Open(ctx, wire.Config{Data: wire.InMemory})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	if _, _, err := h.Plugins.Put(ctx, host.DefaultTenant, name, wasm); err != nil {
		return err
	}
	_, _, err = h.Plugins.Compose(ctx, host.DefaultTenant, name, host.Composition{Flow: doc})
	var refused *host.Error
	if errors.As(err, &refused) && len(refused.Problems) > 0 {
		mine := *refused
		mine.Problems = slices.DeleteFunc(slices.Clone(refused.Problems), func(p host.Problem) bool {
			return slices.Contains(elsewhere, p.Code) && !strings.Contains(p.Message, "no plugin "+name+":")
		})
		if err = &mine; len(mine.Problems) == 0 {
			return nil
		}
	}
	return err
}

// PutWithFlow uploads a plugin by put, and makes the workflow of its flow; a nil doc
// is none. The workflow keeps its settings. A version without a function that the
// present flow calls is refused: if the new flow does not call it, that goes first.
func PutWithFlow(ctx context.Context, r *remote.Conn, name string, doc abi.Raw, put func() error) (changed bool, err error) {
	if doc == nil {
		return false, put()
	}
	c := host.Composition{Flow: doc}
	if about, err := r.About(ctx, name); err == nil && about.Flow != nil {
		c.Settings = about.Settings
	}
	if err := put(); err != nil {
		if !HasProblems(err) {
			return false, err
		}
		if _, _, fault := r.Compose(ctx, name, c); fault != nil || put() != nil {
			return false, err
		}
		changed = true
	}
	_, made, err := r.Compose(ctx, name, c)
	return changed || made, Refusal("the flow of "+name, err)
}

// HasProblems reports whether the server has found problems in what was uploaded.
func HasProblems(err error) bool {
	var refused *host.Error
	return errors.As(err, &refused) && len(refused.Problems) > 0
}
