import asyncio
from typing import Annotated

from workflows import Workflow, step
from workflows.events import Event, StartEvent, StopEvent
from workflows.resource import Resource


class Dictionary:
    def __init__(self, words: dict[str, str]):
        self.words = words
        self.asked = 0

    def look_up(self, word: str) -> str:
        self.asked += 1
        return self.words.get(word, word)


def get_words() -> dict[str, str]:
    return {"milk": "lait", "bread": "pain"}


async def get_dictionary(words: Annotated[dict[str, str], Resource(get_words)]) -> Dictionary:
    await asyncio.sleep(0)
    return Dictionary(words)


class Translated(Event):
    words: list[str]


class TranslateFlow(Workflow):
    @step
    async def translate(self, ev: StartEvent, dictionary: Annotated[Dictionary, Resource(get_dictionary)]) -> Translated:
        return Translated(words=[dictionary.look_up(w) for w in ev.text.split()])

    @step
    async def finish(self, ev: Translated, words: Annotated[dict[str, str], Resource(get_words)]) -> StopEvent:
        return StopEvent(result=[" ".join(ev.words), len(words)])


async def main():
    print(await TranslateFlow(timeout=10).run(text="bread and milk"))


if __name__ == "__main__":
    asyncio.run(main())
