"""A workflow that warms up the SDK."""

from ._context import Context
from ._model import BaseModel
from ._steps import step
from ._workflow import Workflow
from .events import Event, StartEvent, StopEvent


class State(BaseModel):
    count: int = 0


class WarmEvent(StartEvent):
    text: str
    n: int = 0


class NextEvent(Event):
    text: str


class Warm(Workflow):
    @step
    async def edit(self, ctx: Context[State], ev: WarmEvent) -> StopEvent:
        async with ctx.store.edit_state() as state:
            state.count += 1
        return StopEvent(result=state.count)

    @step
    async def get(self, ctx: Context[State], ev: WarmEvent) -> NextEvent | StopEvent:
        await ctx.store.set("text", ev.text)
        await ctx.store.get("text.size", default=0)
        ctx.write_event_to_stream(NextEvent(text=ev.text))
        return NextEvent(text=ev.text)

    @step
    def plain(self, ev: WarmEvent) -> StopEvent:
        return StopEvent(result={"text": ev.text, "n": ev.n})
