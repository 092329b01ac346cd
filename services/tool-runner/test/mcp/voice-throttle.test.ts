// Throttling of hints, and recognition of notifications.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { newsIn } from "../../src/mcp/voice-push.ts";
import { afterSaying, dueInMs, silent, throttleMs, withNews } from "../../src/mcp/voice-throttle.ts";

test("sends at most 20 hints per second and covers each announcement within 50 ms", () => {
  const session = fc.constantFrom("a", "b", null);
  fc.assert(
    fc.property(fc.array(fc.record({ afterMs: fc.nat(120), session }), { minLength: 1 }), (arrivals) => {
      let nowMs = 0;
      let throttle = silent;
      let unsaid: { atMs: number; session: string | null }[] = [];
      const saidAt: number[] = [];
      const say = (atMs: number) => {
        for (const each of unsaid) {
          assert.ok(atMs - each.atMs <= throttleMs);
          assert.ok(throttle.waiting === null || throttle.waiting === each.session);
        }
        unsaid = [];
        saidAt.push(atMs);
        throttle = afterSaying(atMs);
      };
      const sayWhatIsDueBy = (untilMs: number) => {
        const dueMs = dueInMs(throttle, nowMs);
        if (dueMs !== null && nowMs + dueMs <= untilMs) say(nowMs + dueMs);
        nowMs = Math.max(nowMs, untilMs);
      };
      for (const arrival of arrivals) {
        sayWhatIsDueBy(nowMs + arrival.afterMs);
        throttle = withNews(throttle, arrival.session);
        unsaid.push({ atMs: nowMs, session: arrival.session });
        if (dueInMs(throttle, nowMs) === 0) say(nowMs);
      }
      sayWhatIsDueBy(nowMs + throttleMs);
      assert.deepEqual(unsaid, []);
      assert.equal(dueInMs(throttle, nowMs), null);
      for (const [index, atMs] of saidAt.entries()) {
        const before = saidAt[index - 1];
        assert.ok(before === undefined || atMs - before >= throttleMs);
      }
    }),
  );
});

test("recognises the configured notification and resource updates", () => {
  const notify = "notifications/stt/updated";
  assert.deepEqual(newsIn({ method: notify, params: { session_id: "s1" } }, notify), { session: "s1" });
  assert.deepEqual(newsIn({ method: notify, params: { session_id: 7 } }, notify), { session: "7" });
  for (const params of [
    undefined,
    {},
    { session_id: "" },
    { session_id: { evil: true } },
    { session_id: "s".repeat(501) },
  ])
    assert.deepEqual(newsIn({ method: notify, ...(params === undefined ? {} : { params }) }, notify), {
      session: null,
    });
  const updated = "notifications/resources/updated";
  assert.deepEqual(newsIn({ method: updated, params: { uri: "stt://s1" } }, undefined), { uri: "stt://s1" });
  for (const uri of [undefined, 7, "u".repeat(2_001)])
    assert.equal(newsIn({ method: updated, params: { uri } }, notify), undefined);
  assert.equal(newsIn({ method: "notifications/message", params: { session_id: "s1" } }, notify), undefined);
  assert.equal(newsIn({ method: notify }, undefined), undefined);
});
