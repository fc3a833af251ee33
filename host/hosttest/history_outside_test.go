package hosttest_test

import (
	"fmt"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// edit edits the state of the history's session as a client would.
func (p *playing) edit(sc *scene) error {
	how, rest, _ := strings.Cut(sc.rest, " ")
	req := host.SessionEdit{Tenant: host.DefaultTenant, Session: "s", Make: true}
	var err error
	switch how {
	case "put":
		req.State, err = abi.FromJSON([]byte(rest))
	case "patch":
		req.Patch, err = abi.FromJSON([]byte(rest))
	case "edit":
		req.Edits, err = readEdits(rest)
	case "make":
	default:
		err = fmt.Errorf("unknown edit %s", how)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", sc.line, err)
	}
	_, _, err = p.s.host.Runs.EditState(p.t.Context(), req)
	return err
}
