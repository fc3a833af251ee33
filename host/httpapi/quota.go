package httpapi

// Quotas refuses what is more than a tenant may have. Its methods may be called from
// any goroutine; their errors are [*host.Error]s.
type Quotas interface {
	// Request counts a request.
	Request(tenant string) error
	// Reader counts a reader of a stream until it leaves.
	Reader(tenant string) (leave func(), err error)
}

// admit counts a request, or refuses it.
func (s *Server) admit(tenant string) error {
	if s.cfg.Quotas == nil {
		return nil
	}
	return s.cfg.Quotas.Request(tenant)
}

// reader counts a reader of a stream, or refuses it.
func (s *Server) reader(tenant string) (leave func(), err error) {
	if s.cfg.Quotas == nil {
		return func() {}, nil
	}
	return s.cfg.Quotas.Reader(tenant)
}
