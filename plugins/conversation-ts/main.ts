// Conversation talks with a model, and keeps the conversation in the session.
import { assistant, event, result, startEvent, state, step, Stop, system, t, user, WeftError, workflow } from "weft";

// The next thing that the user says.
const Start = startEvent("StartEvent", { message: t.string() });

// Carries the message to the model.
const Ask = event("AskEvent", { message: t.string() });

// A turn: what was said, and the answer.
const Answer = event("AnswerEvent", { message: t.string(), answer: t.string() });

// The conversation so far.
const State = state({
  messages: t.array(t.object({ role: t.string(), content: t.string() })),
  turn_count: t.integer().default(0),
});

const resources = [{ name: "llm", kind: "llm", doc: "the model that answers" }];

export default workflow("conversation-ts", { state: State, resources }, [
  step("listen", Start, Ask, (ctx, { message }) => {
    if (message === "") throw new WeftError("message is empty", { code: "nothing_said" }).final();
    return Ask({ message });
  }),

  step("ask", Ask, Answer, async (ctx, { message }) => {
    const said = await ctx.get("messages", []);
    const messages = [system("You are a helpful assistant."), ...said, user(message)];
    const { content } = await ctx.llm("llm").do({ messages, stream: true });
    return Answer({ message, answer: content });
  }),

  step("remember", Answer, Stop, async (ctx, { message, answer }) => {
    const [turn_count, message_count] = await ctx.edit((s) => { // both sides of the turn, or neither
      const count = s.messages.push(user(message) as any, assistant(answer) as any);
      return [++s.turn_count, count];
    });
    return result({ response: answer, turn_count, message_count });
  }),
]);
