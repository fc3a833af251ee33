"""The session's state."""

from ._host import call
from ._model import BaseModel, plan_of, whole
from .errors import WorkflowRuntimeError
from .events import DictLikeModel

_MISSING = object()


class DictState(DictLikeModel):
    """A state without a declared type: values by name, state.count or state["count"]."""

    def keys(self):
        return self.__dict__.keys()

    def values(self):
        return self.__dict__.values()

    def items(self):
        return self.__dict__.items()

    def to_dict(self):
        return self.__dict__

    def __len__(self):
        return len(self.__dict__)

    def __iter__(self):
        return iter(self.__dict__)

    def _visible(self):
        return self.__dict__

    def update(self, *values, **more):
        self.__dict__.update(*values, **more)

    def setdefault(self, key, default=None):
        return self.__dict__.setdefault(key, default)

    def pop(self, key, *default):
        return self.__dict__.pop(key, *default)


def state_of(cls, value):
    """Makes the state's model of what the host has."""
    if cls is None:
        state = DictState.__new__(DictState)
        state.__dict__.update(value)
        return state
    return cls.model_validate(value) if issubclass(cls, BaseModel) else value


def _quoted(path):
    return f'"{path}"'


def _put(number, request, what):
    """Writes to the state, with the entries that its models do not declare."""
    with whole():
        return call(number, request, what)


class _Edit:
    """A region in which nobody else changes the state. An exception in the region undoes its changes."""

    def __init__(self, store, path, read):
        self._what = "edit_state" if path == "" else f"edit {_quoted(path)}"
        self._path, self._read = path, read

    async def __aenter__(self):
        raw = call("state_begin", [self._path], self._what, "set the path before it is edited, or declare a default")
        try:
            with whole():
                self._value = self._read(raw)
        except BaseException:
            call("state_abort", [])
            raise
        return self._value

    async def __aexit__(self, kind, error, trace):
        if kind is None:
            try:
                _put("state_commit", [self._value], self._what)
                return
            except BaseException:
                self._abort()
                raise
        self._abort()

    def _abort(self):
        try:
            call("state_abort", [])
        except Exception:  # noqa: BLE001
            pass  # the edit has ended


class Store:
    """Access to the session's state. Paths are dotted: "a.b.0" is the first item of the list b in the map a."""

    def __init__(self, cls):
        self._cls = cls

    async def get_state(self):
        """Returns the whole state."""
        raw = call("state_get", [""], "get_state")
        with whole():
            return state_of(self._cls, raw)

    async def set_state(self, state):
        """Replaces the whole state."""
        _put("state_edit", [["set", "", state]], "set_state")

    async def get(self, path, default=_MISSING):
        """Returns the value at a path, or the default. Without a default, a missing value is an error of the code not_found."""
        request = [path] if default is _MISSING or default is ... else [path, default]
        value = call("state_get", request, f"get {_quoted(path)}", "get(path, default=...) gives a default")
        with whole():
            return state_of(self._cls, value) if path == "" else self._typed(path, value)

    def _typed(self, path, value):
        if self._cls is None or "." in path or not isinstance(value, (dict, list)):
            return value
        for name, convert, *_ in plan_of(self._cls).fields:
            if name == path and convert:
                return convert(value, name)
        return value

    async def set(self, path, value):
        """Sets the value at a path, and makes missing maps on the path."""
        _put("state_edit", [["set", path, value]], f"set {_quoted(path)}")

    async def clear(self):
        """Resets the whole state to its declared defaults."""
        _put("state_edit", [["clear"]], "clear")

    def edit_state(self):
        """Opens the state for a change that nobody interferes with: async with ctx.store.edit_state() as state: ...

        The state is written when the block ends, and left as it is if the block raises an exception. Entries of the state that its
        class does not declare, for example those of another workflow of the session, keep their values. The block may only read
        the state, log, and ask for the time and for random bytes.
        """
        return _Edit(self, "", lambda raw: state_of(self._cls, raw))

    def edit_at(self, path):
        """Opens the dict or list at a path for a change that nobody interferes with."""
        def read(raw):
            if not isinstance(raw, (dict, list)):
                raise WorkflowRuntimeError(f"edit {_quoted(path)}: the value is not a dict or a list: use set or increment")
            return raw
        return _Edit(self, path, read)

    # ---- edits of one value

    async def delete(self, path):
        """Removes the value at a path and reports whether there was one."""
        return _put("state_edit", [["delete", path]], f"delete {_quoted(path)}")[0]

    async def append(self, path, value):
        """Adds a value to the list at a path and returns the new length."""
        return _put("state_edit", [["append", path, value]], f"append {_quoted(path)}")[0]

    async def increment(self, path, by=1):
        """Adds to the number at a path and returns the new value. A missing value counts as 0."""
        return _put("state_edit", [["increment", path, by]], f"increment {_quoted(path)}")[0]

    async def merge(self, path, entries):
        """Merges entries into the map at a path, recursively."""
        _put("state_edit", [["merge", path, entries]], f"merge {_quoted(path)}")

    async def test(self, path, value):
        """Fails with the code conflict unless the value at the path equals the value."""
        _put("state_edit", [["test", path, value]], f"test {_quoted(path)}")

    def batch(self):
        """Starts a list of edits that take effect together or not at all."""
        return Batch()


class Batch:
    """A list of edits that take effect together or not at all: await store.batch().set("a", 1).increment("n").do()."""

    def __init__(self):
        self._edits = []

    def _add(self, *edit):
        self._edits.append(list(edit))
        return self

    def set(self, path, value):
        return self._add("set", path, value)

    def delete(self, path):
        return self._add("delete", path)

    def append(self, path, value):
        return self._add("append", path, value)

    def increment(self, path, by=1):
        return self._add("increment", path, by)

    def merge(self, path, entries):
        return self._add("merge", path, entries)

    def test(self, path, value):
        return self._add("test", path, value)

    def clear(self):
        return self._add("clear")

    async def do(self):
        """Makes the edits and returns a result for each."""
        return _put("state_edit", self._edits, "batch") if self._edits else []


