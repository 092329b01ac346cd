import assert from "node:assert/strict";
import { test } from "node:test";
import { orderProblems } from "./order.ts";

const stored = ["a 1", "a 2", "a 3", "a 4"].map((text, at) => ({ text, session: at < 2 ? "old" : "new" }));
const expected = stored.map(({ text }) => text);

test("accepts answers of a new session between those of the one before", () => {
  assert.deepEqual(orderProblems(expected, stored, ["a 3", "a 1", "a 4", "a 2"]), []);
});

test("reports answers out of order when they belong to one session", () => {
  assert.deepEqual(orderProblems(expected, stored, ["a 2", "a 1", "a 3", "a 4"]), [
    "answers out of order in one session: a 2, a 1",
  ]);
});

test("reports messages that joined a session again when /new had left it", () => {
  const returned = stored.map(({ text }, at) => ({ text, session: at === 1 ? "new" : "old" }));
  assert.deepEqual(orderProblems(expected, returned, expected), ["messages in a session that was left: old, new, old"]);
});
