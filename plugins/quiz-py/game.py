"""The rules of the game, without a workflow."""

import re

from weft import BaseModel, Field


class Question(BaseModel):
    q: str
    a: str


# An answer of the player.
class Given(BaseModel):
    question: str
    given: str
    correct: str
    is_correct: bool


# The game.
class State(BaseModel):
    questions: list[Question]
    current_index: int = Field(ge=0)
    score: int
    answers_given: list[Given]

    def begin(self):
        """Begins a new game."""
        self.current_index, self.score, self.answers_given = 0, 0, []
        if not self.questions:
            return self.complete()
        return {"action": "question", "question": self.questions[0].q, "question_number": 1, "total_questions": len(self.questions)}

    def answer(self, given):
        """Takes an answer to the current question and asks the next one."""
        if self.current_index >= len(self.questions):
            return self.complete()
        now = self.questions[self.current_index]
        right = same(given, now.a)
        self.score += right
        self.answers_given.append(Given(question=now.q, given=given, correct=now.a, is_correct=right))
        self.current_index += 1
        if self.current_index == len(self.questions):
            return self.complete()
        return {
            "action": "question", "feedback": "Correct!" if right else f"Wrong! Answer: {now.a}",
            "question": self.questions[self.current_index].q, "question_number": self.current_index + 1, "current_score": self.score,
        }

    def complete(self):
        total = len(self.questions)
        return {"action": "complete", "score": self.score, "total": total, "percentage": 100 * self.score / total if total else 0.0}


def same(a, b):
    """Reports whether texts differ in case only. A regular expression compares letter by letter."""
    return re.fullmatch(re.escape(b), a, re.IGNORECASE) is not None
