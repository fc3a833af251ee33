"""Workflows: classes whose steps are their methods."""

import re

from . import _context
from ._code import cleandoc
from ._model import BaseModel, initial_of, schema_of
from ._steps import Plan
from .errors import WorkflowRuntimeError, WorkflowValidationError
from .events import Event, StepFailedEvent, StopEvent, base_of
from .retry_policy import nanoseconds

_MISSING = object()


def _of_state(s):
    """Returns a schema without anyOf and format, which schemas of states do not have: in the place of anyOf are the types of its members,
    and what else X | None says of X."""
    if isinstance(s, list):
        return [_of_state(x) for x in s]
    if not isinstance(s, dict):
        return s
    s = {k: v if k in ("default", "enum", "const") else {n: _of_state(x) for n, x in v.items()} if k == "properties" else _of_state(v)
         for k, v in s.items() if k != "format"}
    members = s.pop("anyOf", None)
    if not isinstance(members, list):
        return s if members is None else {**s, "anyOf": members}
    found = [m for m in members if m.get("type") != "null"]
    kinds = [m.get("type") for m in members]
    if not all(isinstance(kind, str) for kind in kinds):
        return s
    out = {"type": list(dict.fromkeys(kinds)), **s}
    if len(found) == 1 and "enum" not in found[0] and "const" not in found[0]:
        out = {**found[0], **out}
    return out


class Workflow:
    """The base of a workflow. Options of the class are for the manifest:

        class Greeter(Workflow, name="greeter", timeout=None, resources=[{"name": "web", "kind": "http"}]): ...

    name       by default the name of the class in kebab case: MyFlow is my-flow
    timeout    limits a run with its waits, in seconds; None: no limit. By default the host's limit applies
    state      the class of the session's state, or the state of a new session; by default the class that Context[...] names
    version, part, resources  as docs/reference/manifest.md has them
    """

    __weft_options__ = {}

    def __init_subclass__(cls, name=None, timeout=_MISSING, version=None, part=False, resources=None, state=None, **options):
        super().__init_subclass__(**options)
        cls.__weft_options__ = {"name": name, "timeout": timeout, "version": version, "part": part, "resources": resources, "state": state}
        cls.__weft_free__ = {}

    def __init__(self, timeout=_MISSING, disable_validation=False, verbose=False, resource_manager=None, num_concurrent_runs=None, runtime=None,
                 workflow_name=None, skip_graph_checks=None, serializer=None):
        self._timeout = timeout
        self._name = workflow_name

    @classmethod
    def add_step(cls, f):
        """Adds a function outside of the class as a step."""
        if f.__name__ in cls.__weft_free__ or f.__name__ in _methods(cls):
            raise WorkflowValidationError(f"step {f.__name__} is there twice: name one of them differently")
        cls.__weft_free__[f.__name__] = f

    def run(self, *args, **kwargs):
        """Is for LlamaIndex's own runtime; in a step, ctx.run_workflow runs another workflow."""
        raise WorkflowRuntimeError("a workflow is run by the server: 'weft run' starts it, and a step runs another workflow by ctx.run_workflow(name, ...)")


def _methods(cls):
    """Returns the functions of a class that are steps, those of its bases first."""
    found = {}
    for base in reversed(cls.__mro__):
        for name, f in vars(base).items():
            if hasattr(f, "__weft_step__"):
                found[name] = f
            else:
                found.pop(name, None)
    return found


