"""The SDK for steps in Python. Its names are those of LlamaIndex Workflows.

    from weft import StartEvent, StopEvent, Workflow, step

    class Greeter(Workflow):
        @step
        async def greet(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=f"Hello, {ev.name}")
"""

from ._context import Context
from ._model import BaseModel
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
    "All", "BaseModel", "Collect", "ConstantDelayRetryPolicy", "Context", "DictState", "Event", "ExponentialBackoffRetryPolicy", "Field",
    "HumanResponseEvent", "InputRequiredEvent", "PrivateAttr", "Resource", "ResourceConfig", "StartEvent", "StepFailedEvent", "StepInput",
    "StepOutput", "StopEvent", "Take", "ValidationError", "WeftError", "Workflow", "WorkflowRuntimeError", "WorkflowValidationError",
    "catch_error", "code_of", "retry_policy", "step",
]
