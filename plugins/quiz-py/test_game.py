from game import Question, State, same
from weft.test import raises, session


def game():
    questions = [Question(q="Capital of France?", a="Paris"), Question(q="Capital of Japan?", a="Tokyo")]
    return State(questions=questions, current_index=0, score=0, answers_given=[])


def test_answers_differ_in_case_only():
    assert same("PARIS", "Paris")
    assert same("to\u212ayo", "Tokyo")  # the sign of Kelvin
    assert not same("Paris ", "Paris")


def test_a_game_begins():
    assert game().begin() == {"action": "question", "question": "Capital of France?", "question_number": 1, "total_questions": 2}


def test_a_game_ends_with_a_percentage():
    g = game()
    assert g.answer("paris")["feedback"] == "Correct!"
    assert g.answer("Kyoto") == {"action": "complete", "score": 1, "total": 2, "percentage": 50}
    assert [given.is_correct for given in g.answers_given] == [True, False]


async def test_the_session_keeps_the_game():
    mine = session()
    await mine.run(action="answer", answer="Paris")
    assert (await mine.run(action="status"))["current_index"] == 1
    assert (await session().run(action="status"))["current_index"] == 0
    with raises(match="action"):
        await mine.run(action="stop")
