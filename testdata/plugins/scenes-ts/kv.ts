// All that there is to do with a resource of the kind kv.
import { codeOf } from "weft";
import type { Ctx } from "./events";

export async function keep(ctx: Ctx) {
  const shelf = ctx.kv("shelf");
  const seen: unknown[] = [];
  const see = async (f: () => Promise<unknown>) => seen.push(await f().catch(codeOf));
  let first = 0, second = 0, next = "";
  await see(async () => (await shelf.get("a/note")).version);
  await see(async () => (first = await shelf.set("a/note", { n: 1, text: "sa\u00ef" })) > 0);
  await see(async () => (second = await shelf.setIf("a/note", first, { n: 2, text: "again" })) > first);
  await see(() => shelf.setIf("a/note", first, {}));
  await see(() => shelf.setIf("a/note", 0, {}));
  await see(async () => {
    const { value, version } = await shelf.get<{ n: number; text: string }>("a/note");
    return [version === second, value?.n, value?.text];
  });
  await see(() => shelf.increment("a/n", 5));
  await see(() => shelf.increment("a/n", -2));
  await see(() => shelf.increment("a/note", 1));
  await see(() => shelf.update<number>("a/n", (n) => (n ?? 0) + 10));
  await see(() => shelf.set("a/" + "k".repeat(511), 1));
  await see(() => shelf.set("", 1));
  await see(async () => {
    const page = await shelf.list({ prefix: "a/", limit: 1, values: true });
    next = page.next;
    return [page.items[0]?.key, page.items[0]?.value, next];
  });
  await see(async () => {
    const page = await shelf.list({ prefix: "a/", after: next });
    return [page.items[0]?.key, page.items[0]?.version === second, page.next];
  });
  await see(() => shelf.deleteIf("a/note", first));
  await see(async () => (await shelf.deleteIf("a/note", second)) ?? null);
  await see(() => shelf.delete("a/n"));
  await see(() => shelf.delete("a/n"));
  return seen;
}

// tally counts twice under keys that all runs share.
export async function tally(ctx: Ctx, name: string) {
  const shelf = ctx.kv("shelf");
  const own = await shelf.update<number>(`own/${name}`, (n) => (n ?? 0) + 1);
  const sum = await shelf.increment("sum");
  await shelf.update<number[]>("all", (sums) => [...(sums ?? []), sum]);
  return [own, sum];
}
