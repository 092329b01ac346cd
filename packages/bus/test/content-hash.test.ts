import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { contentHash, hashedAtOnceBytes } from "../src/content-hash.ts";

test("contentHash lets other work run between the parts of large content", async () => {
  const parts = 20;
  const content = randomBytes(parts * hashedAtOnceBytes - 1);
  let isOver = false;
  let turns = 0;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const hash = await contentHash(content);
  isOver = true;
  assert.equal(hash, createHash("sha256").update(content).digest("hex"));
  assert.ok(turns >= parts - 1, `${turns} turns of the event loop`);
});

test("contentHash of nothing is the hash of nothing", async () => {
  assert.equal(await contentHash(new Uint8Array()), createHash("sha256").digest("hex"));
});
