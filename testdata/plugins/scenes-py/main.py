"""Scenes does one of many things that a step can do: testdata/plugins/scenes is the same in Go."""

from typing import Annotated

import calls
from events import (
    BoxEvent,
    CallEvent,
    CardEvent,
    CellEvent,
    DealEvent,
    DoneEvent,
    FanEvent,
    FragileEvent,
    HumanResponseEvent,
    InputRequiredEvent,
    ItemEvent,
    JoinEvent,
    LeftEvent,
    ListenEvent,
    LoudTickEvent,
    MoonEvent,
    NestEvent,
    PartEvent,
    PieceEvent,
    RightEvent,
    RowEvent,
    ShownEvent,
    StartEvent,
    State,
    SumEvent,
    SunEvent,
    TickEvent,
    WorkEvent,
)
from weft import Collect, StepFailedEvent, StopEvent, Take, WeftError, Workflow, catch_error, code_of, retry_policy, step
from weft import Context as AnyContext
from weft.retry_policy import (
    not_,
    on_codes,
    on_message,
    retry_all,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    wait_chain,
    wait_combine,
    wait_fixed,
    wait_random,
)

Context = AnyContext[State]
WEB = {"name": "web", "kind": "http", "optional": True}
SHELF = {"name": "shelf", "kind": "kv", "optional": True}


