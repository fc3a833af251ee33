"""Errors with a code for programs and a message for people."""


class WeftError(Exception):
    """An error with a code. A step that raises a WeftError fails with this code, and host calls raise one when they fail.

        raise WeftError("the service is busy", code="busy")

    The codes of host calls are invalid_message, not_found, conflict, failed_precondition, permission_denied, limit_exceeded,
    timeout, schema_violation, unavailable and internal.
    """

    def __init__(self, message, *, code="error", retryable=None, data=None):
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.data = data

    def __str__(self):
        return self.message

    def final(self):
        """Marks the failure as final, so that it is not retried, and returns the error."""
        self.retryable = False
        return self


class NotFound(WeftError, ValueError):
    """The error of a host call whose code is not_found."""


class WaitTimeout(WeftError, TimeoutError):
    """The error of a wait that has lasted too long."""


class ValidationError(WeftError, ValueError):
    """The error of values that do not fit a model. It has the first problem, at the path of the value."""

    def __init__(self, message, path=""):
        super().__init__(message, code="schema_violation")
        self.path = path

    def errors(self):
        """Returns a list with the problem, as pydantic has it: loc, msg and type."""
        loc = [p for name in self.path.replace("]", "").split(".") for p in name.split("[")] if self.path else ()
        return [{"loc": tuple(int(p) if p.isdigit() else p for p in loc), "msg": self.message, "type": "value_error"}]

    def error_count(self):
        return 1


class WorkflowValidationError(WeftError):
    """The error of a workflow that is declared wrongly."""

    def __init__(self, message):
        super().__init__(message, code="invalid_message")


class WorkflowRuntimeError(WeftError):
    """The error of a call that the SDK refuses."""

    def __init__(self, message):
        super().__init__(message, code="invalid_message")


_classes = {"not_found": NotFound, "timeout": WaitTimeout}


def host_error(answer):
    """Makes the exception of a failed host call."""
    if not isinstance(answer, dict):
        return WeftError("the host call failed", code="internal")
    code = answer.get("code", "internal")
    return _classes.get(code, WeftError)(answer.get("message", ""), code=code, retryable=answer.get("retryable"), data=answer.get("data"))


def code_of(error):
    """Returns the code of an error: that of a WeftError, "error" for any other exception."""
    while error is not None:
        if isinstance(error, WeftError):
            return error.code
        error = error.__cause__
    return "error"
