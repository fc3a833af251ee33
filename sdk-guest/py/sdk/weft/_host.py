"""Host calls."""

import _weft

from .errors import WeftError

_numbers = {name: i for i, name in enumerate(_weft.names)}


def call(name, request, what=None, advice=""):
    """Makes a host call. what precedes the host's message; advice follows the message of not_found."""
    try:
        return _weft.call(_numbers[name], request)
    except WeftError as e:
        if what:
            e.message = f"{what}: {e.message}" + (f"; {advice}" if advice and e.code == "not_found" else "")
        raise


def log(level, message, attrs=None):
    """Writes a log record. A record that cannot be written does not fail the step."""
    try:
        _weft.call(_numbers["log"], [level, str(message), attrs] if attrs else [level, str(message)])
    except Exception:  # noqa: BLE001
        pass
