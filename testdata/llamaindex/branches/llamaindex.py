import asyncio
import random

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent


class LoopEvent(Event):
    n: int
    steps: list[int] = []


class EvenEvent(Event):
    n: int
    steps: list[int]


class OddEvent(Event):
    n: int
    steps: list[int]


class Report(StopEvent):
    steps: list[int]
    longest: int


class CollatzFlow(Workflow):
    """Branches and a loop; the result is a stop event with fields of its own."""

    @step
    async def start(self, ev: StartEvent) -> LoopEvent:
        random.seed(7)
        assert 1 <= random.randint(1, 6) <= 6
        return LoopEvent(n=ev.n)

    @step
    async def decide(self, ctx: Context, ev: LoopEvent) -> EvenEvent | OddEvent | Report:
        steps = [*ev.steps, ev.n]
        if ev.n == 1:
            return Report(steps=steps, longest=max(steps))
        if ev.n % 2 == 0:
            return EvenEvent(n=ev.n, steps=steps)
        return OddEvent(n=ev.n, steps=steps)

    @step
    async def follow(self, ev: EvenEvent | OddEvent) -> LoopEvent:
        if isinstance(ev, EvenEvent):
            return LoopEvent(n=ev.n // 2, steps=ev.steps)
        return LoopEvent(n=3 * ev.n + 1, steps=ev.steps)


async def main():
    print(await CollatzFlow(timeout=10).run(n=6))


if __name__ == "__main__":
    asyncio.run(main())
