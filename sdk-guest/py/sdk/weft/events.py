"""Events: what steps take and give."""

import datetime
from typing import Any, NotRequired

from ._model import BaseModel, plan_of


class DictLikeModel(BaseModel):
    """A model that keeps values which are not declared as fields, and gives all values by name too: ev["x"], ev.get("x")."""

    __weft_open__ = True

    def _take_rest(self, values):
        if plan_of(type(self)).extra is None:
            self.__dict__.update(values)
        else:
            super()._take_rest(values)

    def __setattr__(self, name, value):
        if name in plan_of(type(self)).names:
            super().__setattr__(name, value)
        else:
            self.__dict__[name] = value

    def __getitem__(self, key):
        return self.__dict__[key]

    def __setitem__(self, key, value):
        self.__dict__[key] = value

    def __delitem__(self, key):
        del self.__dict__[key]

    def get(self, key, default=None):
        """Returns the value of a field, or the default."""
        return self.__dict__.get(key, default)

    def __contains__(self, key):
        return key in self.__dict__

    def _rest(self):
        names = plan_of(type(self)).names
        return {k: v for k, v in self._visible().items() if k not in names}

    def keys(self):
        """Returns the names of the values that are not declared as fields."""
        return self._rest().keys()

    def values(self):
        return self._rest().values()

    def items(self):
        return self._rest().items()

    def to_dict(self):
        return self._rest()

    def __len__(self):
        return len(self._rest())

    def __iter__(self):
        return iter(self._rest())

    def __bool__(self):
        return True


class Event(DictLikeModel):
    """The base of all events. A subclass declares fields by annotations:

        class Counted(Event):
            word: str
            count: int = 0
    """

    __weft_kind__ = None
    __weft_known__ = False  # every host knows the type


class StartEvent(Event):
    """The event that starts the workflow."""

    __weft_kind__ = "start"


class StopEvent(Event):
    """The event that ends the run. Its result is the run's result."""

    __weft_kind__ = "stop"
    __weft_known__ = True

    def __init__(self, result=None, /, **values):
        if result is not None:
            values["result"] = result
        elif type(self) is StopEvent:
            values.setdefault("result", None)
        super().__init__(**values)

    def __getattr__(self, name):
        if name == "result":
            return None
        return super().__getattr__(name)

    def __str__(self):
        return str(self.result)


class InputRequiredEvent(Event):
    """An event that asks a person."""

    __weft_kind__ = "input_required"


class HumanResponseEvent(Event):
    """A person's answer."""

    __weft_kind__ = "human_response"


class StepFailedEvent(Event):
    """The event that a handler declared by catch_error receives when a step has failed finally.

    exception is an exception of the type that the step has raised, if this type is built in, and a WeftError otherwise.
    """

    __weft_known__ = True
    step_name: str
    exception: object
    attempts: int
    elapsed_seconds: float
    input_event: object = None
    failed_at: datetime.datetime = None


class StepOutput(Event):
    """What a function returns to its flow. stop ends the flow."""

    step_name: NotRequired[str]
    content: Any
    success: NotRequired[bool]
    error: NotRequired[str]
    stop: NotRequired[bool]
    steps: NotRequired[list[Any]]


class StepInput(Event):
    """What a flow passes to a function."""

    input: NotRequired[Any]
    previous_step_content: NotRequired[Any]
    previous_step_outputs: NotRequired[dict[str, StepOutput]]
    additional_data: NotRequired[dict[str, Any]]
    step_choices: NotRequired[list[str]]
    current_iteration: NotRequired[int]
    max_iterations: NotRequired[int]

    @property
    def text(self):
        """The input, "" if it is not text."""
        return self.input if isinstance(self.input, str) else ""

    @property
    def previous_text(self):
        """The content of the previous node, "" if it is not text."""
        return self.previous_step_content if isinstance(self.previous_step_content, str) else ""


def base_of(cls):
    """Returns the event class that a class extends; None for a class that extends Event."""
    for base in cls.__mro__[1:]:
        if issubclass(base, Event) and base is not Event:
            return base if base.__name__ != cls.__name__ else base_of(base)
    return None
