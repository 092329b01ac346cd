import assert from "node:assert/strict";
import { test } from "node:test";

import { throttle } from "@parley/kit";

test("throttle passes the first value on immediately and the newest one per interval", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const passed: number[] = [];
  const values = throttle<number>(50, (value) => passed.push(value));
  for (const value of [1, 2, 3]) values.push(value);
  assert.deepEqual(passed, [1]);
  context.mock.timers.tick(50);
  assert.deepEqual(passed, [1, 3]);
  values.push(4);
  assert.deepEqual(passed, [1, 3]);
  context.mock.timers.tick(50);
  assert.deepEqual(passed, [1, 3, 4]);
  context.mock.timers.tick(50);
  values.push(5);
  values.push(6);
  values.close();
  context.mock.timers.tick(100);
  assert.deepEqual(passed, [1, 3, 4, 5]);
});
