import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, ViewRecord } from "@parley/contracts";
import { applyRecord, emptyView, appendMessages, prepend, reset, Views } from "../../src/session/view.ts";
import { text } from "./support.ts";

const said = (seq: number): Message => ({
  seq,
  role: "user",
  turnId: "t",
  parts: [text("12345")],
  model: null,
  createdAt: "",
});
const record = (more: Partial<ViewRecord>): ViewRecord => ({
  version: 1,
  keepFirstTo: 0,
  fromSeq: 0,
  summary: null,
  lastRequest: null,
  clearedBefore: 0,
  trigger: "demand",
  strategy: "trim",
  ...more,
});

test("adds each message once and never moves its position back", () => {
  const view = emptyView();
  appendMessages(view, [said(3)], 3);
  appendMessages(view, [said(3), said(2)], 2);
  assert.deepEqual([view.messages.map(({ seq }) => seq), view.seq, view.chars], [[3], 3, 5]);
});

test("releases messages that a record omits and resets the sent fingerprints", () => {
  const view = emptyView();
  appendMessages(view, [1, 2, 3, 4].map(said), 4);
  view.sent = ["x"];
  applyRecord(view, record({ keepFirstTo: 1, fromSeq: 4 }));
  assert.deepEqual([view.messages.map(({ seq }) => seq), view.chars, view.sent], [[1, 4], 10, []]);
});

test("adds older messages at the front and empties a view with a gap", () => {
  const view = emptyView();
  appendMessages(view, [said(5)], 5);
  prepend(view, [said(3), said(4)]);
  assert.deepEqual([view.messages.map(({ seq }) => seq), view.chars], [[3, 4, 5], 15]);
  reset(view);
  assert.deepEqual([view.messages, view.chars, view.seq], [[], 0, 5]);
});

test("keeps the views of the most recently used sessions", () => {
  const views = new Views(2);
  const first = views.of("a");
  views.of("b");
  assert.equal(views.of("a"), first);
  views.of("c");
  assert.deepEqual(
    views.entries().map(([id]) => id),
    ["a", "c"],
  );
  views.forget("a");
  assert.notEqual(views.of("a"), first);
});
