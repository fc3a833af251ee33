package resource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// The methods of the kind kv.
const (
	MethodGet       = "get"
	MethodSet       = "set"
	MethodDelete    = "delete"
	MethodIncrement = "increment"
	MethodList      = "list"
)

// kvReads are the methods of the kind kv that only read.
var kvReads = []string{MethodGet, MethodList}

// kvSettings are the limits of a resource of the kind kv, in bytes except keys.
type kvSettings struct {
	keyBytes   int // of a key
	valueBytes int // of a value, encoded
	keys       int // number of keys of a tenant
	bytes      int // total size of a tenant's keys and values
}

// Bounds of the settings.
const (
	maxKeyBytes   = 1 << 10
	maxValueBytes = 1 << 20
	maxKeys       = 1_000_000
	maxKVBytes    = 1 << 30
)

// Bounds of a list.
const (
	defaultList = 100
	maxList     = 1000
	listBytes   = 1 << 20 // at which a page ends
)

// defaultKV returns the default settings of the kind kv.
func defaultKV() kvSettings {
	return kvSettings{keyBytes: 512, valueBytes: 64 << 10, keys: 10_000, bytes: 16 << 20}
}

func (p *parser) kvSettings(v *value, path string, s *kvSettings) {
	p.fields(v, path, map[string]func(*value, string){
		"key_bytes":   func(v *value, path string) { p.number(v, path, 1, maxKeyBytes, &s.keyBytes) },
		"value_bytes": func(v *value, path string) { p.number(v, path, 1, maxValueBytes, &s.valueBytes) },
		"keys":        func(v *value, path string) { p.number(v, path, 1, maxKeys, &s.keys) },
		"bytes":       func(v *value, path string) { p.number(v, path, 1, maxKVBytes, &s.bytes) },
	})
}

// ofKV removes from the fields of a definition or a grant those that the kind kv does not
// use, because it makes no requests.
func (p *parser) ofKV(known map[string]func(*value, string)) map[string]func(*value, string) {
	for _, name := range []string{"secrets", "mode", "in_flight", "allow"} {
		delete(known, name)
	}
	return known
}

// kvKind stores values by key, separately for each tenant. It only computes the result of
// a call. The caller performs the write together with recording the answer.
type kvKind struct{ kvSettings }

func (kvKind) close() {}

// call implements kind. Calls of the kind kv use operate instead.
func (kvKind) call(context.Context, []rule, host.ResourceCall) (abi.Raw, *abi.Error) {
	return nil, final(abi.StatusInternal, "a resource of the kind kv is not called")
}

// kvCall is the request of a guest.
type kvCall struct {
	method    string
	key       string
	value     any
	valued    bool
	by        int64
	ifVersion *uint64
	query     kv.Query
}

// kvFields are the field names of each method's payload.
var kvFields = map[string][]string{
	MethodGet:       {"key"},
	MethodSet:       {"key", "value", "if_version?"},
	MethodDelete:    {"key", "if_version?"},
	MethodIncrement: {"key", "by?"},
	MethodList:      {"prefix?", "after?", "limit?", "values?"},
}

// OperateKV answers a call of a resource of the kind kv with the default settings, for
// hosts without definitions.
func OperateKV(call host.ResourceCall, data kv.Data) kv.Answer {
	return kvKind{defaultKV()}.operate(&call, data)
}

// operate answers a call.
func (k kvKind) operate(call *host.ResourceCall, data kv.Data) kv.Answer {
	failed := func(err *abi.Error) kv.Answer { return kv.Answer{Err: err} }
	names, known := kvFields[call.Method]
	if !known {
		return failed(final(abi.StatusNotFound, "a resource of the kind kv has no method %q: use get, set, delete, increment or list", clip(call.Method)))
	}
	c, err := decodeKV(call.Method, names, call.Payload)
	if err == nil && call.Method != MethodList {
		err = checkKey(c.key)
	}
	if err != nil {
		return failed(final(abi.StatusInvalidMessage, "%s: the payload of %s is {%s}", err, call.Method, strings.Join(names, ", ")))
	}
	if len(c.key) > k.keyBytes {
		return failed(exceeded("the key has %d bytes, more than %d (limit key_bytes)", len(c.key), k.keyBytes))
	}
	switch call.Method {
	case MethodList:
		return k.list(c, data)
	case MethodGet:
		return k.get(c, data)
	}
	return k.change(c, data)
}

