"""Tests of a project's code, which 'weft test' runs: functions whose names begin with test_, in files test_*.py.

    from weft.test import raises, session
    from words import words

    def test_words_are_counted():
        assert words("a b a")["a"] == 2

    async def test_greeting():
        assert await session().run(name="Ada") == "Hello, Ada!"

Each test runs alone, in a memory of its own.
"""

import ast
import json
import re
import sys
import types
from typing import Any, NotRequired

from . import _boot, _context, _finder
from ._context import Context
from ._steps import step
from ._workflow import Definition, Workflow
from .errors import WeftError, WorkflowRuntimeError
from .events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent

_tests = []
_context_of_test = None
_sessions = 0


class TestStartEvent(StartEvent):
    test: int = -1


class TestRequestEvent(InputRequiredEvent):
    session: str
    start: NotRequired[Any]
    answer: NotRequired[Any]


class TestReplyEvent(HumanResponseEvent):
    ended: bool = False
    question: NotRequired[Any]
    result: NotRequired[Any]
    code: NotRequired[str]
    message: NotRequired[str]


class session:
    """A new session of the project's workflow, on the server that 'weft test' has started."""

    def __init__(self):
        global _sessions
        if _context_of_test is None:
            raise WorkflowRuntimeError("session() works only within a test that 'weft test' runs")
        _sessions += 1
        self._id = f"{_context_of_test.run_id}-{_sessions}"

    async def run(self, start=None, *, answers=(), **fields):
        """Runs the workflow with a start event or the fields of one, and returns the run's result. If the run fails, the WeftError has its code.

        answers are events that answer the questions of the run: a list with one for each, or a function that is given the question (None
        if the run waits without having asked) and returns the answer.
        """
        reply = await self._ask(start=start if isinstance(start, Event) else {**(start or {}), **fields})
        n = 0
        while not reply.ended:
            question = _question(reply.question) if reply.question else None
            answer = answers(question) if callable(answers) else answers[n] if n < len(answers) else None
            if answer is None:
                what = f"asks {question!r}" if question is not None else "waits for an event"
                raise WorkflowRuntimeError(f"the run {what}, and has no answer: run(..., answers=[...])")
            if not isinstance(answer, Event):
                raise WorkflowRuntimeError(f"an answer is an event: have {answer!r}")
            reply = await self._ask(answer=_context.wire(answer))
            n += 1
        if reply.code:
            raise WeftError(reply.message or "", code=reply.code)
        return reply.result

    async def _ask(self, **what):
        return await _context_of_test.wait_for_event(TestReplyEvent, waiter_event=TestRequestEvent(session=self._id, **what), timeout=None)


def _question(wire):
    name, fields = wire
    cls = getattr(sys.modules.get("main"), name, None)
    if not (isinstance(cls, type) and issubclass(cls, Event)):
        cls = type(name, (Event,), {"__module__": __name__})
    return cls(**fields)


class raises:
    """Expects an exception of a type, whose text a regular expression matches somewhere: with raises(ValueError, match="empty"): ..."""

    def __init__(self, kind=Exception, match=None):
        self.kind, self.match, self.value = kind, match, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None:
            raise AssertionError(f"no exception, want {self.kind.__name__}")
        if not isinstance(error, self.kind):
            return False
        if self.match is not None and not re.search(self.match, str(error)):
            raise AssertionError(f"the text of the exception is {str(error)!r}, want a match of {self.match!r}")
        self.value = error
        return True


# ---- files


class _Asserts(ast.NodeTransformer):
    """Makes assertions say what was compared."""

    def visit_Assert(self, node):
        if node.msg is not None:
            return node
        test = ast.unparse(node.test)
        if not isinstance(node.test, ast.Compare) or len(node.test.ops) > 1:
            node.msg = ast.Constant(test)
            return ast.fix_missing_locations(node)
        sides = node.test.left, node.test.comparators[0]
        names = [ast.Name(f"__weft_{side}__", ast.Load()) for side in ("left", "right")]
        kept = [ast.Assign([ast.Name(name.id, ast.Store())], side) for name, side in zip(names, sides)]
        node.test = ast.Compare(names[0], node.test.ops, [names[1]])
        node.msg = ast.Call(ast.Name("__weft_shown__", ast.Load()), [ast.Constant(test), *names, ast.Constant(isinstance(sides[1], ast.Constant))], [])
        return [ast.fix_missing_locations(ast.copy_location(s, node)) for s in (*kept, node)]


def _shown(test, left, right, known):
    return f"{test}, have {left!r}" + ("" if known else f" and {right!r}")


def _load(file):
    tree = _Asserts().visit(ast.parse(_finder.files[file], file))
    name = file.removesuffix(".py").replace("/", ".")
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(__file__=file, __weft_shown__=_shown)
    exec(compile(tree, file, "exec", dont_inherit=True), module.__dict__)
    _tests.extend(f for f in list(module.__dict__.values()) if isinstance(f, types.FunctionType) and f.__name__.startswith("test_") and f.__module__ == name)


class Tests(Workflow, timeout=None):
    @step(waits=[TestReplyEvent], streams=[TestRequestEvent])
    async def test(self, ctx: Context, ev: TestStartEvent) -> StopEvent:
        global _context_of_test
        if ev.test < 0:
            return StopEvent(result=[f.__name__.removeprefix("test_").replace("_", " ") for f in _tests])
        _context_of_test = ctx
        try:
            result = _tests[ev.test]()
            if hasattr(result, "__await__"):
                await result
            return StopEvent(result="")
        except Exception as e:  # noqa: BLE001
            message, places = _boot.failure(e)["message"], _boot._frames(e)
            return StopEvent(result=f"{message} ({places[0][1]})" if isinstance(e, WeftError) and places else message)


def definition(given):
    """Makes the workflow of the tests: it lists them, or runs the test with a number. given is JSON: {"workflow", "files"}."""
    given = json.loads(given)
    for file in given["files"]:
        _load(file)
    Tests.__weft_options__["name"] = given["workflow"]
    return Definition(Tests)
