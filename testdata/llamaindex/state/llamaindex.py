import asyncio

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent


class ProcessEvent(Event):
    text: str


class WordFlow(Workflow):
    """Keeps values in the context between two steps."""

    @step
    async def prepare(self, ctx: Context, ev: StartEvent) -> ProcessEvent:
        await ctx.store.set("source", ev.text)
        await ctx.store.set("stats", {"chars": len(ev.text), "upper": sum(c.isupper() for c in ev.text)})
        return ProcessEvent(text=ev.text.lower())

    @step
    async def process(self, ctx: Context, ev: ProcessEvent) -> StopEvent:
        source = await ctx.store.get("source")
        chars = await ctx.store.get("stats.chars")
        missing = await ctx.store.get("stats.digits", default=0)
        try:
            await ctx.store.get("nobody.has.set")
        except ValueError:
            missing -= 1
        return StopEvent(result={"source": source, "words": ev.text.split(), "chars": chars, "missing": missing})


async def main():
    print(await WordFlow(timeout=10).run(text="Hello World"))


if __name__ == "__main__":
    asyncio.run(main())
