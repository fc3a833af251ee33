"""What a step knows of its run, and can do in it."""

import datetime
import types

from . import _resources
from ._host import call, log
from ._state import Store
from .errors import WeftError, WorkflowRuntimeError
from .events import Event
from .retry_policy import RetryInfo, nanoseconds


def _time(ns):
    return datetime.datetime.fromtimestamp(ns / 10**9, datetime.timezone.utc)


def wire(event):
    """Returns an event as the host takes it."""
    return [type(event).__name__, event]


def _id(what, name):
    if name is not None and not (isinstance(name, str) and 0 < len(name.encode()) <= 128):
        raise WorkflowRuntimeError(f"{what}: an id has 1 to 128 bytes")


class Context:
    """A step's access to its run. Context[State] declares the type of the session's state.

    Host calls are made one after the other, also in asyncio.gather. Those that may take long end the attempt while they wait, and the
    step is played again with recorded answers.
    """

    def __init__(self, plan, trigger, run, config):
        self._plan, self._trigger, self._run = plan, trigger, run
        self.config = config or {}

    def __class_getitem__(cls, state):
        return types.GenericAlias(cls, state)

    @property
    def store(self):
        """The session's state."""
        return Store(self._plan.workflow.state)

    # ---- the run

    @property
    def run(self):
        """The run: tenant, workflow, run_id, session_id, invocation, attempt (1 for the first), started, last_error."""
        tenant, workflow, run_id, session_id, invocation, attempt, clock, *error = self._run
        return types.SimpleNamespace(tenant=tenant, workflow=workflow, run_id=run_id, session_id=session_id, invocation=invocation, attempt=attempt,
                                     started=_time(clock), last_error=_error(error))

    @property
    def run_id(self):
        return self._run[2]

    @property
    def attempt(self):
        """The number of the attempt, 1 for the first."""
        return self._run[5]

    @property
    def is_running(self):
        return True

    def retry_info(self):
        """Returns what is known of earlier attempts. The host does not tell when they were made: elapsed_seconds is 0."""
        error = _error(self._run[7:])
        return RetryInfo(self._run[5] - 1, 0.0, error and exception_of(error.code, error.message), None)

    # ---- events

    def send_event(self, message, step=None):
        """Emits an event at once, to every step that accepts it, or to one step."""
        self._declared(message, self._plan.emits, "send_event", "the annotation of its result, such as -> {} | None")
        call("send_event", [wire(message)] if step is None else [wire(message), step], "send_event")

    def write_event_to_stream(self, ev):
        """Writes an event to the run's stream, where clients see it at once. No step receives it."""
        if ev is None:
            return
        if not isinstance(ev, Event):
            raise WorkflowRuntimeError(f"write_event_to_stream: {_shown(ev)} is not an event")
        call("write_event_to_stream", [wire(ev)], "write_event_to_stream")

    def _declared(self, ev, types_, what, where):
        if not isinstance(ev, Event):
            raise WorkflowRuntimeError(f"{what}: {_shown(ev)} is not an event")
        name = type(ev).__name__
        if not any(t.__name__ == name for t in types_):
            raise WorkflowRuntimeError(f"{what}: step {self._plan.name} does not declare {name}: add it to {where.format(name)}")

    def collect_events(self, ev, expected, buffer_id=None):
        """Stores the step's event until there is one event for each type, and returns None until then.

        With the event that completes the set, it returns the events in the order of the types. A type may be there several times.
        """
        if self._plan.mode not in ("one", "any"):
            raise WorkflowRuntimeError("collect_events: the step takes several events at once already: let it take a single event")
        if not expected:
            return []
        event = [*wire(ev), *self._trigger[2:]]  # with its id
        got = call("collect_events", [event, [t.__name__ for t in expected], *([buffer_id] if buffer_id else [])], "collect_events")
        return got and [event_of(e, t) for e, t in zip(got, expected)]

    async def wait_for_event(self, event_type, waiter_event=None, waiter_id=None, requirements=None, timeout=2000, broadcast=False):
        """Waits for an event, for weeks if need be: timeout=None waits without a limit. A wait that is over raises TimeoutError.

        waiter_event is written to the run's stream once, when the wait begins. requirements are values that fields of the event must
        have. A waiter_id names the wait for people.
        """
        if not any(t.__name__ == event_type.__name__ for t in self._plan.waits):
            raise WorkflowRuntimeError(f"wait_for_event: step {self._plan.name} does not declare {event_type.__name__}: "
                                       f"add @step(waits=[{event_type.__name__}])")
        _id("wait_for_event", waiter_id)
        request = {"type": event_type.__name__}
        if requirements:
            request["requirements"] = requirements
        if waiter_event is not None:
            request["waiter_event"] = wire(waiter_event)
        if waiter_id is not None:
            request["waiter_id"] = waiter_id
        if timeout is not None:
            request["timeout"] = nanoseconds(timeout)
        if broadcast:
            request["broadcast"] = True
        return event_of(call("wait_for_event", request, "wait_for_event"), event_type)

    # ---- other runs, time, chance, resources

    async def run_workflow(self, workflow, start=None, *, id=None, same_session=False, session=None, stream=False, **fields):
        """Runs another workflow, or this one, as a child run and returns its result.

        start is a start event or its fields. An id names the child: an attempt that follows finds its result by the id.
        """
        _id("run_workflow", id)
        if same_session and session is not None:
            raise WorkflowRuntimeError("run_workflow: a child has one session: give same_session or session")
        event = start if isinstance(start, Event) else ["StartEvent", {**(start or {}), **fields}]
        request = {"workflow": workflow, "event": wire(event) if isinstance(event, Event) else event}
        if id is not None:
            request["id"] = id
        if same_session or session is not None:
            request["session"] = {"shared": True} if same_session else {"id": session}
        if stream:
            request["include_stream"] = True
        name, values, *_ = call("run_workflow", request, f'run "{workflow}"')
        return values.get("result") if name == "StopEvent" else values

    async def sleep(self, duration):
        """Waits for a time, which may be long: seconds, a timedelta, or a text such as "3d"."""
        ns = nanoseconds(duration)
        if ns:
            call("sleep", [ns], "sleep")

    async def now(self):
        """Returns the time, which does not advance while a step computes."""
        return _time(call("now", [], "now"))

    async def random(self, n):
        """Returns random bytes, at most 4096. They are the same when the step is replayed."""
        return call("random", [n], "random")

    async def call(self, resource, method, payload=None):
        """Calls a resource that the operator has granted. The answer is recorded."""
        return _resources.call_resource(resource, method, payload)

    def http(self, name):
        """Returns a resource of the kind "http"."""
        return _resources.HTTP(name)

    def llm(self, name):
        """Returns a resource of the kind "llm"."""
        return _resources.LLM(name)

    def kv(self, name):
        """Returns a resource of the kind "kv"."""
        return _resources.KV(name)

    # ---- log

    def debug(self, message, **attrs):
        log(-4, message, attrs)

    def info(self, message, **attrs):
        """Writes a log record; the others do the same at other levels."""
        log(0, message, attrs)

    def warning(self, message, **attrs):
        log(4, message, attrs)

    warn = warning

    def error(self, message, **attrs):
        log(8, message, attrs)


