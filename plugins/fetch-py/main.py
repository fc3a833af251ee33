"""Fetch makes an HTTP request by a resource that the operator grants."""

from typing import NotRequired

import weft
from weft import BaseModel, Context, Field, StopEvent, Workflow, step


# Says what to fetch.
class StartEvent(weft.StartEvent):
    path: str = Field(description="below the base_url of the resource")
    method: str = "GET"
    body: NotRequired[str]


# The session's state.
class Tally(BaseModel):
    asked: int


WEB = {"name": "web", "kind": "http", "description": "where pages are fetched from"}


class Fetch(Workflow, name="fetch-py", resources=[WEB]):
    @step
    async def fetch(self, ctx: Context[Tally], ev: StartEvent) -> StopEvent:
        asked = await ctx.store.increment("asked")  # once, however often the request is repeated
        answer = await ctx.http("web").request(ev.method, ev.path, body=(ev.body or "").encode())
        return StopEvent(result={"status": answer.status, "length": len(answer.text), "asked": asked})
