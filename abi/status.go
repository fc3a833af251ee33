package abi

// statusCodes are the codes of the statuses, in the order of abi.cddl.
var statusCodes = [...]string{
	StatusOK:                 "ok",
	StatusInvalidMessage:     "invalid_message",
	StatusNotFound:           "not_found",
	StatusConflict:           "conflict",
	StatusFailedPrecondition: "failed_precondition",
	StatusPermissionDenied:   "permission_denied",
	StatusLimitExceeded:      "limit_exceeded",
	StatusTimeout:            "timeout",
	StatusSchemaViolation:    "schema_violation",
	StatusUnavailable:        "unavailable",
	StatusInternal:           "internal",
}

// Code returns the error code of the status: "ok" for [StatusOK], and "internal" for an
// unknown number.
func (s Status) Code() string {
	if int(s) >= len(statusCodes) {
		return statusCodes[StatusInternal]
	}
	return statusCodes[s]
}

// StatusOf returns the status of an error code, [StatusInternal] for a code
// that is not in the table.
func StatusOf(code string) Status {
	for i, c := range statusCodes {
		if c == code {
			return Status(i)
		}
	}
	return StatusInternal
}

// Error returns "code: message".
func (e *Error) Error() string {
	return e.Code + ": " + e.Message
}
