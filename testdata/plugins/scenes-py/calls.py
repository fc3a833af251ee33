"""The calls that may take long."""

import kv
import state
from events import HumanResponseEvent, InputRequiredEvent, ShownEvent, StartEvent, TickEvent
from weft import WeftError, code_of


async def call(ctx, ev):
    what, n, text = ev.what, ev.n, ev.text
    if what == "approve":
        return await approve(ctx, text)
    if what == "ticks":
        return await ticks(ctx, n)
    if what == "assume":
        return (await ctx.wait_for_event(HumanResponseEvent, requirements={"role": "manager"}, timeout=None)).approved
    if what == "named":
        return await ticks(ctx, n, waiter_id="tick")
    if what == "patience":
        try:
            await ctx.wait_for_event(TickEvent, timeout=n / 1e9)
        except TimeoutError as e:
            return code_of(e)
        return ""
    if what == "nap":
        before = await ctx.now()
        await ctx.sleep(n / 1e9)
        return (await ctx.now() - before).total_seconds() >= n / 1e9
    if what == "once":
        return await once(ctx)
    if what == "children":
        return await children(ctx)
    if what == "fetch":
        answer = await ctx.http("web").request("POST", text, query={"q": "a b"}, headers={"X-Scene": "fetch"}, body=b"tea", expect_success=n > 0)
        return [answer.status, answer.header("X-Answer"), answer.text]
    if what == "keep":
        return await kv.keep(ctx)
    if what == "tally":
        return await kv.tally(ctx, text)
    if what in ("edits", "regions", "read"):
        return await getattr(state, what)(ctx)
    if what == "print":
        for log in (ctx.debug, ctx.info, ctx.warning, ctx.error):
            log(text)
        ctx.info(text, n=n, list=[1, 2])
        return ctx.write_event_to_stream(ShownEvent(text=f"{text}{n}"))
    if what == "panic":
        return await state.fail(ctx, text)
    if what == "count":
        return await ctx.store.increment("count", n)
    if what == "show":
        return ctx.write_event_to_stream(ShownEvent(text=text))
    if what == "flaky":
        if ctx.attempt <= n:
            raise WeftError(f"{text} at attempt {ctx.attempt}", code="flaky")
        return ctx.attempt
    raise WeftError(text, code="asked")


async def approve(ctx, text):
    """Asks people one after the other."""
    asked = await ctx.store.increment("count")  # once, however often the step waits
    approved = True
    for role in ("manager", "finance"):
        ask = InputRequiredEvent(prefix=f"{role}, approve {text}?")
        answer = await ctx.wait_for_event(HumanResponseEvent, waiter_id=role, waiter_event=ask, requirements={"role": role}, timeout=None)
        approved = approved and answer.approved
    return [approved, asked]


async def ticks(ctx, n, **options):
    return [(await ctx.wait_for_event(TickEvent, timeout=None, **options)).n for _ in range(n)]


async def once(ctx):
    """Begins a child, fails, and has the child's result at its next attempt."""
    count = await ctx.run_workflow(ctx.run.workflow, {"what": "count", "n": 5}, same_session=True, id="first")
    if ctx.attempt < 3:
        raise WeftError("after the child", code="flaky")
    return [count, ctx.attempt]


async def children(ctx):
    """Runs children of all sorts."""
    workflow = ctx.run.workflow
    found = []
    for options in ({}, {}, {"same_session": True}, {"same_session": True}, {"session": ctx.run_id}):
        found.append(await ctx.run_workflow(workflow, StartEvent(what="count", n=1), **options))
    for options in ({}, {"stream": True}):
        await ctx.run_workflow(workflow, StartEvent(what="show", text="shown by a child"), **options)
    for name, start in ((workflow, StartEvent(what="fail", text="by a child")), ("nobody", None), (workflow, None)):
        try:
            await ctx.run_workflow(name, start)
        except WeftError as e:
            found.append(e.code)
    return found
