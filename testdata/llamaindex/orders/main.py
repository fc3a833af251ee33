from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Optional

from weft import BaseModel, Field
from weft import Context, Workflow, step
from weft.events import Event, StartEvent, StopEvent
from weft.resource import Resource
from weft.retry_policy import ConstantDelayRetryPolicy


class Status(str, Enum):
    NEW = "new"
    PAID = "paid"


class Line(BaseModel):
    sku: str
    qty: int = Field(gt=0)
    price: Decimal


class Order(BaseModel):
    id: int
    lines: list[Line]
    status: Status = Status.NEW
    placed: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Place(StartEvent):
    orders: list[Order]
    rush: bool = False


class Work(Event):
    order: Order
    part: int


class SlowWork(Work):
    wait: timedelta = timedelta(seconds=1)


class Done(Event):
    id: int
    total: Decimal
    lines: int


class Failed(Event):
    id: int
    why: str


class Summary(StopEvent):
    totals: dict[int, Decimal]
    failed: list[str]
    longest: Optional[Order] = None
    status: Status


class Progress(Event):
    msg: str
    done: float


class Totals(BaseModel):
    count: int = 0
    seen: list[int] = []
    by_status: dict[str, int] = {}
    last: Order | None = None


class Rates:
    def __init__(self, tax):
        self.tax = tax


def get_tax() -> Decimal:
    return Decimal("0.1")


async def get_rates(tax: Annotated[Decimal, Resource(get_tax)]) -> Rates:
    return Rates(tax)


class Shop(Workflow):
    @step
    async def split(self, ctx: Context[Totals], ev: Place) -> Work | SlowWork | None:
        await ctx.store.set("count", len(ev.orders))
        async with ctx.store.edit_state() as s:
            s.last = ev.orders[-1]
            s.by_status[ev.orders[0].status] = 1
        for i, order in enumerate(ev.orders):
            if i % 2:
                ctx.send_event(SlowWork(order=order, part=i))
            else:
                ctx.send_event(Work(order=order, part=i), step="work")
        return None

    @step(num_workers=2, retry_policy=ConstantDelayRetryPolicy(delay=0.01, maximum_attempts=3))
    async def work(self, ctx: Context[Totals], ev: Work, rates: Annotated[Rates, Resource(get_rates)]) -> Done | Failed:
        return await self.handle(ctx, ev, rates.tax)

    @step
    async def slow(self, ctx: Context[Totals], ev: SlowWork) -> Done | Failed:
        return await self.handle(ctx, ev, Decimal(0) if ev.wait == timedelta(seconds=1) else Decimal(5))

    async def handle(self, ctx, ev, tax):
        async with ctx.store.edit_state() as s:
            s.seen.append(ev.order.id)
        if not ev.order.lines:
            return Failed(id=ev.order.id, why=f"order {ev.order.id} is empty")
        total = sum((line.price * line.qty for line in ev.order.lines), Decimal(0))
        return Done(id=ev.order.id, total=total * (1 + tax), lines=len(ev.order.lines))

    @step
    async def gather(self, ctx: Context[Totals], ev: Done | Failed) -> Summary | None:
        n = await ctx.store.get("count")
        ready = ctx.collect_events(ev, [Done, Done, Failed])
        if ready is None:
            return None
        state = await ctx.store.get_state()
        ctx.write_event_to_stream(Progress(msg=f"{n} orders", done=1))
        done = [e for e in ready if isinstance(e, Done)]
        return Summary(totals={e.id: e.total for e in sorted(done, key=lambda e: e.id)}, failed=[e.why for e in ready if isinstance(e, Failed)],
                       longest=state.last, status=Status.PAID)
