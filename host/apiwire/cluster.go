package apiwire

// Nodes is the answer of GET /cluster.
type Nodes struct {
	Nodes []ClusterNode `json:"nodes"`
}

// ClusterNode is a server of a cluster; see [host.Node].
type ClusterNode struct {
	_       struct{} `doc:"A server of a cluster."`
	Name    string   `json:"name"`
	Epoch   uint64   `json:"epoch" doc:"Number of its entry in the table of nodes. A process that enters again has another."`
	State   string   `json:"state" doc:"live, leaving, left or fenced."`
	Owner   bool     `json:"owner" doc:"It runs the sessions. The other nodes hand requests to it."`
	URL     string   `json:"url" doc:"Where the other nodes reach it."`
	Version string   `json:"version"`
	Seen    Time     `json:"seen_at" doc:"When the store last heard of it."`
	Lease   Seconds  `json:"lease_seconds" doc:"How long it may be silent before another node takes over."`
	Drained bool     `json:"drained" doc:"An operator has moved the sessions away from it. It takes them only if no other node can."`
	Differs []string `json:"differs,omitempty" doc:"Flags whose settings differ from those of the owner; all nodes should have the same."`
}
