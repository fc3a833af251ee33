package engine

// Audit is for the model, which uses only exported names.
func Audit(t reporter, s *Session) { audit(t, s) }

// Few: see few.
var Few = few
