package extism

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weftrun/weft/abi"
)

// Request converts what a plugin passes to http_request (JSON, and a body or nil) to the
// payload of a call of a resource of kind http.
func Request(text, body []byte) (abi.Raw, error) {
	var q struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fmt.Errorf("invalid http request: %w", err)
	}
	if q.Method == "" {
		q.Method = "GET"
	}
	payload := map[string]any{"url": q.URL, "method": strings.ToUpper(q.Method)}
	if len(q.Headers) > 0 {
		headers := make(map[string]any, len(q.Headers))
		for name, value := range q.Headers {
			headers[name] = value
		}
		payload["headers"] = headers
	}
	if body != nil {
		payload["body"] = body
	}
	return abi.EncodeValue(payload)
}

// Answer converts the answer of a resource of kind http. The headers are JSON, with names
// in lower case; several values of a header are joined by commas.
func Answer(value abi.Raw) (status uint32, headers, body []byte, err error) {
	v, err := abi.DecodeValue(value)
	if err != nil {
		return 0, nil, nil, err
	}
	m, _ := v.(map[string]any)
	code, ok := m["status"].(int64)
	if !ok {
		return 0, nil, nil, fmt.Errorf("the answer has no status")
	}
	body, _ = m["body"].([]byte)
	texts := map[string]string{}
	all, _ := m["headers"].(map[string]any)
	for name, list := range all {
		var values []string
		items, _ := list.([]any)
		for _, item := range items {
			if text, ok := item.(string); ok {
				values = append(values, text)
			}
		}
		texts[strings.ToLower(name)] = strings.Join(values, ",")
	}
	headers, err = json.Marshal(texts)
	return uint32(code), headers, body, err
}
