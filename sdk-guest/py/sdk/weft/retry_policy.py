"""When a failed step is tried again, how long it waits before, and when it is given up.

The names are those of LlamaIndex Workflows. Conditions on exceptions run in the step that has failed: they decide whether the failure
is final. on_codes and on_message run in the host, and so apply to failures of the host as well, such as a timeout.
"""

import datetime
import re

from .errors import WorkflowValidationError


def nanoseconds(value):
    """Returns a duration in nanoseconds: a number of seconds, a timedelta, or a text such as "10ms", "5s", "2m", "1h", "3d"."""
    if isinstance(value, datetime.timedelta):
        return (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return round(value * 10**9)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h|d)", value) if isinstance(value, str) else []
    if not parts or "".join(n + unit for n, unit in parts) != value:
        raise WorkflowValidationError(f"{value!r} is not a duration: give seconds, a timedelta or a text such as \"10ms\"")
    units = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
    return sum(round(float(n) * units[unit]) for n, unit in parts)


class RetryInfo:
    """What a step knows of its earlier attempts."""

    def __init__(self, retry_number, elapsed_seconds, last_exception, last_failed_at):
        self.retry_number = retry_number
        self.elapsed_seconds = elapsed_seconds
        self.last_exception = last_exception
        self.last_failed_at = last_failed_at


# ---- conditions


class Condition:
    """Decides whether a failure is retried. host is the rule that the manifest has, or None if only the step can tell."""

    host = None

    def __call__(self, error):
        return True

    def __or__(self, other):
        return retry_any(self, other)

    def __and__(self, other):
        return retry_all(self, other)

    __ror__, __rand__ = __or__, __and__


class retry_if_exception(Condition):
    """Retries exceptions for which a function returns a true value."""

    def __init__(self, predicate):
        self.predicate = predicate

    def __call__(self, error):
        return self.predicate(error)


class retry_if_exception_type(retry_if_exception):
    """Retries exceptions of the given types."""

    def __init__(self, exception_types=Exception):
        super().__init__(lambda e: isinstance(e, exception_types))


class retry_if_not_exception_type(retry_if_exception):
    """Retries exceptions of other types."""

    def __init__(self, exception_types=Exception):
        super().__init__(lambda e: not isinstance(e, exception_types))


retry_unless_exception_type = retry_if_not_exception_type


class retry_if_exception_message(Condition):
    """Retries exceptions with a message that equals a text, or that matches a regular expression from its beginning."""

    def __init__(self, message=None, match=None):
        if (message is None) == (match is None):
            raise TypeError("give either message or match")
        self.message, self.match = message, re.compile(match) if match is not None else None

    def __call__(self, error):
        return str(error) == self.message if self.match is None else self.match.match(str(error)) is not None


class retry_if_not_exception_message(retry_if_exception_message):
    """Retries exceptions with other messages."""

    def __call__(self, error):
        return not super().__call__(error)


class retry_if_exception_cause_type(Condition):
    """Retries exceptions that have a cause of the given types."""

    def __init__(self, exception_types=Exception):
        self.types = exception_types

    def __call__(self, error):
        while (error := error.__cause__) is not None:
            if isinstance(error, self.types):
                return True
        return False


class retry_always(Condition):
    """Retries every failure."""

    host = "always"


class retry_never(Condition):
    """Retries no failure."""

    host = "never"

    def __call__(self, error):
        return False


class on_codes(Condition):
    """Retries failures with one of the codes."""

    def __init__(self, *codes):
        self.host = {"code": list(codes)}


class on_message(Condition):
    """Retries failures whose message contains a text."""

    def __init__(self, text):
        self.host = {"message": text}


class not_(Condition):
    """Retries if the condition does not hold."""

    def __init__(self, condition):
        self.condition = condition
        self.host = {"not": condition.host} if condition.host is not None else None

    def __call__(self, error):
        return self.host is not None or not self.condition(error)


class _Group(Condition):
    def __init__(self, key, conditions):
        if not conditions:
            raise WorkflowValidationError("a group of conditions is empty: give it conditions")
        self.conditions = conditions
        rules = [c.host for c in conditions]
        if None not in rules:
            self.host = {key: rules}
        elif any(r not in (None, "always", "never") for r in rules):
            raise WorkflowValidationError("on_codes and on_message cannot be joined with conditions on exceptions")


class retry_any(_Group):
    """Retries if one of the conditions holds."""

    def __init__(self, *conditions):
        super().__init__("any", conditions)

    def __call__(self, error):
        return self.host is not None or any(c(error) for c in self.conditions)


