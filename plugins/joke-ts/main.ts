// Joke asks a model for a joke, and then asks it to judge the joke.
import { event, result, startEvent, step, Stop, t, user, workflow } from "weft";

// Says what the joke is about.
const Start = startEvent("StartEvent", { topic: t.string() });

// The joke; it also appears on the stream.
const Joke = event("JokeEvent", { joke: t.string() });

const resources = [{ name: "llm", kind: "llm", doc: "the model that makes jokes" }];

export default workflow("joke-ts", { resources }, [
  step("invent", Start, Joke, async (ctx, ev) => {
    const { content } = await ctx.llm("llm").chat(user(`Write your best joke about ${ev.topic}.`));
    const joke = Joke({ joke: content });
    await ctx.stream(joke);
    return joke;
  }, { streams: [Joke] }),

  step("judge", Joke, Stop, async (ctx, ev) => {
    const { content } = await ctx.llm("llm").chat(user(`Give a thorough analysis and critique of the following joke: ${ev.joke}`));
    return result(content);
  }),
]);
