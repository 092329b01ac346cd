// When a voice server is polled: by timer or on its notifications.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { VoiceSession } from "@parley/contracts";
import fc from "fast-check";
import { hasBegun } from "../../src/voice/poll-utterances.ts";
import { concerns, firstPace, gapMs, paceAfter, steadyMs, type Pace } from "../../src/voice/pace.ts";
import { Pacer } from "../../src/voice/pacer.ts";

const settings = { poll_ms: 500, push_poll_ms: 5_000 };
const question = fc.record({ announced: fc.boolean(), found: fc.boolean() });
const after = (questions: { announced: boolean; found: boolean }[]) => questions.reduce<Pace>(paceAfter, firstPace);

test("polls less often by timer exactly while a notification led to the last new events", () => {
  fc.assert(
    fc.property(fc.array(question), (questions) => {
      const last = questions.findLast(({ found }) => found);
      assert.equal(steadyMs(after(questions), settings), last?.announced === true ? 5_000 : 500);
    }),
  );
});

test("never polls by timer more often than configured, for any notifications", () => {
  assert.equal(steadyMs({ ...firstPace, pushed: true }, { poll_ms: 2_000, push_poll_ms: 100 }), 2_000);
});

test("polls on notifications at most 20 times a second, and less often when they bring nothing", () => {
  fc.assert(
    fc.property(fc.array(question), fc.integer({ min: 50, max: 60_000 }), (questions, pollMs) => {
      const pace = { ...settings, poll_ms: pollMs };
      const ms = gapMs(after(questions), pace);
      assert.ok(ms >= 50 && ms <= Math.min(500, pollMs), `${ms} ms`);
      const vain = Array.from({ length: 5 }, () => ({ announced: true, found: false }));
      assert.equal(gapMs(after([...questions, ...vain]), pace), Math.min(500, pollMs));
      assert.equal(gapMs(after([...questions, ...vain, { announced: true, found: true }]), pace), 50);
    }),
  );
});

test("matches a notification by server, tool-runner and session", () => {
  const voice: VoiceSession = {
    voiceId: "v",
    route: "r",
    sessionId: null,
    source: "microphone",
    state: "listening",
    sender: {
      channel: "telegram",
      account: "main",
      conversation: "42",
      contact: { id: "42" },
      role: "owner",
      origin: "user",
      direct: true,
    },
    replyTo: null,
    claimed: true,
    server: "speech",
    sttSessionId: "s1",
    runner: "a",
    sinceSeq: 0,
    utterances: 0,
    problem: null,
    startedAt: "2026-01-01T00:00:00.000Z",
    changedAt: "2026-01-01T00:00:00.000Z",
  };
  assert.ok(hasBegun(voice));
  const news = { runner: "a", server: "speech", sttSessionId: "s1" };
  assert.ok(concerns(news, voice));
  assert.ok(concerns({ ...news, sttSessionId: null }, voice), "a notification without a session concerns all sessions");
  assert.ok(concerns({ ...news, runner: "b" }, { ...voice, runner: null }), "any tool-runner reaches the server");
  assert.ok(!concerns({ ...news, runner: "b" }, voice), "a local server of another tool-runner is a different server");
  assert.ok(!concerns({ ...news, server: "other" }, voice));
  assert.ok(!concerns({ ...news, sttSessionId: "s2" }, voice));
});

const never = { poll_ms: 60_000, push_poll_ms: 60_000 };
/** A timeout shorter than the poll interval. */
const soon = { timeout: 20_000 };
const open = new AbortController().signal;

test("polls again once after any number of notifications during a poll", soon, async () => {
  const pacer = new Pacer(never);
  assert.equal(pacer.asks(), null);
  for (let n = 0; n < 1_000; n++) pacer.hint(`runner-${n}`);
  await pacer.next(open);
  assert.equal(pacer.asks(), "runner-999", "polled through the tool-runner that sent the last notification");
  const over = new AbortController();
  const next = pacer.next(over.signal).then(() => "asked");
  assert.equal(await Promise.race([next, new Promise((resolve) => setImmediate(resolve, "waits"))]), "waits");
  over.abort();
  await next;
});

test("ends the wait on a notification and polls the server", soon, async () => {
  const pacer = new Pacer(never);
  pacer.asks();
  const next = pacer.next(open);
  pacer.hint("a");
  await next;
  assert.equal(pacer.asks(), "a");
  pacer.found();
  assert.equal(pacer.pushed, false, "known only when the poll ends");
  const over = new AbortController();
  over.abort();
  await pacer.next(over.signal);
  assert.equal(pacer.pushed, true);
  assert.equal(pacer.asks(), null);
  pacer.found();
  await pacer.next(over.signal);
  assert.equal(pacer.pushed, false, "new events without a notification mean that notifications are ineffective");
});
