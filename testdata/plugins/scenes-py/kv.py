"""Values that all runs share."""

from weft import WeftError


async def keep(ctx):
    """Does all that there is to do with a resource of the kind kv."""
    shelf = ctx.kv("shelf")
    seen = []

    async def see(call, show=lambda v: v):
        try:
            value = await call
            seen.append(show(value))
            return value
        except WeftError as e:
            seen.append(e.code)

    await see(shelf.get("a/note"), lambda v: v[1])
    first = await see(shelf.set("a/note", {"n": 1, "text": "saï"}), lambda v: v > 0)
    second = await see(shelf.set_if("a/note", first, {"n": 2, "text": "again"}), lambda v: v > first)
    await see(shelf.set_if("a/note", first, {"n": 0, "text": ""}))
    await see(shelf.set_if("a/note", 0, {"n": 0, "text": ""}))
    await see(shelf.get("a/note"), lambda v: [v[1] == second, v[0]["n"], v[0]["text"]])
    await see(shelf.increment("a/n", 5))
    await see(shelf.increment("a/n", -2))
    await see(shelf.increment("a/note", 1))
    await see(shelf.update("a/n", lambda n: n + 10))
    await see(shelf.set("a/" + "k" * 511, 1))
    await see(shelf.set("", 1))
    items, after = await shelf.list(prefix="a/", limit=1, values=True)
    seen += [[i["key"], i["value"], after] for i in items]
    items, after = await shelf.list(prefix="a/", after=after)
    seen += [[i["key"], i["version"] == second, after] for i in items]
    await see(shelf.delete_if("a/note", first))
    await see(shelf.delete_if("a/note", second))
    await see(shelf.delete("a/n"))
    await see(shelf.delete("a/n"))
    return seen


async def tally(ctx, name):
    """Counts under keys that all runs share."""
    shelf = ctx.kv("shelf")
    own = await shelf.update("own/" + name, lambda n: (n or 0) + 1)
    total = await shelf.increment("sum", 1)
    await shelf.update("all", lambda sums: [*(sums or []), total])
    return [own, total]
