"""Values that steps receive beside their event."""

import typing

from .errors import WorkflowValidationError


class _Resource:
    def __init__(self, factory, cache):
        self.factory = factory
        self.cache = cache
        self.name = getattr(factory, "__qualname__", type(factory).__name__)

    def needs(self):
        hints = typing.get_type_hints(self.factory, include_extras=True) if hasattr(self.factory, "__annotations__") and not isinstance(self.factory, type) else {}
        return resources_in(hints)

    async def make(self, manager):
        args = {name: await manager.get(r) for name, r in self.needs().items()}
        value = self.factory(**args)
        return await value if hasattr(value, "__await__") else value


class _Config:
    """A model that is read from a file in JSON of the project."""

    cache = True

    def __init__(self, config_file, path_selector):
        self.file = config_file
        self.path = path_selector
        self.type = None
        self.name = config_file + ("." + path_selector if path_selector else "")

    async def make(self, manager):
        import json
        from . import _finder
        value = json.loads(_finder.read(self.file))
        for key in (self.path or "").split(".") if self.path else ():
            value = value[key]
        return self.type.model_validate(value) if hasattr(self.type, "model_validate") else value


def Resource(factory, cache=True):
    """Declares a parameter whose value a factory makes: Annotated[Memory, Resource(get_memory)].

    The factory may be asynchronous. It runs at most once in each invocation of a step: nothing is shared between invocations.
    """
    return _Resource(factory, cache)


def ResourceConfig(config_file, path_selector=None, label=None, description=None):
    """Declares a parameter that is read from a file in JSON of the project."""
    return _Config(config_file, path_selector)


def resources_in(hints):
    """Returns the resources among the annotations of parameters."""
    found = {}
    for name, hint in hints.items():
        if typing.get_origin(hint) is typing.Annotated:
            for extra in typing.get_args(hint)[1:]:
                if isinstance(extra, (_Resource, _Config)):
                    if isinstance(extra, _Config) and extra.type is None:
                        extra.type = typing.get_args(hint)[0]
                    found[name] = extra
    return found


class Manager:
    """Makes the resources of one invocation."""

    def __init__(self):
        self._made = {}
        self._making = []

    async def get(self, resource):
        if resource.cache and resource.name in self._made:
            return self._made[resource.name]
        if resource.name in self._making:
            raise WorkflowValidationError("resources need each other: " + " -> ".join(self._making + [resource.name]))
        self._making.append(resource.name)
        try:
            value = await resource.make(self)
        finally:
            self._making.pop()
        self._made[resource.name] = value
        return value
