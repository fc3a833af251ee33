"""Wordcount counts the words of a text of any size: it splits the text into chunks, counts them concurrently and merges the counts."""

from collections import Counter

import weft
from weft import Event, Field, StopEvent, Workflow, step
from words import chunks, lines, ranked, words


# Holds the text and how to split it.
class StartEvent(weft.StartEvent):
    text: str = Field(description="the text to count")
    chunk_lines: int = Field(default=200, ge=1, description="lines in a chunk")
    top: int = Field(default=10, ge=0, description="how many of the most frequent words to give")


# A part of the text: some whole lines.
class ChunkEvent(Event):
    text: str
    top: int  # passed to the last step


# The counts of one chunk: how often each word occurs, as ["word", 3].
class CountedEvent(Event):
    lines: int
    counts: list[tuple[str, int]]
    top: int


class Wordcount(Workflow, name="wordcount-py"):
    @step
    async def split(self, ev: StartEvent) -> list[ChunkEvent]:
        return [ChunkEvent(text=text, top=ev.top) for text in chunks(ev.text, ev.chunk_lines)]

    @step(num_workers=8)
    async def count(self, ev: ChunkEvent) -> CountedEvent:
        return CountedEvent(lines=lines(ev.text), counts=ranked(words(ev.text)), top=ev.top)

    # Adds up the counts of all chunks.
    @step
    async def merge(self, all: list[CountedEvent]) -> StopEvent:
        total = Counter()
        for chunk in all:
            total.update(dict(chunk.counts))
        top = all[-1].top if all else 0
        return StopEvent(result={
            "lines": sum(chunk.lines for chunk in all), "words": total.total(), "distinct": len(total), "top": ranked(total)[:top],
        })
