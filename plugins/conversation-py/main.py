"""Conversation talks with a model, and keeps the conversation in the session."""

import weft
from weft import BaseModel, Context, Event, StopEvent, WeftError, Workflow, step


# The next thing that the user says.
class StartEvent(weft.StartEvent):
    message: str


# Carries the message to the model.
class AskEvent(Event):
    message: str


# A turn: what was said, and the answer.
class AnswerEvent(Event):
    message: str
    answer: str


class Message(BaseModel):
    role: str
    content: str


# The conversation so far.
class State(BaseModel):
    messages: list[Message]
    turn_count: int = 0


LLM = {"name": "llm", "kind": "llm", "description": "the model that answers"}


class Conversation(Workflow, name="conversation-py", resources=[LLM]):
    @step
    async def listen(self, ev: StartEvent) -> AskEvent:
        if not ev.message:
            raise WeftError("message is empty", code="nothing_said").final()
        return AskEvent(message=ev.message)

    @step
    async def ask(self, ctx: Context[State], ev: AskEvent) -> AnswerEvent:
        said = await ctx.store.get("messages", default=[])
        messages = [Message(role="system", content="You are a helpful assistant."), *said, Message(role="user", content=ev.message)]
        answer = await ctx.llm("llm").chat(messages, stream=True)
        return AnswerEvent(message=ev.message, answer=answer.content)

    @step
    async def remember(self, ctx: Context[State], ev: AnswerEvent) -> StopEvent:
        async with ctx.store.edit_state() as state:  # both sides of the turn, or neither
            state.messages += [Message(role="user", content=ev.message), Message(role="assistant", content=ev.answer)]
            state.turn_count += 1
        return StopEvent(result={"response": ev.answer, "turn_count": state.turn_count, "message_count": len(state.messages)})
