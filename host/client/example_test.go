package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// answering is a server that gives one answer, for examples.
func answering(status int, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
}

func ExampleClient_Start() {
	server := answering(http.StatusOK, `{"handler_id": "h1", "workflow_name": "wordcount", "status": "completed", "run_id": "r1",
		"started_at": "2026-01-02T03:04:05Z", "result": {"type": "StopEvent", "value": {"result": {"words": 2}}}}`)
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	record, err := c.Start(context.Background(), client.StartRequest{
		Workflow: "wordcount", Event: json.RawMessage(`{"text": "to be"}`), Wait: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(record.HandlerID, record.Status)
	// Output: h1 completed
}

// What a server answers as an error has its code.
func ExampleClient_Get() {
	server := answering(http.StatusNotFound, `{"code": "not_found", "detail": "Handler h9 not found"}`)
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Get(context.Background(), "h9")
	fmt.Println(host.CodeOf(err))
	// Output: not_found
}
