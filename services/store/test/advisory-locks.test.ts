import assert from "node:assert/strict";
import { test } from "node:test";
import { advisoryLocks } from "../src/db/advisory-locks.ts";

test("every advisory lock has a number of its own", () => {
  const numbers = Object.values(advisoryLocks);
  assert.equal(new Set(numbers).size, numbers.length);
});
