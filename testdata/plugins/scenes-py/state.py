"""What steps do with the state."""

from weft import WeftError, code_of


class Notes(list):
    """What calls gave: their values, or the codes of their errors."""

    async def add(self, call, show=lambda v: v):
        try:
            self.append(show(await call))
        except Exception as e:
            self.append(code_of(e))


async def edits(ctx):
    """Makes each kind of edit, well and badly, alone and in batches."""
    n, s = Notes(), ctx.store
    await n.add(s.set("m.a.b", 1))
    await n.add(s.set("log.7", "x"))
    await n.add(s.set("count", "many"))  # the schema wants a number
    await n.add(s.append("log", "one"))
    await n.add(s.append("m.list", [None, True, 1.5]))
    await n.add(s.append("count", "x"))
    await n.add(s.increment("count", 5))
    await n.add(s.increment("m.a", 1))
    await n.add(s.increment("m.rate", 0.5))
    await n.add(s.merge("m", {"a": {"c": "ä"}}))
    await n.add(s.test("m.a.c", "ä"))
    await n.add(s.test("m.a.c", "other"))
    await n.add(s.delete("m.list.-1"))
    await n.add(s.delete("m.list.-1"))
    await n.add(s.batch().test("count", 5).set("m.a", 7).increment("count", -6).append("log", "two").delete("m.rate").merge("m", {"z": 1})
                .increment("m.f", 0.25).do())
    await n.add(s.batch().set("m.a", 100).test("count", 0).do())
    n.append(None)
    n.append((await s.get("")).model_dump() | {"m": await s.get("m")})
    await n.add(s.clear())
    n.append(await s.get_state())
    return n


async def regions(ctx):
    """Edits as if alone, and gives edits up."""
    n, s = Notes(), ctx.store

    async def first():
        async with s.edit_state() as state:
            state.count, state.log = 3, [*state.log, "kept"]
            await n.add(s.set("count", 9))  # only reads are allowed here
            await n.add(s.get("count"), lambda v: None)
            n.append(await s.get("count"))  # what is committed

    async def second():
        async with s.edit_state() as state:
            state.count = 100
            raise RuntimeError("given up")

    async def at(path):
        async with s.edit_at(path) as log:
            log.append("at a path")

    await n.add(first())
    await n.add(second())
    await n.add(at("log"))
    await n.add(at("nothing"))
    n.append(await s.get_state())
    return n


async def read(ctx):
    """Asks for what is not the state's."""
    n = Notes()
    await n.add(ctx.store.get("nothing.at.all"))
    for path, default in (("nothing", [1]), ("count", 9)):
        n.append(None)
        n.append(await ctx.store.get(path, default=default))
    await n.add(ctx.random(16), len)
    await n.add(ctx.random(5000))
    run = ctx.run
    n += [run.attempt, run.invocation, run.tenant, run.last_error is None, await ctx.now() >= run.started]
    n += [None, ctx.config.get("model", "none")]
    return n


class Wrapped(Exception):
    """An exception around another."""


async def fail(ctx, how):
    """Fails in the ways in which code does."""
    await ctx.store.increment("count")  # it stands
    if how == "map":
        return {}[how]
    if how == "index":
        return [][len(how)]
    if how == "zero":
        raise ZeroDivisionError("divide by zero")
    if how == "wrapped":
        raise Wrapped("around") from WeftError("the cause", code="inside")
    raise AssertionError("boom")


