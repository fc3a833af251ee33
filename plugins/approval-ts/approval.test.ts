import { expect, session, test } from "weft/test";
import { Answer, Ask } from "./main";

const yes = (role: string) => Answer({ role, approved: true });

test("both approve, twice in a session", async () => {
  const mine = session();
  for (const calls of [1, 2]) {
    const got = await mine.run({ item: "a desk" }, { answers: [yes("manager"), yes("finance")] });
    expect(got).toEqual({ approved: true, by: ["manager", "finance"], calls });
  }
});

test("finance refuses a yacht", async () => {
  const asked: string[] = [];
  const got = await session().run({ item: "a yacht" }, {
    answers: async (question) => {
      expect(Ask.is(question)).toBe(true);
      asked.push(question.prefix);
      const role = question.prefix.startsWith("finance") ? "finance" : "manager";
      return Answer({ role, approved: role === "manager" || !question.prefix.includes("yacht") });
    },
  });
  expect(got.approved).toBe(false);
  expect(asked).toEqual(["manager, approve a yacht?", "finance, approve a yacht?"]);
});

test("a question without an answer fails the test", async () => {
  const run = session().run({ item: "a desk" }, { answers: [yes("manager")] });
  await expect(run).rejects.toThrow('the run asks InputRequiredEvent {"prefix":"finance, approve a desk?"}, and has no answer');
});

test("an answer that does not fit, and then a run that goes well", async () => {
  const wrong = { ...yes("manager"), approved: "perhaps" } as any;
  await expect(session().run({ item: "a desk" }, { answers: [wrong] })).rejects.toThrow("approved");
  const got = await session().run({ item: "a chair" }, { answers: (q) => yes(q.prefix.split(",")[0]) });
  expect(got.approved).toBe(true);
});
