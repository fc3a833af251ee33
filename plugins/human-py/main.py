"""Human asks a person and waits for the answer, however long that takes: no step runs meanwhile."""

from typing import Any

import weft
from weft import StartEvent, StopEvent, Workflow, step


# Asks. Every client that follows the run sees it.
class InputRequiredEvent(weft.InputRequiredEvent):
    prefix: str


# The answer: any JSON value.
class HumanResponseEvent(weft.HumanResponseEvent):
    response: Any


# People need time to answer, so a run has no timeout.
class Human(Workflow, name="human-py", timeout=None):
    @step
    async def ask(self, ev: StartEvent) -> InputRequiredEvent:
        return InputRequiredEvent(prefix="Enter a number: ")

    @step
    async def answer(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=ev.response)
