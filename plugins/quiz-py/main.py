"""Quiz asks for capitals over several runs of one session: the state is the game, each run is one move."""

from typing import Literal, NotRequired

import weft
from game import Question, State
from weft import Context, Field, StopEvent, Workflow, step


# A move.
class StartEvent(weft.StartEvent):
    action: Literal["start", "answer", "status"]
    answer: NotRequired[str] = Field(description="with the action answer")


# The state of a new session.
NEW = State(
    questions=[
        Question(q="Capital of France?", a="Paris"),
        Question(q="Capital of Germany?", a="Berlin"),
        Question(q="Capital of Japan?", a="Tokyo"),
    ],
    current_index=0, score=0, answers_given=[],
)


class Quiz(Workflow, name="quiz-py", state=NEW):
    @step
    async def play(self, ctx: Context[State], ev: StartEvent) -> StopEvent:
        if ev.action == "status":  # only looks
            game = await ctx.store.get_state()
            return StopEvent(result={"action": "status", "current_index": game.current_index, "score": game.score, "total": len(game.questions)})
        async with ctx.store.edit_state() as game:
            reply = game.begin() if ev.action == "start" else game.answer(ev.answer or "")
        return StopEvent(result=reply)
