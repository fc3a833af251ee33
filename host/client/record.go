package client

import (
	"encoding/json"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

func decodeRecord(text []byte) (Record, error) {
	var r apiwire.Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, &host.Error{Code: host.CodeInvalidMessage, Message: "The server's record is not understood: " + err.Error(), Cause: err}
	}
	run, err := apiwire.Run(&r)
	return Record{JSON: text, Remedy: r.Remedy, Run: run}, err
}
