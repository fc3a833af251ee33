"""Parent runs another workflow twice from one step: a child is a call."""

import weft
from weft import Context, StopEvent, Workflow, step


# Lists what to process.
class StartEvent(weft.StartEvent):
    items: list[str]


class Parent(Workflow, name="parent-py"):
    # Runs a child for each half of the items, one after the other, because the children share the session and its one list
    # of results.
    @step
    async def split(self, ctx: Context, ev: StartEvent) -> StopEvent:
        middle = len(ev.items) // 2
        results, children = [], 0
        for items in (ev.items[:middle], ev.items[middle:]):
            results += await ctx.run_workflow("accumulator", items=items, same_session=True)
            children += 1
        return StopEvent(result={"children": children, "results": results})
