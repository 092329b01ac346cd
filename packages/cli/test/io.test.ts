import assert from "node:assert/strict";
import { test } from "node:test";

import { noteIfSlow, processIo } from "../src/io/io.ts";

test("writes a note about work that takes longer than a second, and none about faster work", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let notes = "";
  const stderr = { write: (text: string) => (notes += text) } as unknown as NodeJS.WriteStream;
  const io = { ...processIo(), stderr };
  assert.equal(await noteIfSlow(io, "slow", Promise.resolve("fast")), "fast");
  t.mock.timers.tick(5_000);
  assert.equal(notes, "");
  const { promise, resolve } = Promise.withResolvers<string>();
  const shown = noteIfSlow(io, "it takes a while", promise);
  t.mock.timers.tick(1_001);
  resolve("done");
  assert.equal(await shown, "done");
  assert.equal(notes, "it takes a while\n");
});
