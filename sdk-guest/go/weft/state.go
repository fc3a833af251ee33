package weft

import (
	"reflect"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Paths are dotted: "a.b.0" is the first item of the list b in the map a, "-1" the last
// item of a list, "" the whole state. Write a dot in a key as \., and a backslash before
// a dot or a backslash as \\.

// Get reads the value at a path to *target. A path without a value is an error; see
// [Context.GetOr].
func (inv *invocation) Get(path string, target any) error {
	e := inv.begin(1)
	e.Text(path)
	return inv.get(path, target)
}

// GetOr reads the value at a path to *target, or the fallback if there is no value.
func (inv *invocation) GetOr(path string, target, fallback any) error {
	e := inv.begin(2)
	e.Text(path)
	e.Value(fallback)
	return inv.get(path, target)
}

func (inv *invocation) get(path string, target any) error {
	if err := inv.request.Err(); err != nil {
		return misuse("get " + quote(path) + ": the default: " + err.Error())
	}
	status, response := boundary.StateGet(inv.request.B)
	if err := callError(status, response, "get "+quote(path), "GetOr(path, &v, fallback) gives a default"); err != nil {
		return err
	}
	if err := codec.Unmarshal(response, target); err != nil {
		return misuse("get " + quote(path) + ": " + err.Error())
	}
	return nil
}

// State returns the whole state. Inside an edit, too, it returns the last committed
// state.
func (c *Context[S]) State() (S, error) {
	var s S
	err := c.Get("", &s)
	return s, err
}

// Set sets the value at a path, and creates missing maps on the path.
func (inv *invocation) Set(path string, v any) error {
	_, err := inv.edit1("set", path, v)
	return err
}

// Delete removes the value at a path and reports whether there was one.
func (inv *invocation) Delete(path string) (bool, error) {
	d, err := inv.edit1("delete", path, noValue{})
	if err != nil {
		return false, err
	}
	was := d.Bool()
	return was, d.Err()
}

// Append adds a value to the list at a path and returns the list's new length. A missing
// list is created.
func (inv *invocation) Append(path string, v any) (int, error) {
	d, err := inv.edit1("append", path, v)
	if err != nil {
		return 0, err
	}
	n := d.Int(0, 1<<31-1)
	return int(n), d.Err()
}

// Increment adds to the integer at a path and returns the new value. A missing value
// counts as 0.
func (inv *invocation) Increment(path string, by int64) (int64, error) {
	d, err := inv.edit1("increment", path, by)
	if err != nil {
		return 0, err
	}
	v := d.Int(-1<<63, 1<<63-1)
	return v, d.Err()
}

// IncrementFloat adds to the number at a path and returns the new value. A missing value
// counts as 0.
func (inv *invocation) IncrementFloat(path string, by float64) (float64, error) {
	d, err := inv.edit1("increment", path, by)
	if err != nil {
		return 0, err
	}
	v := d.Float()
	return v, d.Err()
}

// Merge merges the entries of a map or struct into the map at a path, recursively.
func (inv *invocation) Merge(path string, entries any) error {
	_, err := inv.edit1("merge", path, entries)
	return err
}

// Test fails with [CodeConflict] unless the value at a path equals v. It is most useful
// in a [Context.Batch], which then fails as a whole.
func (inv *invocation) Test(path string, v any) error {
	_, err := inv.edit1("test", path, v)
	return err
}

// Clear resets the whole state to its declared defaults.
func (inv *invocation) Clear() error {
	_, err := inv.Batch().Clear().Do()
	return err
}

// noValue marks an edit without a value.
type noValue struct{}

// edit1 makes one edit. The decoder is positioned at its result.
func (inv *invocation) edit1(op, path string, v any) (*cbor.Decoder, error) {
	e := inv.begin(1)
	writeEdit(e, op, path, v)
	d, err := inv.sendEdits(op + " " + quote(path))
	if err != nil {
		return nil, err
	}
	if d.Array() != 1 {
		return nil, misuse(op + ": the host gave another number of results than there are edits")
	}
	return d, nil
}

func writeEdit(e *codec.Encoder, op, path string, v any) {
	if _, none := v.(noValue); none {
		e.List(2)
		e.Text(op)
		e.Text(path)
		return
	}
	e.List(3)
	e.Text(op)
	e.Text(path)
	e.Value(v)
}

func (inv *invocation) sendEdits(what string) (*cbor.Decoder, error) {
	if err := inv.request.Err(); err != nil {
		return nil, misuse(what + ": " + err.Error())
	}
	status, response := boundary.StateEdit(inv.request.B)
	return cbor.NewDecoder(response), callError(status, response, what, "")
}

// Batch is a list of edits that take effect together or not at all.
type Batch struct {
	inv   *invocation
	edits codec.Encoder
	n     int
}

// Batch starts a list of edits:
//
//	_, err := ctx.Batch().Set("open", true).Increment("visits", 1).Do()
func (inv *invocation) Batch() *Batch { return &Batch{inv: inv} }

func (b *Batch) add(op, path string, v any) *Batch {
	writeEdit(&b.edits, op, path, v)
	b.n++
	return b
}

// Set sets the value at a path, and creates missing maps on the path.
func (b *Batch) Set(path string, v any) *Batch { return b.add("set", path, v) }

// Delete removes the value at a path; its result reports whether there was one.
func (b *Batch) Delete(path string) *Batch { return b.add("delete", path, noValue{}) }

// Append adds a value to the list at a path; its result is the new length.
func (b *Batch) Append(path string, v any) *Batch { return b.add("append", path, v) }

// Increment adds to the integer at a path; its result is the new value.
func (b *Batch) Increment(path string, by int64) *Batch { return b.add("increment", path, by) }

// IncrementFloat adds to the number at a path; its result is the new value.
func (b *Batch) IncrementFloat(path string, by float64) *Batch { return b.add("increment", path, by) }

// Merge puts the entries of a map or struct into the map at a path.
func (b *Batch) Merge(path string, entries any) *Batch { return b.add("merge", path, entries) }

// Test fails the whole batch, with [CodeConflict], unless the value at the
// path equals v.
func (b *Batch) Test(path string, v any) *Batch { return b.add("test", path, v) }

// Clear resets the whole state to its declared defaults.
func (b *Batch) Clear() *Batch {
	b.edits.List(1)
	b.edits.Text("clear")
	b.n++
	return b
}

// Do makes the edits and returns a result for each.
func (b *Batch) Do() ([]any, error) {
	if b.n == 0 {
		return nil, nil
	}
	if err := b.edits.Err(); err != nil {
		return nil, misuse("batch: " + err.Error())
	}
	b.inv.begin(b.n).Raw(b.edits.B)
	d, err := b.inv.sendEdits("batch")
	if err != nil {
		return nil, err
	}
	results, _ := d.Value().([]any)
	return results, d.Err()
}

// Edit reads the whole state, lets change modify it, and writes it back, without
// interference from others. If another edit changes the state meanwhile, Edit calls
// change again with the new state, so that no edit is lost. If change returns an error,
// nothing is written and Edit returns that error. Keys that S does not declare are kept.
//
// change may only read, log, and call [Context.Now] and [Context.Random]. Its effects
// outside the state are visible once.
func (c *Context[S]) Edit(change func(*S) error) error {
	var s S
	return c.edit("", reflect.TypeOf(s), unsafe.Pointer(&s), func() error { return change(&s) })
}

// EditAt is [Context.Edit] for the value at a path. It costs less than editing the whole
// state, and conflicts with fewer other edits.
//
//	err := weft.EditAt(ctx, "cart.items", func(items *[]Item) error { ... })
func EditAt[T, S any](ctx *Context[S], path string, change func(*T) error) error {
	var v T
	return ctx.edit(path, reflect.TypeOf(&v).Elem(), unsafe.Pointer(&v), func() error { return change(&v) })
}

// edit opens an edit, reads the value to ptr, runs change and commits.
func (inv *invocation) edit(path string, t reflect.Type, ptr unsafe.Pointer, change func() error) error {
	if t == nil {
		t = reflect.TypeOf((*any)(nil)).Elem()
	}
	plan, err := codec.Of(t)
	if err != nil {
		return misuse("edit: " + err.Error())
	}
	e := inv.begin(1)
	e.Text(path)
	status, response := boundary.StateBegin(e.B)
	if err := callError(status, response, "edit "+quote(path), "Set the path before it is edited, or declare a default"); err != nil {
		return err
	}
	var rest map[string]codec.Raw
	d := cbor.NewDecoder(response)
	if plan.IsStruct() {
		plan.DecodeStruct(d, ptr, &rest)
	} else {
		plan.Decode(d, ptr)
	}
	err = d.Err()
	if err != nil {
		err = misuse("edit " + quote(path) + ": " + err.Error())
	} else {
		err = change()
	}
	if err == nil {
		return inv.commit(path, plan, ptr, rest)
	}
	inv.abort()
	return err
}

// commit writes back the value at ptr, with the keys that its type does not declare.
func (inv *invocation) commit(path string, plan *codec.Plan, ptr unsafe.Pointer, rest map[string]codec.Raw) error {
	e := inv.begin(1)
	if plan.IsStruct() {
		plan.EncodeStruct(e, ptr, rest)
	} else {
		plan.Encode(e, ptr)
	}
	if e.Err() != nil {
		err := misuse("edit " + quote(path) + ": " + e.Err().Error())
		inv.abort()
		return err
	}
	status, response := boundary.StateCommit(e.B)
	return callError(status, response, "edit "+quote(path), "")
}

// abort ends the open edit. It fails only if there is none.
func (inv *invocation) abort() { boundary.StateAbort(inv.begin(0).B) }
