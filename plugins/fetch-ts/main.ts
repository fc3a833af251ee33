// Fetch makes an HTTP request by a resource that the operator grants.
import { result, startEvent, state, step, Stop, t, workflow } from "weft";

// Says what to fetch.
const Start = startEvent("StartEvent", {
  path: t.string().doc("below the base_url of the resource"),
  method: t.string().default("GET"),
  body: t.string().optional(),
});

// The session's state.
const Tally = state({ asked: t.integer() }, { title: "Tally" });

const resources = [{ name: "web", kind: "http", doc: "where pages are fetched from" }];

export default workflow("fetch-ts", { state: Tally, resources }, [
  step("fetch", Start, Stop, async (ctx, ev) => {
    const asked = await ctx.increment("asked"); // once, however often the request is repeated
    const answer = await ctx.http("web").do({ method: ev.method, path: ev.path, body: ev.body ?? "" });
    return result({ status: answer.status, length: [...answer.text()].length, asked });
  }),
]);