// decodeKV reads a payload.
func decodeKV(method string, names []string, payload abi.Raw) (*kvCall, error) {
	v, err := abi.DecodeValue(payload)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the payload is not a map")
	}
	c := &kvCall{method: method, by: 1, query: kv.Query{Limit: defaultList, Bytes: listBytes}}
	for name, v := range m {
		if !slices.Contains(names, name) && !slices.Contains(names, name+"?") {
			return nil, fmt.Errorf("unknown name %q", clip(name))
		}
		if v == nil && name != "value" {
			continue
		}
		if err := c.field(name, v); err != nil {
			return nil, err
		}
	}
	if method == MethodSet && !c.valued {
		return nil, errors.New("the value is missing")
	}
	return c, nil
}

func (c *kvCall) field(name string, v any) error {
	wrong := func(want string) error { return fmt.Errorf("%s must be %s", name, want) }
	var ok bool
	switch name {
	case "key":
		if c.key, ok = v.(string); !ok {
			return wrong("a text")
		}
	case "value":
		c.value, c.valued = v, true
	case "if_version":
		n, ok := wholeNumber(v)
		if !ok || n < 0 || n == 0 && c.method == MethodDelete {
			return wrong("the version that get returned; 0, in a set, means that the key has no value")
		}
		version := uint64(n)
		c.ifVersion = &version
	case "by":
		if c.by, ok = wholeNumber(v); !ok {
			return wrong("a whole number")
		}
	case "prefix":
		if c.query.Prefix, ok = v.(string); !ok {
			return wrong("a text")
		}
	case "after":
		if c.query.After, ok = v.(string); !ok {
			return wrong("the key after which the page begins")
		}
	case "limit":
		n, ok := wholeNumber(v)
		if !ok || n < 1 || n > maxList {
			return wrong(fmt.Sprintf("a number from 1 to %d", maxList))
		}
		c.query.Limit = int(n)
	case "values":
		if c.query.Values, ok = v.(bool); !ok {
			return wrong("true or false")
		}
	}
	return nil
}

// wholeNumber reads an integer, or a float with an integer value.
func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == math.Trunc(n) && math.Abs(n) <= 1<<53
	}
	return 0, false
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key is missing, or empty")
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the key %q has a control character", clip(key))
	}
	return nil
}

// unread is the answer to a call whose data could not be read. Nothing was written.
func unread(err error) kv.Answer {
	return kv.Answer{Err: &abi.Error{Code: abi.StatusUnavailable.Code(), Message: "the store does not work at the moment: " + host.MessageOf(err)}}
}

// answered returns an answer, with a write if there is one.
func answered(v any, write *kv.Item) kv.Answer {
	raw, err := abi.EncodeValue(v)
	if err != nil { // plain values, or a value encoded before
		return kv.Answer{Err: final(abi.StatusInternal, "the answer cannot be written: %s", err)}
	}
	return kv.Answer{Value: raw, Write: write}
}

func (k kvKind) get(c *kvCall, data kv.Data) kv.Answer {
	item, found, err := data.Get(c.key)
	switch {
	case err != nil:
		return unread(err)
	case !found:
		return kv.Answer{Value: abi.Null}
	}
	return answered(map[string]any{"value": item.Value, "version": item.Version}, nil)
}

func (k kvKind) list(c *kvCall, data kv.Data) kv.Answer {
	items, more, err := data.List(c.query)
	if err != nil {
		return unread(err)
	}
	list := make([]any, len(items))
	for i := range items {
		of := map[string]any{"key": items[i].Key, "version": items[i].Version}
		if c.query.Values {
			of["value"] = items[i].Value
		}
		list[i] = of
	}
	page := map[string]any{"items": list}
	if more {
		page["next"] = items[len(items)-1].Key
	}
	return answered(page, nil)
}

