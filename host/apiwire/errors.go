package apiwire

import "github.com/weftrun/weft/host"

// Error is the answer to a request that failed; see [host.Error].
type Error struct {
	_        struct{}  `doc:"An error."`
	Detail   string    `json:"detail" doc:"The error, for people."`
	Code     host.Code `json:"code" doc:"The error, for programs."`
	Problems []Problem `json:"problems,omitempty" doc:"Every problem of the plugin or the workflow."`
	Limit    *Breach   `json:"limit,omitempty" doc:"The tenant's limit, if one was exceeded."`
	Nearest  *Nearest  `json:"nearest,omitempty" doc:"The entries of the run, closest to the one asked for, after which a fork can begin."`
}

// Nearest are entries after which a fork can begin; see [host.Nearest].
type Nearest struct {
	_      struct{} `doc:"Entries after which a fork can begin."`
	Before uint64   `json:"before,omitempty" api:"min=1"`
	After  uint64   `json:"after,omitempty" api:"min=1"`
}

// Problem is one problem of a plugin or a workflow; see [host.Problem].
type Problem struct {
	_       struct{} `doc:"One fault."`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Step    string   `json:"step,omitempty"`
	Event   string   `json:"event,omitempty"`
}

// Breach is a limit that was exceeded; see [limit.Breach].
type Breach struct {
	_     struct{} `doc:"The limit that was exceeded."`
	Limit string   `json:"name" doc:"As a file of limits has it."`
	Value int64    `json:"value" api:"min=1"`
	Used  int64    `json:"used"`
}

// ErrorOf returns the answer to a request that failed with an error.
func ErrorOf(err *host.Error) Error {
	out := Error{Detail: err.Message, Code: err.Code}
	for i := range err.Problems {
		var p Problem
		Fill(&p, &err.Problems[i])
		out.Problems = append(out.Problems, p)
	}
	if err.Breach != nil {
		out.Limit = &Breach{}
		Fill(out.Limit, err.Breach)
	}
	if err.Nearest != nil {
		out.Nearest = &Nearest{}
		Fill(out.Nearest, err.Nearest)
	}
	return out
}

// Health is the answer of a server that accepts requests.
type Health struct {
	_      struct{} `doc:"The server takes requests."`
	Status string   `json:"status" api:"const=healthy"`
}

// Readiness is the answer of a server that accepts work.
type Readiness struct {
	_       struct{} `doc:"The server takes work."`
	Status  string   `json:"status" api:"const=healthy"`
	Reduced string   `json:"reduced,omitempty" doc:"How and why the server works with reduced capacity."`
}

// Unhealthy says why the server does not accept requests, or work.
type Unhealthy struct {
	_      struct{}  `doc:"The server does not take requests."`
	Status string    `json:"status" api:"const=unhealthy"`
	Detail string    `json:"detail"`
	Code   host.Code `json:"code"`
}
