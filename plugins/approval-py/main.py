"""Approval asks two people, one after the other, in one step that reads from top to bottom."""

import weft
from weft import BaseModel, Context, Field, StopEvent, Workflow, step

ROLES = ["manager", "finance"]


# Says what needs approval.
class StartEvent(weft.StartEvent):
    item: str = Field(description="what is to be approved")


# Asks. Every client that follows the run sees it.
class InputRequiredEvent(weft.InputRequiredEvent):
    prefix: str


# An answer.
class HumanResponseEvent(weft.HumanResponseEvent):
    role: str = Field(description="manager or finance")
    approved: bool


# Belongs to the session.
class State(BaseModel):
    calls: int = Field(default=0, description="how often somebody's approval was asked for")


# People need time to answer, so a run has no timeout.
class Approval(Workflow, name="approval-py", timeout=None):
    # Runs again from its start after each answer, but does nothing twice: earlier calls, including the edit, return their
    # recorded answers.
    @step(streams=[InputRequiredEvent])
    async def approve(self, ctx: Context[State], ev: StartEvent) -> StopEvent:
        async with ctx.store.edit_state() as state:
            state.calls += 1
        approved = True
        for role in ROLES:
            answer = await ctx.wait_for_event(
                HumanResponseEvent, timeout=None, waiter_id=role,
                waiter_event=InputRequiredEvent(prefix=f"{role}, approve {ev.item}?"), requirements={"role": role},
            )
            approved = approved and answer.approved
        return StopEvent(result={"approved": approved, "by": ROLES, "calls": state.calls})
