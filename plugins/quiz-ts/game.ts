// The rules of the game, without a workflow.

export interface Game {
  questions: { q: string; a: string }[];
  current_index: number;
  score: number;
  answers_given: { question: string; given: string; correct: string; is_correct: boolean }[];
}

/** Begins a new game. */
export function begin(game: Game) {
  game.current_index = game.score = 0;
  game.answers_given = [];
  const [first] = game.questions;
  if (!first) return complete(game);
  return { action: "question" as const, question: first.q, question_number: 1, total_questions: game.questions.length };
}

/** Takes an answer to the current question and asks the next one. */
export function answer(game: Game, given: string) {
  const now = game.questions[game.current_index];
  if (!now) return complete(game);
  const right = same(given, now.a);
  if (right) game.score++;
  game.answers_given.push({ question: now.q, given, correct: now.a, is_correct: right });
  const next = game.questions[++game.current_index];
  if (!next) return complete(game);
  return {
    action: "question" as const, feedback: right ? "Correct!" : `Wrong! Answer: ${now.a}`,
    question: next.q, question_number: game.current_index + 1, current_score: game.score,
  };
}

/** same reports whether texts differ in case only. A regular expression compares letters as Unicode folds them. */
export const same = (a: string, b: string) => new RegExp(`^${RegExp.escape(b)}$`, "iu").test(a);

function complete({ score, questions: { length: total } }: Game) {
  return { action: "complete" as const, score, total, percentage: total > 0 ? (100 * score) / total : 0 };
}
