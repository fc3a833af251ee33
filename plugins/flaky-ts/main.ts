// Flaky fails a few times before it succeeds: retries, and a failure that is final.
import { result, startEvent, step, Stop, t, WeftError, workflow } from "weft";

// Says how often the step fails.
const Start = startEvent("StartEvent", {
  fail_times: t.integer().min(0).doc("how many attempts fail"),
  max_attempts: t.integer().default(3).min(1).doc("the attempt whose failure is final"),
});

export default workflow("flaky-ts", {}, [
  step("attempt", Start, Stop, (ctx, ev) => {
    const attempts = ctx.attempt;
    if (attempts > ev.fail_times) return result({ attempts });
    const error = new WeftError(`flaky: attempt ${attempts} of ${ev.max_attempts} fails`, { code: "flaky" });
    throw attempts >= ev.max_attempts ? error.final() : error; // final, whatever the policy says
  }, { retry: { wait: "10ms", attempts: 100 } }),
]);
