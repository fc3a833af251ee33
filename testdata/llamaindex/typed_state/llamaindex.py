import asyncio
from typing import Literal

from pydantic import BaseModel, Field
from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent


class Item(BaseModel):
    name: str
    price: float = 1.0


class CartState(BaseModel):
    items: list[Item] = Field(default_factory=list)
    total: float = 0.0
    status: Literal["open", "closed"] = "open"


class Order(StartEvent):
    names: list[str]
    price: float = Field(default=2.5, ge=0)


class AddEvent(Event):
    item: Item
    left: list[str]


class CheckoutEvent(Event):
    pass


class CartFlow(Workflow):
    @step
    async def start(self, ctx: Context[CartState], ev: Order) -> AddEvent | CheckoutEvent:
        if not ev.names:
            return CheckoutEvent()
        return AddEvent(item=Item(name=ev.names[0], price=ev.price), left=ev.names[1:])

    @step
    async def add(self, ctx: Context[CartState], ev: AddEvent) -> AddEvent | CheckoutEvent:
        async with ctx.store.edit_state() as state:
            state.items.append(ev.item)
            state.total += ev.item.price
        if ev.left:
            return AddEvent(item=Item(name=ev.left[0]), left=ev.left[1:])
        return CheckoutEvent()

    @step
    async def checkout(self, ctx: Context[CartState], ev: CheckoutEvent) -> StopEvent:
        await ctx.store.set("status", "closed")
        state = await ctx.store.get_state()
        return StopEvent(result={"names": [i.name for i in state.items], "total": state.total, "status": state.status, "state": state.model_dump()})


async def main():
    print(await CartFlow(timeout=10).run(start_event=Order(names=["tea", "milk"])))


if __name__ == "__main__":
    asyncio.run(main())
