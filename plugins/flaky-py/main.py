"""Flaky fails a few times before it succeeds: retries, and a failure that is final."""

import weft
from weft import ConstantDelayRetryPolicy, Context, Field, StopEvent, WeftError, Workflow, step


# Says how often the step fails.
class StartEvent(weft.StartEvent):
    fail_times: int = Field(ge=0, description="how many attempts fail")
    max_attempts: int = Field(default=3, ge=1, description="the attempt whose failure is final")


class Flaky(Workflow, name="flaky-py"):
    @step(retry_policy=ConstantDelayRetryPolicy(delay=0.01, maximum_attempts=100))
    async def attempt(self, ctx: Context, ev: StartEvent) -> StopEvent:
        attempts = ctx.attempt
        if attempts > ev.fail_times:
            return StopEvent(result={"attempts": attempts})
        error = WeftError(f"flaky: attempt {attempts} of {ev.max_attempts} fails", code="flaky")
        raise error.final() if attempts >= ev.max_attempts else error  # final, whatever the policy says
