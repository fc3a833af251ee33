import asyncio
from typing import Annotated

from weft import Workflow, step
from weft.collect import Collect
from weft.events import Event, StartEvent, StopEvent


class Chunk(Event):
    text: str


class Counted(Event):
    words: int



class ChunkFlow(Workflow):
    """A list of events fans out, and a parameter with a list collects."""

    @step
    async def split(self, ev: StartEvent) -> list[Chunk]:
        return [Chunk(text=line) for line in ev.text.splitlines()]

    @step(num_workers=4)
    async def count(self, ev: Chunk) -> Counted:
        return Counted(words=len(ev.text.split()))

    @step
    async def merge(self, all: Annotated[list[Counted], Collect()]) -> StopEvent:
        return StopEvent(result={"lines": len(all), "words": sum(c.words for c in all)})


async def main():
    print(await ChunkFlow(timeout=10).run(text="a b c\nd e\nf"))


if __name__ == "__main__":
    asyncio.run(main())
