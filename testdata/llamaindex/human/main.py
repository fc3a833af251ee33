import asyncio

from weft import Workflow, step
from weft.events import HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent


class HumanInTheLoop(Workflow):
    @step
    async def ask(self, ev: StartEvent) -> InputRequiredEvent:
        return InputRequiredEvent(prefix="Enter a number: ")

    @step
    async def answer(self, ev: HumanResponseEvent) -> StopEvent:
        try:
            return StopEvent(result=int(ev.response) * 2)
        except ValueError as e:
            return StopEvent(result=f"no number: {e}")


async def main():
    handler = HumanInTheLoop(timeout=None).run()
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response=input(event.prefix)))
    print(await handler)


if __name__ == "__main__":
    asyncio.run(main())
