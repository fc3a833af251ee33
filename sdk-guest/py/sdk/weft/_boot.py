"""What the engine calls: describe, step, failure, show, seal, plain, host_error."""

import gc
import sys

import _weft

gc.set_threshold(100_000, 10, 10)  # collecting is not worth its cost while describing, nor in a usual step

from . import _finder  # noqa: E402

_finder.install()

from . import _limits, _loop  # noqa: E402

_limits.install()

from ._context import Context  # noqa: E402
from ._model import plain  # noqa: E402, F401
from ._steps import Plan  # noqa: E402, F401
from ._workflow import Definition, find  # noqa: E402
from .errors import WeftError, host_error  # noqa: E402, F401
from .resource import Manager  # noqa: E402

_PANICS = (TypeError, NameError, AttributeError, LookupError, ArithmeticError, AssertionError, ImportError, SyntaxError, RecursionError, MemoryError,
           UnicodeError, NotImplementedError, StopIteration, StopAsyncIteration)
_definition = None
_steps = {}
_loops = None  # the class of the event loop, if the author's code uses asyncio


_TESTS = ".weft-tests"  # the file that the builder adds to a module of tests


def describe():
    """Imports the author's main module, or the tests, and returns the manifest."""
    global _definition, _steps
    if _TESTS in _finder.files:
        from . import test
        _definition = test.definition(_finder.files[_TESTS])
    else:
        import main
        _definition = Definition(find(main))
    _steps = _definition.steps
    manifest = _definition.manifest()
    _definition.remember()
    return manifest


def step(given):
    """Runs a step: [step, trigger, run, config]."""
    global _running
    name, trigger, run, *config = given
    _running = name
    plan = _steps.get(name)
    if plan is None:
        raise WeftError(f"the workflow has no step {name}", code="invalid_message")
    arguments = plan.arguments(trigger)
    if plan.context_name:
        arguments[plan.context_name] = Context(plan, trigger, run, config[0] if config else None)
    if plan.resources:
        result = _drive(name, _with_resources(plan, arguments))
    elif plan.coroutine:
        result = _drive(name, _call(plan, arguments))
    else:
        result = _call(plan, arguments)
    return plan.result(result)


def _call(plan, arguments):
    return plan.run(_definition.self, **arguments) if plan.bound else plan.run(**arguments)


async def _with_resources(plan, arguments):
    manager = Manager()
    for name, r in plan.resources.items():
        arguments[name] = await manager.get(r)
    result = _call(plan, arguments)
    return await result if plan.coroutine else result


def _drive(name, coroutine):
    if "asyncio" not in sys.modules:
        return _loop.drive(name, coroutine)
    return (_loops or _loop.make())().run(name, coroutine)


# ---- failures


def _frames(e):
    """Lists the places of an exception in the author's files, the innermost first: "count (main.py:12)"."""
    found = []
    t = e.__traceback__
    while t is not None:
        code = t.tb_frame.f_code
        if not code.co_filename.startswith("<"):
            found.append((f"{code.co_qualname} ({code.co_filename}:{t.tb_lineno})", f"{code.co_filename}:{t.tb_lineno}"))
        t = t.tb_next
    if isinstance(e, SyntaxError) and e.filename:
        place = f"{e.filename}:{e.lineno}"
        found.append((place, place))
    return found[::-1]


def _text(e):
    try:
        text = e.msg if isinstance(e, SyntaxError) else str(e)
    except Exception:  # noqa: BLE001
        text = "(an exception without text)"
    name = type(e).__name__
    return f"{name}: {text}" if text else name


def failure(e):
    """Returns what leaves the step for an exception: {code, message, retryable?, data?}."""
    if e is None:
        return {"code": "internal", "message": "the step failed without an exception"}
    if isinstance(e, BaseExceptionGroup) and len(e.exceptions) == 1:
        e = e.exceptions[0]
    cause = e
    while cause is not None and not isinstance(cause, WeftError):
        cause = cause.__cause__
    if isinstance(cause, WeftError):
        out = {"code": cause.code, "message": cause.message if cause is e else f"{_text(e)}: {cause.message}"}
        if cause.retryable is not None:
            out["retryable"] = cause.retryable
        if cause.data is not None:
            out["data"] = cause.data
        e = cause if cause is e else e
    else:
        frames = _frames(e)
        data = {"name": type(e).__name__, "stack": [f for f, _ in frames][:32]}
        if e.__cause__ is not None:
            data["cause"] = _text(e.__cause__)
        out = {"code": "panic" if isinstance(e, _PANICS) else "error", "message": _text(e) + (f" ({frames[0][1]})" if frames else ""), "data": data}
    retry = _retry_of()
    if retry is not None and out.get("retryable") is None and not retry(e):
        out["retryable"] = False
    return out


_running = None


def _retry_of():
    """Returns the condition on exceptions of the step that runs, if it has one that the manifest cannot have."""
    options = _steps[_running].options if _running in _steps else None
    condition = options.retry.condition if options is not None and options.retry else None
    return condition if condition is not None and condition.host is None else None


def show(e):
    """Returns an exception as the answer to the upload shows it."""
    if isinstance(e, WeftError):
        lines = [e.message]
    else:
        frames = _frames(e)
        lines = [_text(e) + (f" ({frames[0][1]})" if frames else "")]
        if isinstance(e, SyntaxError) and e.text:
            lines.append("    " + e.text.strip())
        lines += ["    at " + f for f, _ in frames[:16]]
    if e.__cause__ is not None:
        lines.append("caused by " + show(e.__cause__).rstrip())
    return "\n".join(lines) + "\n"


def seal():
    """Prepares the image that every invocation starts from."""
    global _loops
    if "asyncio" in sys.modules:
        _loops = _loop.make()
    _warm()
    _warm_code()
    if "linecache" in sys.modules:
        sys.modules["linecache"].clearcache()
    gc.collect()
    gc.freeze()


_ROUNDS = 12  # the interpreter specializes code after some rounds


def _warm_code():
    """Runs a step of the SDK's own, so that the interpreter has specialized the SDK's code in the image: it would do so in each
    invocation otherwise, and forget it."""
    global _definition, _steps
    kept = _definition, _steps
    try:
        from ._warm import Warm
        _definition = Definition(Warm)
        _steps = _definition.steps
        _weft.dry(_weft.encode({"count": 1}))
        for name in ("edit", "get", "plain"):
            for _ in range(_ROUNDS):
                _weft.encode(step([name, ["WarmEvent", {"text": "x", "n": 1}], ["t", "w", "r", "s", 1, 1, 0]]))
    finally:
        _weft.dry(None)
        _definition, _steps = kept


def _warm():
    """Makes once what is made at first use: the plans of models, and the classes of errors."""
    from ._model import plan_of
    from ._state import DictState
    from .events import StepFailedEvent, StopEvent
    for t in [*_definition.types.values(), _definition.state or DictState, StopEvent, StepFailedEvent]:
        plan_of(t)
    try:
        raise WeftError("")
    except WeftError as e:
        failure(e)
    _weft.decode(_weft.encode([0, {"a": 1.5, "b": [None, True, "x", b""]}]))