class Scenes(Workflow, name="scenes-py", timeout=None, resources=[WEB, SHELF]):
    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> (
        CallEvent | WorkEvent | FragileEvent | BoxEvent | ListenEvent | LeftEvent | RightEvent | FanEvent | NestEvent | DealEvent | JoinEvent
    ):
        match ev.what:
            case "work":
                return WorkEvent(fail=ev.n > 0)
            case "fragile":
                return FragileEvent(text=ev.text)
            case "box":
                return BoxEvent(name=ev.text, size=ev.n)
            case "listen":
                return ListenEvent()
            case "pair":
                ctx.send_event(LeftEvent(n=ev.n), step="pair")
                return RightEvent(text=ev.text)
            case "fan":
                return FanEvent(n=ev.n, text=ev.text)
            case "nest":
                return NestEvent(n=ev.n)
            case "deal":
                return DealEvent(n=ev.n)
            case "join":
                return JoinEvent(n=ev.n, text=ev.text)
        return CallEvent(what=ev.what, n=ev.n, text=ev.text)

    @step
    async def pair(self, ctx: Context, ev: LeftEvent | RightEvent) -> StopEvent | None:
        both = ctx.collect_events(ev, [RightEvent, LeftEvent], "pair")
        if both is None:
            return None
        right, left = both
        return StopEvent(result=[left.n, right.text])

    @step(
        waits=[HumanResponseEvent, TickEvent],
        streams=[InputRequiredEvent, ShownEvent],
        retry_policy=retry_policy(
            retry=retry_all(on_codes("flaky"), not_(on_message("final"))),
            wait=wait_chain(wait_fixed("1ms"), wait_combine(wait_fixed("1ms"), wait_random(0, "1ms"))),
            stop=stop_after_attempt(4),
        ),
    )
    async def call(self, ctx: Context, ev: CallEvent) -> StopEvent:
        return StopEvent(result=await calls.call(ctx, ev))

    @step(atomic=True, streams=[ShownEvent])
    async def work(self, ctx: Context, ev: WorkEvent) -> DoneEvent | None:
        async with ctx.store.edit_state() as state:
            state.count += 10
            state.log.append("worked")
        ctx.write_event_to_stream(ShownEvent(text="worked"))
        ctx.send_event(DoneEvent())
        try:
            await ctx.sleep(1)
        except WeftError as e:
            refused = code_of(e)
        if ev.fail:
            raise WeftError(f"a sleep is refused by {refused}", code="undone").final()

    @step
    async def done(self, ctx: Context, ev: DoneEvent) -> StopEvent:
        return StopEvent(result=await ctx.store.get_state())

    @step(retry_policy=retry_policy(wait=wait_fixed("1ms"), stop=stop_any(stop_after_attempt(2), stop_after_delay("1h"))))
    async def fragile(self, ev: FragileEvent) -> StopEvent:
        raise WeftError(ev.text, code="fragile")

    @catch_error(for_steps=["work", "fragile"], max_recoveries=2)
    async def rescue(self, ctx: Context, ev: StepFailedEvent) -> StopEvent:
        return StopEvent(result={
            "step": ev.step_name, "code": ev.exception_type, "message": ev.exception_message, "attempts": ev.attempts, "input": ev.input,
            "state": await ctx.store.get_state(),
        })

    @catch_error(for_steps=["cancelled", "timeout"])
    async def clean(self, ctx: Context, ev: StepFailedEvent) -> None:
        ctx.write_event_to_stream(ShownEvent(text=f"cleaned: {ev.step_name}{ev.exception_type}"))

    @step(accept_event_subclasses=True)
    async def measure(self, ev: ItemEvent) -> StopEvent:
        return StopEvent(result=len(ev.name))

    @step(accept_event_subclasses=True, streams=[LoudTickEvent])
    async def listen(self, ctx: Context, ev: ListenEvent) -> StopEvent:
        return StopEvent(result=(await ctx.wait_for_event(TickEvent, timeout=None)).n)

    @step
    async def fan(self, ev: FanEvent) -> list[PartEvent]:
        return [PartEvent(i=i, text=ev.text) for i in range(ev.n)]

    @step
    async def nest(self, ev: NestEvent) -> list[RowEvent]:
        return [RowEvent(row=i, n=ev.n) for i in range(ev.n)]

    @step
    async def deal(self, ev: DealEvent) -> list[CardEvent]:
        return [CardEvent(v=i) for i in range(ev.n)]

    # Begins a join, with half of it if it has no text.
    @step(emits=[MoonEvent])
    async def both(self, ctx: Context, ev: JoinEvent) -> SunEvent:
        if ev.text:
            ctx.send_event(MoonEvent(text=ev.text))
        return SunEvent(n=ev.n)

    # Gives a piece, gives none, or fails: once or for good.
    @step(num_workers=2, retry_policy=retry_policy(wait=wait_fixed("1ms"), stop=stop_after_attempt(2)))
    async def part(self, ctx: Context, ev: PartEvent) -> PieceEvent | None:
        if ev.i == 1 and ev.text == "skip":
            return None
        if ev.i == 1 and (ev.text == "fail" or ev.text == "flaky" and ctx.attempt == 1):
            raise WeftError("part 1 fails", code="part")
        return PieceEvent(i=ev.i * 10)

    # Gives a piece in the place of one that failed.
    @catch_error(for_steps=["part"])
    async def mend(self, ev: StepFailedEvent) -> PieceEvent:
        return PieceEvent(i=-ev.attempts)

    @step
    async def gather(self, pieces: list[PieceEvent]) -> StopEvent:
        return StopEvent(result=sorted(p.i for p in pieces))

    @step
    async def row(self, ev: RowEvent) -> list[CellEvent]:
        return [CellEvent(v=ev.row * ev.n + i) for i in range(ev.n)]

    @step
    async def cells(self, cells: list[CellEvent]) -> SumEvent:
        return SumEvent(sum=sum(c.v for c in cells))

    @step
    async def total(self, rows: list[SumEvent]) -> StopEvent:
        return StopEvent(result=[len(rows), sum(r.sum for r in rows)])

    @step
    async def hand(self, cards: Annotated[list[CardEvent], Collect(Take(2))]) -> StopEvent:
        return StopEvent(result=len(cards))

    @step
    async def sky(self, sun: SunEvent, moon: MoonEvent) -> StopEvent:
        return StopEvent(result=[sun.n, moon.text])
