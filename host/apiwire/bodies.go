package apiwire

import "github.com/weftrun/weft/host"

// Start is the body of a start as the server reads it.
type Start = StartOf[Value]

// StartOf is the body of a start. V is the type of the parts that users write.
type StartOf[V any] struct {
	_         struct{}    `body:"closed" doc:"How a run starts. What is null, empty or absent is not given."`
	Event     V           `json:"start_event,omitempty" api:"object,json,loose" doc:"Plain fields or an envelope, or one of them as a text of JSON."`
	Kwargs    V           `json:"kwargs,omitempty" api:"object,loose" doc:"More fields; those of start_event win."`
	HandlerID string      `json:"handler_id,omitempty" doc:"The id of a new handler, or of a handler whose run has ended."`
	SessionID string      `json:"session,omitempty" doc:"The session on whose state the run works, made at its first use. Default: the handler's private session."`
	OnBusy    host.OnBusy `json:"on_busy,omitempty" doc:"What to do if the session has an active run."`
	Snapshot  V           `json:"context,omitempty" api:"object,loose" doc:"A snapshot from which the run continues."`
}

// Send is the body of a posted event as the server reads it.
type Send = SendOf[Value]

// SendOf is the body of a posted event. V is the type of the event.
type SendOf[V any] struct {
	_     struct{} `body:"open" doc:"An event for a run."`
	Event V        `json:"event" api:"object,json,loose" doc:"An envelope: type or qualified_name, with value; or the same as a text of JSON."`
	Step  string   `json:"step,omitempty" doc:"The step that gets the event. Default: the steps that wait for it or accept it."`
}

// ForkAt is the body of a fork as the server reads it.
type ForkAt = ForkAtOf[Value]

// ForkAtOf is the body of a fork. V is the type of the parts that users write.
type ForkAtOf[V any] struct {
	_      struct{} `body:"closed"`
	At     uint64   `json:"at" api:"min=1" doc:"The seq of the entry after which the copy continues."`
	State  V        `json:"state,omitempty" api:"object" doc:"The whole state with which the copy continues."`
	Patch  V        `json:"patch,omitempty" api:"object" doc:"Instead of state: a merge patch (RFC 7396) of the state."`
	Edits  V        `json:"edits,omitempty" api:"json" doc:"Instead of state: a list of edits of the state, such as [[\"set\", \"user.name\", \"Ada\"]]."`
	Answer V        `json:"answer,omitempty" api:"object,json" doc:"An event that the copy gets before it continues: an envelope, as POST /events/{id} takes."`
	Step   string   `json:"step,omitempty" doc:"The step that gets the answer. Default: the steps that wait for it or accept it."`
	Paused bool     `json:"paused,omitempty" api:"default=false" doc:"The copy waits until it is resumed."`
	DryRun bool     `json:"dry_run,omitempty" api:"default=false" doc:"Check everything and begin nothing. The ids of the answer are those of nobody."`
}

// Retry is the body of a retry.
type Retry struct {
	_      struct{} `body:"closed"`
	Newest bool     `json:"newest,omitempty" api:"default=false" doc:"On the newest version."`
}

// Migrate is the body of a migration.
type Migrate struct {
	_         struct{} `body:"closed"`
	HandlerID string   `json:"handler_id,omitempty" doc:"Only this handler's run."`
}

// PutSessionOf is the body of a request that creates a session. V is the type of its
// state.
type PutSessionOf[V any] struct {
	_     struct{} `body:"closed"`
	State V        `json:"state,omitempty" api:"object" doc:"The new state. Without it, the state does not change."`
}

// PutSession is the body of a request that creates a session, as the server reads it.
type PutSession = PutSessionOf[Value]

// NewTenant is the body of a request that creates a tenant.
type NewTenant struct {
	_    struct{} `body:"closed"`
	Name string   `json:"name" api:"minLength=1,maxLength=64"`
}

// KeyRequest is the body of a request that creates a key; see [host.KeyRequest].
type KeyRequest struct {
	_       struct{}  `body:"closed"`
	Tenant  string    `json:"tenant,omitempty" doc:"Default: the tenant of the request."`
	Role    host.Role `json:"role"`
	Name    string    `json:"name,omitempty" doc:"What the key is for."`
	Expires string    `json:"expires_at,omitempty" api:"format=date-time" doc:"Default: never."`
}

// Rotate is the body of a request that gives a key a new secret.
type Rotate struct {
	_     struct{} `body:"closed"`
	Grace *Seconds `json:"grace,omitempty" api:"min=0" doc:"For so long, in seconds, the key is good as it was, too."`
}
