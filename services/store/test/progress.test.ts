import assert from "node:assert/strict";
import { test } from "node:test";
import { withProgress } from "../src/db/progress.ts";

test("writes what work is doing every two seconds, and nothing for short work or after its end", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const lines: string[] = [];
  const write = (line: string) => lines.push(line);
  assert.equal(await withProgress(async () => "short", write), "short");
  t.mock.timers.tick(10_000);
  assert.deepEqual(lines, []);
  let done = 0;
  await withProgress(async (doing) => {
    t.mock.timers.tick(2_000);
    doing(() => `${done} of 9`);
    for (done = 1; done <= 2; done += 1) t.mock.timers.tick(2_000);
  }, write);
  t.mock.timers.tick(10_000);
  assert.deepEqual(lines, ["1 of 9", "2 of 9"]);
  await assert.rejects(
    withProgress(() => Promise.reject(new Error("full")), write),
    /full/,
  );
  t.mock.timers.tick(10_000);
  assert.equal(lines.length, 2);
});
