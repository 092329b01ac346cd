import assert from "node:assert/strict";
import { test } from "node:test";
import { recent, recentChanged } from "../src/chat/recent-state.ts";

test("the list of sessions is loaded again when it changes while it is being loaded", async (t) => {
  const replies: ((titles: readonly string[]) => void)[] = [];
  t.mock.method(globalThis, "fetch", () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    replies.push((titles) => resolve(Response.json({ sessions: titles.map((title) => ({ title })) })));
    return promise;
  });
  const loaded = async (title: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const unsubscribe = recent.subscribe((rows) => {
      if (rows[0]?.title === title) resolve();
    });
    await promise;
    unsubscribe();
  };
  recentChanged();
  recentChanged();
  recentChanged();
  assert.equal(replies.length, 1);
  replies[0]?.(["old"]);
  await loaded("old");
  await new Promise(setImmediate);
  assert.equal(replies.length, 2);
  replies[1]?.(["new"]);
  await loaded("new");
  await new Promise(setImmediate);
  assert.equal(replies.length, 2);
});
