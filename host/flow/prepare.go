package flow

import (
	"fmt"

	"github.com/weftrun/weft/abi"
)

// prepare brings the session's state to what the run begins with: what is stored,
// under what the start says; or what the start says alone. What the flow says was
// filled in when the run began: it is the default of the state.
func (d *driver) prepare(start map[string]any) error {
	from, _ := start["session_state"].(map[string]any)
	overwrite, _ := start["overwrite"].(bool)
	if from == nil && !overwrite {
		return nil
	}
	req, err := abi.StateBegin{}.Encode()
	resp, err := d.call(abi.ImportStateBegin, req, err)
	if err != nil {
		return refused("", "the session's state could not be read", err)
	}
	v, err := abi.DecodeValue(resp)
	if err != nil {
		return fmt.Errorf("read the session's state: %w", err)
	}
	stored, _ := v.(map[string]any)
	want := overlaid(stored, from)
	if overwrite {
		want = overlaid(nil, from)
	}
	raw, err := abi.EncodeValue(want)
	if err != nil {
		return failf("", "the session's state: %s", err)
	}
	if string(raw) == string(resp) {
		_, err = d.call(abi.ImportStateAbort, emptyRequest, nil)
		return refused("", "the session's state could not be left", err)
	}
	req, err = abi.StateCommit{Value: raw}.Encode()
	_, err = d.call(abi.ImportStateCommit, req, err)
	return refused("", "the session's state could not be set", err)
}

// emptyRequest is that of calls without content.
var emptyRequest = []byte{0x80}

// overlaid is a map with another over it: maps in both are joined in the same way,
// of all else the upper counts. Neither is changed.
func overlaid(under, over map[string]any) map[string]any {
	out := make(map[string]any, len(under)+len(over))
	for key, v := range under {
		out[key] = v
	}
	for key, v := range over {
		below, isMap := out[key].(map[string]any)
		above, both := v.(map[string]any)
		if isMap && both {
			out[key] = overlaid(below, above)
		} else {
			out[key] = v
		}
	}
	return out
}
