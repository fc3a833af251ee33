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

// The flow of a module may be in a file next to the module, NAME.flow.json with the
// plugin's name. 'weft build' writes the flow of a project there, 'make plugins' those of
// the examples. Uploading the module also composes the flow, as the workflow of the same
// name.

// FlowBeside reads the flow next to a module; nil if it has none.
func FlowBeside(module string) (abi.Raw, error) {
	doc, err := ReadFlow(filepath.Join(filepath.Dir(module), ExampleName(module)+FlowSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return doc, err
}

// BuildFlow checks the flow of a project, if it has one, together with the project's
// built module, and writes the flow next to the module.
func BuildFlow(ctx context.Context, p guest.Project, module string) error {
	beside := filepath.Join(filepath.Dir(module), p.Name+FlowSuffix)
	if p.Flow == "" {
		if err := os.Remove(beside); !errors.Is(err, fs.ErrNotExist) {
			return err // an old file may have been removed
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

// elsewhere are problems with names that only the server can resolve.
var elsewhere = []string{"unknown_plugin", "unknown_workflow"}

// Fitting checks a flow with its plugin on a host in memory, which does not have the
// other plugins and workflows of the server.
func Fitting(ctx context.Context, name string, wasm []byte, doc abi.Raw) (err error) {
	h, err := wire.OpenScratch(ctx, wire.Config{})
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

// PutWithFlow uploads a plugin by calling put, and composes the workflow of its flow; a
// nil doc is no flow. The workflow keeps its settings. The server refuses a version
// without a function that the current flow calls. If the new flow does not call the
// function, PutWithFlow composes the new flow first.
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

// HasProblems reports whether the server has found problems in an upload.
func HasProblems(err error) bool {
	var refused *host.Error
	return errors.As(err, &refused) && len(refused.Problems) > 0
}