def _error(rest):
    return WeftError(rest[0].get("message", ""), code=rest[0]["code"], data=rest[0].get("data")) if rest and rest[0] else None


def _shown(value):
    return "None" if value is None else f"the class {value.__name__}" if isinstance(value, type) else f"a value of the type {type(value).__name__}"


def exception_of(code, message):
    """Returns the exception that a failure was, as far as its code and message say."""
    import builtins
    name, colon, rest = message.partition(": ")
    kind = getattr(builtins, name, None) if colon and code in ("error", "panic") else None
    if isinstance(kind, type) and issubclass(kind, Exception):
        text, _, place = rest.rpartition(" (")
        try:
            return kind(text if text and place.endswith(")") else rest)
        except Exception:  # noqa: BLE001
            pass  # it takes other arguments
    return WeftError(message, code=code)


_known = {}  # event classes by name


def event_of(got, accepted):
    """Makes the event that the host gave."""
    name, fields = got[0], got[1]
    cls = _known.get(name) or accepted
    if name == "StepFailedEvent":
        return _failed(cls, fields)
    return cls(**fields)


def _failed(cls, fields):
    e = fields.get("exception") or {}
    cause = fields.get("input_event")
    if isinstance(cause, dict) and isinstance(cause.get("type"), str) and _known.get(cause["type"]):
        cause = _known[cause["type"]](**(cause.get("value") or {}))
    return cls(**{**fields, "exception": exception_of(e.get("exception_type", ""), e.get("exception_message", "")), "input_event": cause,
                  "exception_type": e.get("exception_type", ""), "exception_message": e.get("exception_message", ""), "input": fields.get("input_event")})


