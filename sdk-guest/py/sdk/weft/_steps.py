"""Steps: what their annotations and their code say."""

import types
import typing

from . import _code, _context, collect, resource
from ._context import Context
from .errors import WorkflowValidationError
from .events import Event, StepFailedEvent, StepInput
from .retry_policy import RetryPolicy, nanoseconds


class Options:
    """The settings of a step, as its decorator has them."""

    def __init__(self, **values):
        self.__dict__.update(dict.fromkeys(("workers", "timeout", "retry", "waits", "streams", "emits", "atomic", "subclasses", "catches", "recoveries", "name")))
        self.__dict__.update(values)


def step(func=None, *, workflow=None, num_workers=None, retry_policy=None, timeout=None, waits=None, streams=None, emits=None, atomic=False,
         accept_event_subclasses=False, skip_graph_checks=None, name=None):
    """Makes a method a step. The annotations of its parameters and of its result say which events it takes and gives.

    num_workers   how many invocations of the step run side by side in a run: 1 to 1000, by default 4
    retry_policy  when a failed step is tried again; see weft.retry_policy
    timeout       limits one invocation
    waits         the event types that the step waits for, if its code does not show them
    streams       the event types that the step writes to the stream, if its code does not show them
    emits         event types that the step sends beside those of its annotation
    atomic        the step's effects become visible together when it succeeds, or not at all
    accept_event_subclasses  the step takes subclasses of its events too
    workflow      the class to which a function outside of a class belongs
    """
    def decorate(f):
        f.__weft_step__ = Options(workers=num_workers, retry=retry_policy, timeout=timeout, waits=waits, streams=streams, emits=emits, atomic=atomic,
                                  subclasses=accept_event_subclasses, name=name)
        if workflow is not None:
            workflow.add_step(f)
        return f
    return decorate if func is None else decorate(func)


def catch_error(func=None, *, for_steps=None, max_recoveries=None):
    """Makes a method the handler of steps that have failed finally: of all steps, or of those that are named.

    The method takes a StepFailedEvent. max_recoveries is how often it catches failures that follow from one event, by default once.
    "cancelled" and "timeout" in for_steps make it run when the run is cancelled or has lasted too long.
    """
    def decorate(f):
        f.__weft_step__ = Options(catches="*" if for_steps is None else list(for_steps), recoveries=max_recoveries)
        return f
    return decorate if func is None else decorate(func)


