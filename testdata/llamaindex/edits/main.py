import asyncio

from weft import Context, Workflow, step
from weft.events import Event, StartEvent, StopEvent


class CountEvent(Event):
    by: int


class CountedEvent(Event):
    by: int


class AtomicCounter(Workflow):
    """Several workers change the same value, and no change is lost."""

    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> CountEvent | None:
        async with ctx.store.edit_state() as state:
            state["total"] = 0
            state["log"] = []
        await ctx.store.set("n", ev.n)
        for i in range(ev.n):
            ctx.send_event(CountEvent(by=i + 1))

    @step(num_workers=4)
    async def count(self, ctx: Context, ev: CountEvent) -> CountedEvent:
        async with ctx.store.edit_state() as state:
            total = state["total"]
            await asyncio.sleep(0)
            state["total"] = total + ev.by
            state["log"].append(ev.by)
        return CountedEvent(by=ev.by)

    @step
    async def gather(self, ctx: Context, ev: CountedEvent) -> StopEvent | None:
        n = await ctx.store.get("n")
        done = ctx.collect_events(ev, [CountedEvent] * n)
        if done is None:
            return None
        try:
            async with ctx.store.edit_state() as state:
                state["total"] = -1
                raise RuntimeError("this change is given up")
        except RuntimeError:
            pass
        state = await ctx.store.get_state()
        return StopEvent(result={"total": state.total, "log": sorted(state["log"])})


async def main():
    print(await AtomicCounter(timeout=10).run(n=5))


if __name__ == "__main__":
    asyncio.run(main())
