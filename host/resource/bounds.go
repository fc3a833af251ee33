package resource

// MaxResources bounds the resources that a tenant defines by the API.
const MaxResources = 100