class Plan:
    """A step of a workflow."""

    __slots__ = ("name", "run", "options", "workflow", "accepts", "mode", "take", "emits", "lists", "none", "waits", "streams", "mentions",
                 "event_names", "context_name", "resources", "state", "faults", "bound", "coroutine", "fast")

    def __init__(self, name, f, workflow, bound):
        self.name, self.run, self.options, self.workflow, self.bound = f.__weft_step__.name or name, f, f.__weft_step__, workflow, bound
        self.accepts, self.emits, self.lists, self.waits, self.streams, self.mentions, self.event_names, self.faults = [], [], [], [], [], [], [], []
        self.mode, self.take, self.none, self.context_name, self.resources, self.state = "one", None, False, None, {}, None
        self.coroutine = _code.is_kind(f, _code.COROUTINE)
        self._read_signature(f)
        self._read_code(f)
        self._check()
        self.fast = self.mode == "one" and not self.resources and len(self.accepts) == 1

    # ---- annotations

    def _read_signature(self, f):
        try:
            hints = typing.get_type_hints(f, include_extras=True)
        except NameError as e:
            self.faults.append(f"the annotation {e.name} is not known: import or define it")
            return
        parameters = _code.parameters(f)[1 if self.bound else 0:]
        self.resources = resource.resources_in({k: v for k, v in hints.items() if k != "return"})
        for name in parameters:
            hint = hints.get(name)
            if name in self.resources:
                continue
            if hint is Context or typing.get_origin(hint) is Context:
                self.context_name = name
                self.state = next(iter(typing.get_args(hint)), None)
            elif hint is None:
                self.faults.append(f"the parameter {name} has no annotation: write {name}: SomeEvent, or ctx: Context")
            else:
                self._read_parameter(name, hint)
        if "return" not in hints:
            self.faults.append("its result has no annotation: write -> StopEvent, -> NextEvent | StopEvent, or -> None")
        else:
            self._read_result(hints["return"])

    def _read_parameter(self, name, hint):
        if typing.get_origin(hint) is typing.Annotated:
            for extra in typing.get_args(hint)[1:]:
                if isinstance(extra, collect.Collect) and isinstance(extra.cardinality, collect.Take):
                    self.take = extra.cardinality.n
            hint = typing.get_args(hint)[0]
        is_list = typing.get_origin(hint) is list
        members = _members(typing.get_args(hint)[0] if is_list else hint)
        if not all(_is_event(t) for t in members):
            self.faults.append(f"the parameter {name} is not an event: annotate an Event class, a union of them, a list of them, or a Resource")
            return
        if self.event_names:
            if is_list or len(members) > 1 or self.mode not in ("one", "join"):
                self.faults.append("a step with several event parameters takes one event of each type, no lists and no unions")
            self.mode = "join"
        elif is_list:
            self.mode = "list"
        else:
            self.mode = "any" if len(members) > 1 else "one"
        self.event_names.append(name)
        self.accepts += members

    def _read_result(self, hint):
        for t in _members(hint):
            if t is None or t is type(None):
                self.none = True
            elif typing.get_origin(t) is list:
                members = _members(typing.get_args(t)[0])
                self.lists += [m for m in members if self._event("result", m)]
            elif self._event("result", t):
                self.emits.append(t)

    def _event(self, what, t):
        if _is_event(t) and t is not Event:
            return True
        self.faults.append(f"its {what} is annotated with {getattr(t, '__name__', t)}, which is not a type of events of its own: name the types")
        return False

    # ---- code

    def _read_code(self, f):
        """Finds the event types that the code of the step, and of what it calls, waits for or mentions."""
        seen = set()
        todo = [f]
        while todo:
            g = todo.pop()
            if g in seen:
                continue
            seen.add(g)
            for name, holder in _names(g.__code__):
                value = g.__globals__.get(name) if holder is None else getattr(self.workflow.cls, name, None) if holder == "self" else None
                if isinstance(value, types.FunctionType) and not value.__module__.startswith("weft") and not hasattr(value, "__weft_step__"):
                    todo.append(value)
                elif _is_event(value) and value not in (Event,):
                    self.mentions.append(value)
            self.waits += [t for t in _waited(g) if t not in self.waits]
        for t in self.options.waits or ():
            if t not in self.waits:
                self.waits.append(t)
        self.streams = list(self.options.streams or ())
        self.emits += [t for t in self.options.emits or () if t not in self.emits]

    # ---- checks

    def _check(self):
        o = self.options
        if not self.event_names and not self.faults:
            self.faults.append("it takes no event: add a parameter such as ev: StartEvent")
        if o.workers is not None and not (isinstance(o.workers, int) and 1 <= o.workers <= 1000):
            self.faults.append("num_workers must be 1 to 1000")
        if o.retry is not None and not isinstance(o.retry, RetryPolicy):
            self.faults.append("retry_policy must be made by retry_policy(...), ConstantDelayRetryPolicy(...) or ExponentialBackoffRetryPolicy(...)")
        if self.take is not None and self.mode != "list":
            self.faults.append("Collect needs a parameter with a list: Annotated[list[SomeEvent], Collect(Take(2))]")
        if o.atomic and self.waits:
            self.faults.append("an atomic step cannot wait: leave out atomic, or let another step wait")
        if o.catches is not None and self.accepts and not all(issubclass(t, StepFailedEvent) for t in self.accepts):
            self.faults.append("a handler of errors takes ev: StepFailedEvent")
        if _code.is_kind(self.run, _code.GENERATOR | _code.ASYNC_GENERATOR):
            self.faults.append("it yields: return a list of events, or call ctx.send_event")

    def types(self):
        return [*self.accepts, *self.emits, *self.lists, *self.waits, *self.streams]

    def manifest(self):
        """Returns the step as the manifest has it."""
        o = self.options
        names = [t.__name__ for t in self.accepts]
        emits = [t.__name__ for t in self.emits]
        if self.lists:
            emits.append(["list", [t.__name__ for t in self.lists]])
        accepts = [["any", names]] if self.mode == "any" else [["list", names, *([] if self.take is None else [self.take])]] if self.mode == "list" else names
        m = {
            "name": self.name, "accepts": accepts, "emits": emits or None, "waits": [t.__name__ for t in self.waits] or None,
            "catches": None if o.catches == [] else o.catches, "max_recoveries": o.recoveries, "workers": o.workers,
            "timeout": None if o.timeout is None else nanoseconds(o.timeout), "retry": o.retry.manifest() if o.retry else None,
            "atomic": o.atomic or None, "accept_subtypes": o.subclasses or None, "description": _code.cleandoc(self.run.__doc__),
        }
        return {k: v for k, v in m.items() if v is not None}

    def place(self):
        """Returns the file and the line in which the step begins."""
        return f"{self.run.__code__.co_filename}:{self.run.__code__.co_firstlineno}"

    def is_part(self):
        return StepInput in self.accepts

    # ---- running

    def arguments(self, trigger):
        """Returns the events of an invocation by the names of the parameters."""
        if self.mode == "list":
            return {self.event_names[0]: [_context.event_of(e, self.accepts[0]) for e in trigger]}
        if self.mode == "join":
            return {n: _context.event_of(e, t) for n, e, t in zip(self.event_names, trigger, self.accepts)}
        return {self.event_names[0]: _context.event_of(trigger, self.accepts[0])}

    def result(self, given):
        """Returns the output of an invocation."""
        if given is None:
            return None
        if isinstance(given, list):
            return [self._one(e, self.lists, "a list of ") for e in given]
        return self._one(given, self.emits, "")

    def _one(self, e, allowed, what):
        name = type(e).__name__
        for t in allowed:
            if t.__name__ == name:
                return [name, e]
        if isinstance(e, Event):
            raise WorkflowValidationError(f"step {self.name} returns {what}{name}, which its annotation does not have: add it to the result, such as -> {name} ({self.place()})")
        raise WorkflowValidationError(f"step {self.name} returns {_context._shown(e)}, not an event: return StopEvent(result=...) or an event of your own "
                                      f"({self.place()})")


