import assert from "node:assert/strict";
import { test } from "node:test";

import { note, noteIfSlow, processIo, wrapWords } from "../src/io/io.ts";

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

test("breaks a note between words on a terminal, and never where the output is none", () => {
  const step = "  2. Add the bot to the group and list the group's id: it is a negative number";
  const written = (stream: object) => {
    let text = "";
    const stderr = { ...stream, write: (part: string) => (text += part) } as unknown as NodeJS.WriteStream;
    note({ ...processIo(), stderr }, step);
    return text;
  };
  assert.equal(
    written({ isTTY: true, columns: 40 }),
    "  2. Add the bot to the group and list\n  the group's id: it is a negative\n  number\n",
  );
  assert.equal(written({}), `${step}\n`);
});

test("keeps lines that fit and words that are too long, and does not count colours", () => {
  assert.equal(wrapWords("a  table   stays\nso does this", 20), "a  table   stays\nso does this");
  assert.equal(wrapWords("see https://example.org/a/long/path now", 12), "see\nhttps://example.org/a/long/path\nnow");
  assert.equal(wrapWords("\u001B[31mred red\u001B[39m", 7), "\u001B[31mred red\u001B[39m");
});
