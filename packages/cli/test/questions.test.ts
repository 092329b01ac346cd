import assert from "node:assert/strict";
import { test } from "node:test";

import { Questions } from "../src/chat/prompt.ts";
import type { Piece } from "../src/chat/transcript.ts";

const asked = (approvalId: string): Piece => ({
  type: "question",
  approvalId,
  tool: "exec",
  summary: "rm x",
  reason: "high risk",
  expiresAt: "",
});

test("answers the oldest question with y, a or n, and sends any other text as a message", () => {
  const questions = new Questions();
  assert.equal(questions.commandFor("y"), null);
  questions.shown(asked("A1"));
  questions.shown(asked("B2"));
  questions.shown(asked("A1"));
  assert.equal(questions.commandFor("yes please"), null);
  assert.equal(questions.commandFor("constructor"), null);
  assert.equal(questions.commandFor(" Y ")?.command, "/approve A1");
  assert.equal(questions.commandFor("always")?.command, "/approve A1 always");
  questions.settled("A1");
  assert.equal(questions.commandFor("n")?.command, "/deny B2");
  assert.equal(questions.commandFor("no, use the copy\ninstead")?.command, "/deny B2 use the copy\ninstead");
  assert.equal(questions.commandFor("nothing else"), null);
});

test("removes a question that another person has answered", () => {
  const questions = new Questions();
  questions.shown(asked("A1"));
  questions.shown({ type: "answered", approvalId: "A1", tool: "exec", allowed: true, by: "owner (telegram)" });
  assert.equal(questions.first, null);
});

test("reports a plain approval or denial of an open question by its event", () => {
  const questions = new Questions();
  questions.shown(asked("A1"));
  assert.equal(questions.isTold("/approve a1"), true);
  assert.equal(questions.isTold("/deny A1"), true);
  assert.equal(questions.isTold("/deny A1 not now"), true);
  assert.equal(questions.isTold("/approve A1 always"), false);
  assert.equal(questions.isTold("/approve B2"), false);
  assert.equal(questions.isTold("/approvals"), false);
});