def _is_event(t):
    return isinstance(t, type) and issubclass(t, Event)


def _members(hint):
    """Returns the members of a union, or the only type."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return list(typing.get_args(hint))
    return [hint]


def _codes(code):
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _codes(c)


def _names(code):
    """Lists the names that a function loads: (name, None) for a global name, (name, "self") for an attribute of the first parameter."""
    found = []
    for c in _codes(code):
        of_self = False
        for op, name in _code.instructions(c):
            if op in ("LOAD_GLOBAL", "LOAD_NAME"):
                found.append((name, None))
            elif of_self and op in ("LOAD_ATTR", "LOAD_METHOD"):
                found.append((name, "self"))
            of_self = name == "self" and op in ("LOAD_FAST", "LOAD_DEREF")
    return found


def _waited(f):
    """Lists the event types that a function passes to wait_for_event, as far as its code names them."""
    found = []
    for c in _codes(f.__code__):
        waits = False
        for op, name in _code.instructions(c):
            if op in ("LOAD_METHOD", "LOAD_ATTR") and name == "wait_for_event":
                waits = True
            elif waits and op in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
                value = f.__globals__.get(name)
                if _is_event(value):
                    found.append(value)
                    waits = False
                elif not isinstance(value, types.ModuleType):
                    waits = False
            elif waits and op == "LOAD_FAST":
                waits = False
    return found
