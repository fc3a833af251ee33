package engine

// Audit is for the model, which sees no more of this package than others do.
func Audit(t reporter, s *Session) { audit(t, s) }

// Few: see few.
var Few = few
