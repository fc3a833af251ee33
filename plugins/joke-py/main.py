"""Joke asks a model for a joke, and then asks it to judge the joke."""

import weft
from weft import Context, Event, StopEvent, Workflow, step


# Says what the joke is about.
class StartEvent(weft.StartEvent):
    topic: str


# The joke; it also appears on the stream.
class JokeEvent(Event):
    joke: str


LLM = {"name": "llm", "kind": "llm", "description": "the model that makes jokes"}


class Joke(Workflow, name="joke-py", resources=[LLM]):
    @step(streams=[JokeEvent])
    async def invent(self, ctx: Context, ev: StartEvent) -> JokeEvent:
        answer = await ctx.llm("llm").chat(f"Write your best joke about {ev.topic}.")
        joke = JokeEvent(joke=answer.content)
        ctx.write_event_to_stream(joke)
        return joke

    @step
    async def judge(self, ctx: Context, ev: JokeEvent) -> StopEvent:
        answer = await ctx.llm("llm").chat(f"Give a thorough analysis and critique of the following joke: {ev.joke}")
        return StopEvent(result=answer.content)
