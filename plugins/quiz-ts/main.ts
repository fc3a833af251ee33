// Quiz asks for capitals over several runs of one session: the state is the game, each
// run is one move.
import { float, result, startEvent, state, step, Stop, t, workflow } from "weft";
import { answer, begin } from "./game";

// A move.
const Start = startEvent("StartEvent", {
  action: t.oneOf("start", "answer", "status"),
  answer: t.string().optional().doc("with the action answer"),
});

// The game.
const State = state({
  questions: t.array(t.object({ q: t.string(), a: t.string() })),
  current_index: t.integer().min(0),
  score: t.integer(),
  answers_given: t.array(t.object({ question: t.string(), given: t.string(), correct: t.string(), is_correct: t.boolean() })),
}, {
  initial: { // the state of a new session
    questions: [
      { q: "Capital of France?", a: "Paris" },
      { q: "Capital of Germany?", a: "Berlin" },
      { q: "Capital of Japan?", a: "Tokyo" },
    ],
    current_index: 0, score: 0, answers_given: [],
  },
});

export default workflow("quiz-ts", { state: State }, [
  step("play", Start, Stop, async (ctx, ev) => {
    if (ev.action === "status") { // only looks
      const { current_index, score, questions } = await ctx.state();
      return result({ action: "status", current_index, score, total: questions.length });
    }
    const reply = await ctx.edit((game) => (ev.action === "start" ? begin(game) : answer(game, ev.answer ?? "")));
    if (reply.action === "complete") return result({ ...reply, percentage: float(reply.percentage) });
    return result(reply);
  }),
]);