// change answers a method that writes.
func (k kvKind) change(c *kvCall, data kv.Data) kv.Answer {
	old, found, err := data.Get(c.key)
	if err != nil {
		return unread(err)
	}
	if fail := c.outrun(old.Version); fail != nil {
		return kv.Answer{Err: fail}
	}
	if c.method == MethodDelete {
		if !found {
			return answered(map[string]any{"deleted": false}, nil)
		}
		return answered(map[string]any{"deleted": true}, &kv.Item{Key: c.key})
	}
	answer := map[string]any{"version": data.Next()}
	value := c.value
	if c.method == MethodIncrement {
		n, fail := c.sum(old.Value, found)
		if fail != nil {
			return kv.Answer{Err: fail}
		}
		value, answer["value"] = n, n
	}
	item := &kv.Item{Key: c.key}
	if item.Value, err = abi.EncodeValue(value); err == nil {
		_, err = abi.EncodeValue([]any{[]any{[]any{item.Value}}}) // a list with the value must not nest too deeply either
	}
	if err != nil {
		return kv.Answer{Err: final(abi.StatusInvalidMessage, "the value cannot be kept: %s", err)}
	}
	if fail := k.fits(item, &old, found, data.Totals()); fail != nil {
		return kv.Answer{Err: fail}
	}
	return answered(answer, item)
}

// outrun returns the error of a write whose key does not have the version that the write
// names, or nil. A step that is retried reads anew.
func (c *kvCall) outrun(now uint64) *abi.Error {
	if c.ifVersion == nil || *c.ifVersion == now {
		return nil
	}
	e := &abi.Error{Code: abi.StatusConflict.Code()}
	switch {
	case now == 0:
		e.Message = fmt.Sprintf("the key %q does not exist, but version %d was expected: read it again", clip(c.key), *c.ifVersion)
	case *c.ifVersion == 0:
		e.Message = fmt.Sprintf("the key %q is there, with version %d, and was not to be", clip(c.key), now)
	default:
		e.Message = fmt.Sprintf("the key %q has version %d, not %d: read it again", clip(c.key), now, *c.ifVersion)
	}
	return e
}

// sum returns the number of the key plus the increment; a missing key counts as 0.
func (c *kvCall) sum(old abi.Raw, found bool) (int64, *abi.Error) {
	n := int64(0)
	if found {
		v, err := abi.DecodeValue(old)
		var ok bool
		if n, ok = v.(int64); err != nil || !ok {
			return 0, final(abi.StatusFailedPrecondition, "what is under the key %q is not a whole number", clip(c.key))
		}
	}
	sum := n + c.by
	if (sum > n) != (c.by > 0) && c.by != 0 {
		return 0, final(abi.StatusFailedPrecondition, "the number under the key %q would leave its range", clip(c.key))
	}
	return sum, nil
}

// exceeded returns the error of a write beyond a limit. The error is not final: space may
// become free, and a step may handle it.
func exceeded(format string, args ...any) *abi.Error {
	return &abi.Error{Code: abi.StatusLimitExceeded.Code(), Message: fmt.Sprintf(format, args...)}
}

// fits refuses an item that would exceed a limit.
func (k kvKind) fits(item, old *kv.Item, found bool, t kv.Totals) *abi.Error {
	bytes := t.Bytes + item.Size()
	if found {
		bytes -= old.Size()
	}
	switch {
	case len(item.Value) > k.valueBytes:
		return exceeded("the value has %d bytes, more than %d (limit value_bytes)", len(item.Value), k.valueBytes)
	case !found && t.Keys >= int64(k.keys):
		return exceeded("the resource has %d keys, the maximum (limit keys)", t.Keys)
	case bytes > int64(k.bytes) && (!found || item.Size() > old.Size()):
		return exceeded("the resource would keep %d bytes, more than %d (limit bytes)", bytes, k.bytes)
	}
	return nil
}

// ResourceKeys implements host.ResourceAdmin.
func (s *Service) ResourceKeys(ctx context.Context, tenant, name string, q kv.Query) (page kv.Page, err error) {
	info, err := s.Resource(ctx, tenant, name)
	if err != nil {
		return page, err
	}
	if info.Kind != KindKV {
		return page, host.Errorf(host.CodeInvalidArgument, "The resource '%s' is of the kind %s, which keeps no keys", clip(name), info.Kind)
	}
	space := kv.Space{Tenant: tenant, Resource: name, Made: info.Created}
	if page.Totals, err = s.cfg.Store.KVTotals(ctx, space); err == nil {
		page.Items, page.More, err = s.cfg.Store.KVItems(ctx, space, q)
	}
	if err != nil {
		return page, host.Errorf(host.CodeUnavailable, "What the resource keeps cannot be read: %w", err)
	}
	return page, nil
}
