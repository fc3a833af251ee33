"""Counter counts how often it has been run in a session: typed state, and an edit that cannot lose an update."""

from weft import BaseModel, Context, Field, StartEvent, StopEvent, Workflow, step


# Belongs to the session: it outlives the run.
class State(BaseModel):
    count: int = Field(default=0, description="runs so far")


class Counter(Workflow, name="counter-py"):
    @step
    async def increment(self, ctx: Context[State], ev: StartEvent) -> StopEvent:
        async with ctx.store.edit_state() as state:  # reads, changes and writes without interference
            state.count += 1
        return StopEvent(result=state.count)
