import assert from "node:assert/strict";
import { test } from "node:test";
import { noCost, noUsage, type store } from "@parley/contracts";
import { claimOfStarted } from "../src/session/refresh-view.ts";

/** A turn whose message has the position 5 in its session. */
const started: store.StartedTurn = {
  epoch: 3,
  turn: {
    turnId: "t",
    sessionId: "s",
    sessionKey: "main",
    replyTo: null,
    alsoTo: [],
    inboxIds: ["i"],
    trust: "owner",
    root: { turnId: "t", trust: "owner", replyTo: null, sessionKey: "main", approvals: "sender" },
    parent: null,
    usage: noUsage,
    cost: noCost,
    treeCost: noCost,
    trace: null,
    attempt: 1,
    nextStep: 1,
    modelSteps: 0,
    openSteps: [],
    cancelRequested: false,
    startedAt: "2026-01-01T00:00:00.000Z",
    waitedMs: 0,
  },
  session: { view: null, overrides: {}, profile: null, parentId: null, depth: 0, prefixHash: null },
  message: { seq: 5, turnId: "t", role: "user", parts: [], model: null, createdAt: "2026-01-01T00:00:00.000Z" },
};

test("needs no history when the view ends before the message", () => {
  const claim = claimOfStarted(started, 3, { seq: 4 });
  assert.equal(claim?.gap, false);
  assert.deepEqual(claim.messages, [started.message]);
});

test("reports a gap when the view lacks earlier messages", () => {
  assert.equal(claimOfStarted(started, 3, { seq: 0 })?.gap, true);
  assert.equal(claimOfStarted(started, 3, { seq: 3 })?.gap, true);
});

test("is no claim when the view contains the message or a later one", () => {
  assert.equal(claimOfStarted(started, 3, { seq: 5 }), undefined);
  assert.equal(claimOfStarted(started, 3, { seq: 8 }), undefined);
});

test("is no claim when another epoch owns the turn", () => {
  assert.equal(claimOfStarted(started, 4, { seq: 4 }), undefined);
  assert.equal(claimOfStarted(started, 2, { seq: 4 }), undefined);
});
