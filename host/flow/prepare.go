package flow

import (
	"fmt"
	"maps"

	"github.com/weftrun/weft/abi"
)

// prepare sets the session's state at the start of a run: the stored state overlaid with
// the state of the start event, or the latter alone. The flow's own initial state is the
// default of the state, and was set when the run began.
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

// emptyRequest is the request of calls without content.
var emptyRequest = []byte{0x80}

// overlaid returns under merged with over. Maps in both are merged recursively; for any
// other value, over wins. Neither map is changed.
func overlaid(under, over map[string]any) map[string]any {
	out := make(map[string]any, len(under)+len(over))
	maps.Copy(out, under)
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
