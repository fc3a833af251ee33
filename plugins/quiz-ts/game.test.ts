import { describe, expect, session, test } from "weft/test";
import { answer, begin, same, type Game } from "./game";

const game = (): Game => ({
  questions: [{ q: "Capital of France?", a: "Paris" }, { q: "Capital of Japan?", a: "Tokyo" }],
  current_index: 0, score: 0, answers_given: [],
});

test("answers differ in case only", () => {
  expect(same("PARIS", "Paris")).toBe(true);
  expect(same("to\u212ayo", "Tokyo")).toBe(true); // the sign of Kelvin
  expect(same("Paris ", "Paris")).toBe(false);
});

describe("a game", () => {
  test("begins", () => expect(begin(game())).toMatchObject({ question: "Capital of France?", total_questions: 2 }));

  test("ends with a percentage", () => {
    const g = game();
    expect(answer(g, "paris")).toMatchObject({ feedback: "Correct!", current_score: 1 });
    expect(answer(g, "Kyoto")).toEqual({ action: "complete", score: 1, total: 2, percentage: 50 });
    expect(g.answers_given.map((given) => given.is_correct)).toEqual([true, false]);
  });
});

test("the session keeps the game", async () => {
  const mine = session();
  await mine.run({ action: "answer", answer: "Paris" });
  expect(await mine.run({ action: "status" })).toMatchObject({ current_index: 1, score: 1 });
  expect(await session().run({ action: "status" })).toMatchObject({ current_index: 0 });
  await expect(mine.run({ action: "stop" })).rejects.toThrow("action");
});
