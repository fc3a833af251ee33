"""The SDK for steps in Python. Its names are those of LlamaIndex Workflows.

    from weft import StartEvent, StopEvent, Workflow, step

    class Greeter(Workflow):
        @step
        async def greet(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=f"Hello, {ev.name}")
"""

from ._context import Context
from ._model import BaseModel, ConfigDict, field_validator, model_validator
from ._state import DictState
from ._steps import catch_error, step
from ._types import Field, PrivateAttr
from ._workflow import Workflow
from .collect import All, Collect, Take
from .errors import ValidationError, WeftError, WorkflowRuntimeError, WorkflowValidationError, code_of
from .events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StepFailedEvent, StepInput, StepOutput, StopEvent
from .resource import Resource, ResourceConfig
from .retry_policy import (
    ConstantDelayRetryPolicy,
    ExponentialBackoffRetryPolicy,
    retry_policy,
)

__all__ = [
    "All", "BaseModel", "Collect", "ConfigDict", "ConstantDelayRetryPolicy", "Context", "DictState", "Event", "ExponentialBackoffRetryPolicy", "Field",
    "HumanResponseEvent", "InputRequiredEvent", "PrivateAttr", "Resource", "ResourceConfig", "StartEvent", "StepFailedEvent", "StepInput",
    "StepOutput", "StopEvent", "Take", "ValidationError", "WeftError", "Workflow", "WorkflowRuntimeError", "WorkflowValidationError",
    "catch_error", "code_of", "field_validator", "model_validator", "retry_policy", "step",
]

_INSTEAD = {
    "computed_field": "a dump holds fields only: set a field in a model_validator(mode=\"after\")",
    "field_serializer": "give the field the type that leaves the step",
    "model_serializer": "give the fields the types that leave the step",
    "validator": "use field_validator",
    "root_validator": "use model_validator",
    "AliasChoices": "give the field the name that it has in the JSON",
    "AliasPath": "give the field the name that it has in the JSON",
    "TypeAdapter": "use a BaseModel with one field",
    "RootModel": "use a BaseModel with one field",
    "create_model": "write a class",
}


def __getattr__(name):
    if name in _INSTEAD:
        raise ImportError(f"weft has no {name}: {_INSTEAD[name]}")
    raise AttributeError(f"module 'weft' has no attribute {name!r}")
