import asyncio

from weft import Context, Workflow, step
from weft.events import Event, StartEvent, StopEvent


class QueryEvent(Event):
    query: str
    index: int


class AnswerEvent(Event):
    answer: str
    index: int


class ParallelFlow(Workflow):
    @step
    async def split(self, ctx: Context, ev: StartEvent) -> QueryEvent | StopEvent | None:
        queries = [q.strip() for q in ev.query.split(",") if q.strip()]
        if not queries:
            return StopEvent(result=[])
        await ctx.store.set("num_queries", len(queries))
        for i, query in enumerate(queries):
            ctx.send_event(QueryEvent(query=query, index=i))

    @step(num_workers=3)
    async def answer(self, ctx: Context, ev: QueryEvent) -> AnswerEvent:
        pieces = await asyncio.gather(self.look_up(ev.query), self.look_up(ev.query[::-1]))
        return AnswerEvent(answer="/".join(pieces), index=ev.index)

    async def look_up(self, text: str) -> str:
        await asyncio.sleep(0.01)
        return text.title()

    @step
    async def combine(self, ctx: Context, ev: AnswerEvent) -> StopEvent | None:
        num = await ctx.store.get("num_queries")
        events = ctx.collect_events(ev, [AnswerEvent] * num)
        if events is None:
            return None
        return StopEvent(result=[e.answer for e in sorted(events, key=lambda e: e.index)])


async def main():
    print(await ParallelFlow(timeout=10).run(query="tea, milk, bread"))


if __name__ == "__main__":
    asyncio.run(main())
