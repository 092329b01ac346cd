// When a server that listens is asked again: by the clock, or because it says that it has something.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { VoiceSession } from "@parley/contracts";
import fc from "fast-check";
import { hasBegun } from "../../src/voice/listener.ts";
import { concerns, firstPace, gapMs, paceAfter, steadyMs, type Pace } from "../../src/voice/pace.ts";
import { Pacer } from "../../src/voice/pacer.ts";

const settings = { poll_ms: 500, push_poll_ms: 5_000 };
const question = fc.record({ announced: fc.boolean(), found: fc.boolean() });
const after = (questions: { announced: boolean; found: boolean }[]) => questions.reduce<Pace>(paceAfter, firstPace);

test("a server is asked more seldom by the clock exactly while the last news were announced", () => {
  fc.assert(
    fc.property(fc.array(question), (questions) => {
      const last = questions.findLast(({ found }) => found);
      assert.equal(steadyMs(after(questions), settings), last?.announced === true ? 5_000 : 500);
    }),
  );
});

test("a server is never asked by the clock more often than the settings say, whatever it announces", () => {
  assert.equal(steadyMs({ ...firstPace, pushed: true }, { poll_ms: 2_000, push_poll_ms: 100 }), 2_000);
});

test("announcements are followed at most 20 times a second, and those behind which there is nothing no more often than by the clock", () => {
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

test("news are about the sessions of that server, on that tool-runner, that are meant", () => {
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
  assert.ok(concerns({ ...news, sttSessionId: null }, voice), "any session is meant");
  assert.ok(concerns({ ...news, runner: "b" }, { ...voice, runner: null }), "any tool-runner reaches the server");
  assert.ok(!concerns({ ...news, runner: "b" }, voice), "the program of another tool-runner is another server");
  assert.ok(!concerns({ ...news, server: "other" }, voice));
  assert.ok(!concerns({ ...news, sttSessionId: "s2" }, voice));
});

const never = { poll_ms: 60_000, push_poll_ms: 60_000 };
/** Less than the clock needs. */
const soon = { timeout: 20_000 };
const open = new AbortController().signal;

test("what is announced while a question runs is one more question, however often it is announced", soon, async () => {
  const pacer = new Pacer(never);
  assert.equal(pacer.asks(), null);
  for (let n = 0; n < 1_000; n++) pacer.hint(`runner-${n}`);
  await pacer.next(open);
  assert.equal(pacer.asks(), "runner-999", "asked through the one that has just reached it");
  const over = new AbortController();
  const next = pacer.next(over.signal).then(() => "asked");
  assert.equal(await Promise.race([next, new Promise((resolve) => setImmediate(resolve, "waits"))]), "waits");
  over.abort();
  await next;
});

test("what is announced while it waits ends the wait, and is what the server is asked for", soon, async () => {
  const pacer = new Pacer(never);
  pacer.asks();
  const next = pacer.next(open);
  pacer.hint("a");
  await next;
  assert.equal(pacer.asks(), "a");
  pacer.found();
  assert.equal(pacer.pushed, false, "known when the question is over");
  const over = new AbortController();
  over.abort();
  await pacer.next(over.signal);
  assert.equal(pacer.pushed, true);
  assert.equal(pacer.asks(), null);
  pacer.found();
  await pacer.next(over.signal);
  assert.equal(pacer.pushed, false, "news that came without a word are what a server that says nothing has");
});
