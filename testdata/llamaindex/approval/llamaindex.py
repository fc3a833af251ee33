import asyncio

from workflows import Context, Workflow, step
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent


class ProgressEvent(Event):
    msg: str


class ApprovalFlow(Workflow):
    @step
    async def approve(self, ctx: Context, ev: StartEvent) -> StopEvent:
        approved = []
        for role in ("manager", "finance"):
            answer = await ctx.wait_for_event(
                HumanResponseEvent,
                waiter_id=role,
                waiter_event=InputRequiredEvent(prefix=f"{role}: approve {ev.item}?", role=role),
                requirements={"role": role},
            )
            if not answer.approved:
                return StopEvent(result={"approved": False, "by": role})
            approved.append(role)
        async with ctx.store.edit_state() as state:
            state["rounds"] = state.get("rounds", 0) + 1
        ctx.write_event_to_stream(ProgressEvent(msg="all have approved"))
        return StopEvent(result={"approved": True, "by": approved, "rounds": await ctx.store.get("rounds")})


async def main():
    handler = ApprovalFlow(timeout=None).run(item="a desk")
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            yes = input(event.prefix) == "yes"
            handler.ctx.send_event(HumanResponseEvent(role=event.role, approved=yes))
    print(await handler)


if __name__ == "__main__":
    asyncio.run(main())
