import asyncio

from workflows import Context, Workflow, catch_error, step
from workflows.events import StartEvent, StepFailedEvent, StopEvent
from workflows.retry_policy import retry_if_exception_type, retry_policy, stop_after_attempt, wait_fixed


class FlakyFlow(Workflow):
    @step(retry_policy=retry_policy(retry=retry_if_exception_type(ConnectionError), wait=wait_fixed(0.01), stop=stop_after_attempt(3)))
    async def call(self, ctx: Context, ev: StartEvent) -> StopEvent:
        attempt = ctx.retry_info().retry_number + 1
        if ev.kind == "value":
            raise ValueError("not worth another attempt")
        if attempt <= ev.failures:
            raise ConnectionError(f"attempt {attempt} fails")
        return StopEvent(result=f"attempt {attempt} succeeds")

    @catch_error(for_steps=["call"])
    async def recover(self, ev: StepFailedEvent) -> StopEvent:
        return StopEvent(result=[ev.step_name, type(ev.exception).__name__, str(ev.exception), ev.attempts])


async def main():
    print(await FlakyFlow(timeout=10).run(kind="connection", failures=2))


if __name__ == "__main__":
    asyncio.run(main())
