package edits

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// maxShown limits the bytes of a client's text that an error repeats.
const maxShown = 200

// ParsePath parses a client's path into a state.
func ParsePath(path string) (state.Path, error) {
	p, err := state.ParsePath(path)
	if err != nil {
		err = host.Errorf(host.CodeInvalidArgument, "'%s' is not a path into a state: %w", abi.Clip(path, maxShown), err)
	}
	return p, err
}

// At returns the value at a path, with its tag. text is the path as the client wrote it. The
// work is on the tenant's clock.
func (d *Editor) At(ctx context.Context, tenant string, root *state.Node, p state.Path, text string) (host.StateValue, error) {
	n, ok := state.Get(root, p)
	if !ok {
		return host.StateValue{}, host.Errorf(host.CodeNotFound, "The state has nothing at '%s'", abi.Clip(text, maxShown))
	}
	return d.Value(ctx, tenant, n)
}

// tagUnits is the price of a byte of a value that gets a tag.
const tagUnits = 2

// Value returns a value with its tag. The work is on the tenant's clock.
func (d *Editor) Value(ctx context.Context, tenant string, n *state.Node) (host.StateValue, error) {
	m, done := d.cfg.Work(ctx, tenant, 0)
	defer done()
	return valueOf(m, n)
}

// valueOf returns a value with its tag: 128 bits of the SHA-256 of its canonical encoding.
// The error is the meter's.
func valueOf(m *work.Meter, n *state.Node) (host.StateValue, error) {
	raw, err := n.EncodeOn(m)
	if err != nil {
		return host.StateValue{}, err
	}
	sum := sha256.New()
	for rest := raw; len(rest) > 0; {
		piece := rest[:min(len(rest), work.Look/tagUnits)]
		if err := m.Spend(tagUnits * uint64(len(piece))); err != nil {
			return host.StateValue{}, err
		}
		_, _ = sum.Write(piece) // never fails
		rest = rest[len(piece):]
	}
	return host.StateValue{Value: raw, Tag: hex.EncodeToString(sum.Sum(nil)[:16])}, nil
}

// Deleted is the value that answers an edit which has deleted it.
var Deleted = func() host.StateValue {
	n, err := state.Decode(abi.Raw{0xf6})
	if err != nil {
		panic(err) // null is a value
	}
	v, err := valueOf(nil, n)
	if err != nil {
		panic(err)
	}
	return v
}()
