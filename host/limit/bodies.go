package limit

// MaxResourceDefinition limits the JSON of a resource that is defined through the API, in
// bytes.
const MaxResourceDefinition = 64 << 10

// MaxRequestBytes limits the body of an HTTP request that is not an upload.
const MaxRequestBytes = 16 << 20

// MaxFlowBytes limits the document of a flow, in bytes.
const MaxFlowBytes = 1 << 20