def kebab(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower().replace("_", "-").strip("-")


class Definition:
    """The workflow of a module: its plan of steps, and its instance, whose attributes all invocations find."""

    def __init__(self, given):
        self.cls = given if isinstance(given, type) else type(given)
        self.options = self.cls.__weft_options__
        self.self = given() if isinstance(given, type) else given
        if not hasattr(self.self, "_timeout"):
            Workflow.__init__(self.self)
        self.name = self.options["name"] or self.self._name or kebab(self.cls.__name__)
        self.state = None
        plans = [Plan(name, f, self, True) for name, f in _methods(self.cls).items()]
        for base in reversed(self.cls.__mro__):
            plans += [Plan(name, f, self, False) for name, f in vars(base).get("__weft_free__", {}).items()]
        self.steps = {p.name: p for p in plans}
        self.state = self._state(plans)
        self.types = self._types(plans)
        self._check(plans)

    def _state(self, plans):
        """Returns the type of the state: the class with the most fields of those that Context[...] names."""
        found = [p.state for p in plans if isinstance(p.state, type)]
        given = self.options["state"]
        if given is not None:
            found.append(given if isinstance(given, type) else type(given))
        return max(found, key=lambda t: len(t.__mro__), default=None)

    def _types(self, plans):
        types = {}
        declared = [t for p in plans for t in p.types()]
        for t in declared + [t for p in plans for t in p.mentions]:
            while t is not None and t is not Event:
                if t.__weft_known__ and t.__name__ in ("StopEvent", "StepFailedEvent"):
                    break
                other = types.setdefault(t.__name__, t)
                if other is not t and t in declared:
                    plans[0].faults.append(f"two event types are named {t.__name__}: rename one of them")
                t = base_of(t)
                if t is not None and t.__module__ == "weft.events":
                    break  # a base that every host knows
        return types

    def _check(self, plans):
        faults = [f"step {p.name} ({p.place()}): {fault}" for p in plans for fault in p.faults]
        if not plans:
            faults.append("it has no steps: mark its methods with @step")
        if self.state is not None and not issubclass(self.state, BaseModel):
            faults.append(f"the state {self.state.__name__} is not a BaseModel: write class {self.state.__name__}(BaseModel)")
        if faults:
            lines = faults[0] if len(faults) == 1 else f"{len(faults)} faults:\n- " + "\n- ".join(faults)
            raise WorkflowValidationError(f"workflow {self.name}: {lines}")

    def manifest(self):
        """Returns the manifest."""
        o, timeout = self.options, self.options["timeout"]
        if timeout is _MISSING:
            timeout = self.self._timeout
        doc = self.cls.__dict__.get("__doc__")
        m = {
            "abi": 1, "workflow": self.name, "steps": [p.manifest() for p in self.steps.values()],
            "events": {name: _event(t) for name, t in self.types.items()},
            "version": o["version"], "description": cleandoc(doc), "part": o["part"] or any(p.is_part() for p in self.steps.values()) or None,
            "resources": o["resources"], "timeout": None if timeout is _MISSING else 0 if timeout is None else nanoseconds(timeout),
        }
        if self.state is not None:
            initial = o["state"].model_dump(mode="json") if isinstance(o["state"], BaseModel) else initial_of(self.state)
            m["state"] = {"schema": {**_of_state(schema_of(self.state)), "title": self.state.__name__}, "default": initial}
        return {k: v for k, v in m.items() if v is not None}

    def remember(self):
        """Makes the event classes known by name."""
        _context._known.update({"StopEvent": StopEvent, "StepFailedEvent": StepFailedEvent})
        _context._known.update(self.types)


def _event(t):
    base = base_of(t)
    m = {"schema": {**schema_of(t), "title": t.__name__}, "kind": t.__weft_kind__, "extends": base and base.__name__, "description": cleandoc(t.__dict__.get("__doc__"))}
    if t.__module__.startswith("weft."):
        m["description"] = None
    return {k: v for k, v in m.items() if v is not None}


def find(module):
    """Finds the workflow of the author's main module."""
    named = getattr(module, "workflow", None)
    if isinstance(named, Workflow) or isinstance(named, type) and issubclass(named, Workflow):
        return named
    values = list(vars(module).values())
    instances = {id(v): v for v in values if isinstance(v, Workflow)}
    classes = {v for v in values if isinstance(v, type) and issubclass(v, Workflow) and v is not Workflow and (_methods(v) or v.__weft_free__)}
    classes = {c for c in classes if not any(c is not d and issubclass(d, c) for d in classes)}
    if len(instances) == 1 and len(classes) <= 1:
        return next(iter(instances.values()))
    if len(classes) == 1:
        return next(iter(classes))
    if not classes:
        raise WorkflowValidationError("main.py defines no workflow: write class Greeter(Workflow) with methods marked by @step")
    names = ", ".join(sorted(c.__name__ for c in classes))
    raise WorkflowValidationError(f"main.py has several workflows ({names}), and a module holds one: assign it to the name workflow, such as workflow = {min(c.__name__ for c in classes)}")