class retry_all(_Group):
    """Retries if all conditions hold."""

    def __init__(self, *conditions):
        super().__init__("all", conditions)

    def __call__(self, error):
        return self.host is not None or all(c(error) for c in self.conditions)


# ---- waits


class Wait:
    """How long to wait before the next attempt."""

    def __init__(self, rule):
        self.rule = rule

    def __add__(self, other):
        return wait_combine(self, other)

    def __radd__(self, other):
        return self if other == 0 else wait_combine(other, self)


def wait_fixed(wait):
    """Waits the same time before each attempt."""
    return Wait({"fixed": nanoseconds(wait)})


def wait_none():
    """Does not wait."""
    return wait_fixed(0)


def wait_incrementing(start=0.0, increment=100.0, max=4_611_686_018.0):
    """Waits start, then increment longer each time, at most max."""
    return Wait({"incrementing": [nanoseconds(start), nanoseconds(increment), nanoseconds(max)]})


def wait_exponential(multiplier=1.0, max=4_611_686_018.0, exp_base=2.0, min=0.0):
    """Waits multiplier * exp_base^(attempt-1), at most max."""
    if min:
        raise WorkflowValidationError("wait_exponential: min is not available: give a larger multiplier")
    return Wait({"exponential": [nanoseconds(multiplier), float(exp_base), nanoseconds(max)]})


def wait_random(min=0.0, max=1.0):
    """Waits a random time between min and max."""
    return Wait({"random": [nanoseconds(min), nanoseconds(max)]})


def wait_exponential_jitter(initial=1.0, max=4_611_686_018.0, exp_base=2.0, jitter=1.0):
    """Waits as wait_exponential does, plus a random time of at most jitter."""
    return Wait({"exponential_jitter": [nanoseconds(initial), float(exp_base), nanoseconds(max), nanoseconds(jitter)]})


def wait_chain(*strategies):
    """Waits by the first rule before the second attempt, by the second before the third, and so on."""
    return Wait({"chain": [w.rule for w in strategies]})


def wait_combine(*strategies):
    """Waits as long as all rules together."""
    return Wait({"sum": [w.rule for w in strategies]})


# ---- when to give up


class Stop:
    """When to give up."""

    def __init__(self, rule):
        self.rule = rule

    def __or__(self, other):
        return stop_any(self, other)

    def __and__(self, other):
        return stop_all(self, other)


def stop_after_attempt(max_attempt_number):
    """Gives up after a number of attempts in all."""
    return Stop({"attempts": max_attempt_number})


def stop_after_delay(max_delay):
    """Gives up at a failure this long or longer after the first attempt started."""
    return Stop({"delay": nanoseconds(max_delay)})


def stop_any(*stops):
    """Gives up if one of the rules applies."""
    return Stop({"any": [s.rule for s in stops]})


def stop_all(*stops):
    """Gives up if all rules apply."""
    return Stop({"all": [s.rule for s in stops]})


def stop_never():
    """Never gives up."""
    return Stop("never")


class RetryPolicy:
    """A retry policy; see retry_policy."""

    def __init__(self, condition, wait, stop):
        self.condition, self.wait, self.stop = condition, wait, stop

    def manifest(self):
        """Returns the policy as the manifest has it."""
        out = {}
        if self.condition is not None and self.condition.host is not None:
            out["when"] = self.condition.host
        if self.wait is not None:
            out["wait"] = self.wait.rule
        if self.stop is not None:
            out["stop"] = self.stop.rule
        return out


def retry_policy(*, retry=None, wait=None, stop=None):
    """Makes a retry policy of a condition, a wait and a rule to give up.

    Without a condition every failure is retried; without a wait the host's default applies, 5 s; without stop, 3 attempts.
    """
    if wait is not None and not isinstance(wait, Wait):
        wait = wait_fixed(wait)
    return RetryPolicy(retry, wait, stop)


def ConstantDelayRetryPolicy(maximum_attempts=3, delay=5):
    """Retries after a fixed time. maximum_attempts is the number of attempts in all."""
    return retry_policy(wait=wait_fixed(delay), stop=stop_after_attempt(maximum_attempts))


def ExponentialBackoffRetryPolicy(initial_delay=1, multiplier=2, max_delay=60, maximum_attempts=5, jitter=True):
    """Retries after times that grow."""
    if jitter:
        wait = wait_exponential_jitter(initial_delay, max_delay, multiplier, initial_delay)
    else:
        wait = wait_exponential(initial_delay, max_delay, multiplier)
    return retry_policy(wait=wait, stop=stop_after_attempt(maximum_attempts))
