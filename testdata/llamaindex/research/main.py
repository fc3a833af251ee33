import asyncio
from collections import Counter
from datetime import date
from typing import List, Optional

from weft import BaseModel, Field
from weft import Context, Workflow, step
from weft.events import Event, StartEvent, StopEvent
from weft.retry_policy import ConstantDelayRetryPolicy


class Query(Event):
    text: str
    index: int = 0


class Answer(Event):
    query: str
    score: float
    words: dict[str, int] = Field(default_factory=dict)


class Retry(Event):
    left: list[str]


class Report(BaseModel):
    title: str
    best: Optional[Answer] = None
    days: List[date] = []


class Finished(StopEvent):
    report: Report
    tries: int = 0


class Research(Workflow):
    """Asks several questions and keeps the best answer."""

    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> Query | Retry:
        topics = ev.topics
        await ctx.store.set("n", len(topics))
        await ctx.store.set("tries", 0)
        if len(topics) > 3:
            return Retry(left=topics[:3])
        for i, t in enumerate(topics):
            ctx.send_event(Query(text=t, index=i))

    @step
    async def again(self, ctx: Context, ev: Retry) -> Query:
        await ctx.store.set("n", len(ev.left))
        async with ctx.store.edit_state() as state:
            state.tries += 1
            state["extra"] = {"left": ev.left}
        for i, t in enumerate(ev.left[1:]):
            ctx.send_event(Query(text=t, index=i))
        return Query(text=ev.left[0], index=9)

    @step(num_workers=4, retry_policy=ConstantDelayRetryPolicy(delay=0.01, maximum_attempts=5))
    async def search(self, ctx: Context, ev: Query) -> Answer:
        async with ctx.store.edit_state() as state:
            key = "tries_" + ev.text
            state[key] = state.get(key, 0) + 1
        words = Counter(ev.text.split())
        a, b = await asyncio.gather(self.score(ev.text), asyncio.sleep(0, 2))
        return Answer(query=ev.text, score=a * b / 3, words=words)

    async def score(self, text):
        await asyncio.sleep(0.001)
        return len(text)

    @step
    async def combine(self, ctx: Context, ev: Answer) -> Finished | None:
        n = await ctx.store.get("n")
        got = ctx.collect_events(ev, [Answer] * n)
        if not got:
            return None
        ctx.write_event_to_stream(Event(msg="combined", n=n))
        best = max(got, key=lambda a: a.score)
        return Finished(report=Report(title=best.query.upper(), best=best, days=[date(2026, 1, 2)]), tries=await ctx.store.get("tries"))
