// The three other projections: a client reconstructs the texts of a turn from each of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionEvent } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { SimpleEvents } from "../src/simple-events.ts";
import type { OutputRule } from "../src/visible-text.ts";
import { StreamFrames } from "../src/stream-frames.ts";
import { histories } from "./histories.ts";

const finalText: OutputRule = { mode: "final_text", unspoken: "reprompt" };
const messageTool: OutputRule = { mode: "message_tool", unspoken: "reprompt" };
const bare = (text: string) => text.replace(/\s/g, "");

// design: 001.1
test("simple events end with one done or error, and each call has at most one later result", () => {
  fc.assert(
    fc.property(histories, fc.constantFrom(finalText, messageTool), ({ events, exitReason }, rule) => {
      const view = new SimpleEvents(rule);
      const told = [...events, ...events].flatMap((event) => view.event(event));
      const ends = told.flatMap(({ type }, at) => (type === "done" || type === "error" ? [at] : []));
      assert.deepEqual(ends, [told.length - 1]);
      assert.equal(told.at(-1)?.type, exitReason === "error" ? "error" : "done");
      const calls = new Set<string>();
      const results = new Set<string>();
      for (const each of told) {
        if (each.type === "tool_call") calls.add(each.data.id);
        if (each.type !== "tool_result") continue;
        assert.ok(calls.has(each.data.id) && !results.has(each.data.id));
        results.add(each.data.id);
      }
    }),
    { numRuns: propertyRuns(3_000) },
  );
});

test("ends the tokens of final_text with the answer when events are lost", () => {
  fc.assert(
    fc.property(histories, ({ events, exitReason, answer }) => {
      fc.pre(exitReason !== "error");
      const view = new SimpleEvents(finalText);
      const text = events.flatMap((event) => view.event(event).flatMap((e) => (e.type === "token" ? [e.data] : [])));
      assert.ok(bare(text.join("")).endsWith(bare(answer)), text.join(""));
    }),
    { numRuns: propertyRuns(3_000) },
  );
});

test("shows only the texts of the message tool in the mode message_tool", () => {
  const view = new SimpleEvents(messageTool);
  const turn = { turnId: "t" };
  const at = { seq: 1, ...turn, model: "m", createdAt: "" };
  const call = { type: "tool_call" as const, id: "c", name: "message", input: '{"text":"on my way"}' };
  const elsewhere = { ...call, id: "d", input: '{"text":"hi","to":"irc:default:x"}' };
  const told = [
    view.event({ type: "text.delta", ...turn, step: 1, attempt: 1, text: "thinking aloud" }),
    view.event({ type: "message", seq: 1, message: { ...at, role: "assistant", parts: [call, elsewhere] } }),
    view.event({
      type: "tool.finished",
      ...turn,
      callId: "c",
      tool: "message",
      isError: false,
      content: "sent",
      durationMs: 1,
    }),
    view.event({
      type: "tool.finished",
      ...turn,
      callId: "d",
      tool: "message",
      isError: false,
      content: "sent",
      durationMs: 1,
    }),
    view.event({
      type: "turn.finished",
      ...turn,
      seq: 2,
      state: "done",
      exitReason: "end_turn",
      text: "done thinking",
      usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
      cost: { micros: 0, unpricedCalls: 0 },
    }),
  ].flat();
  assert.deepEqual(
    told.flatMap((each) => (each.type === "token" ? [each.data] : [])),
    ["on my way"],
  );
});

// design: 002.36
test("stream frames start and end each stream once, with all chunks in between", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      const view = new StreamFrames();
      const open = new Set<string>();
      const seen = new Set<string>();
      for (const frame of events.flatMap((event) => view.event(event))) {
        if (frame.type === "stream_start") {
          assert.ok(!seen.has(frame.msg_id));
          assert.equal(open.size, 0);
          seen.add(frame.msg_id);
          open.add(frame.msg_id);
        }
        if (frame.type === "stream_chunk") assert.ok(open.has(frame.msg_id));
        if (frame.type === "stream_end") assert.ok(open.delete(frame.msg_id));
      }
      assert.equal(open.size, 0);
    }),
    { numRuns: propertyRuns(3_000) },
  );
});

test("stream frames show every committed text once by id when events are lost", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      const view = new StreamFrames();
      const shown = new Map<string, string>();
      const discarded = new Set<string>();
      for (const frame of events.flatMap((event) => view.event(event))) {
        if (frame.type === "stream_chunk") shown.set(frame.msg_id, (shown.get(frame.msg_id) ?? "") + frame.content);
        if (frame.type === "response") {
          assert.notEqual(shown.get(frame.msg_id), frame.content, "the response repeats its stream");
          shown.set(frame.msg_id, frame.content);
        }
        if (frame.type === "stream_end" && frame.discarded) discarded.add(frame.msg_id);
      }
      const texts = [...shown].filter(([id]) => !discarded.has(id) && !id.endsWith("-end")).map(([, text]) => text);
      const committed = new Map(
        events.flatMap((event) => {
          if (event.type !== "message" || event.message.role !== "assistant") return [];
          const text = event.message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
          return text === "" ? [] : [[event.seq, text] as const];
        }),
      );
      assert.deepEqual(texts, [...committed.values()]);
    }),
    { numRuns: propertyRuns(3_000) },
  );
});

// design: 002.36, 004.17
test("frames by call report begin and end of a turn, and calls with a preview and their duration", () => {
  const view = new StreamFrames();
  const turn = { turnId: "t" };
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const call = { ...turn, callId: "c", tool: "read" };
  const cost = { micros: 0, unpricedCalls: 0 };
  const end = { state: "done", exitReason: "end_turn", text: "", usage, cost } as const;
  const told = [
    view.event({ type: "turn.started", ...turn, inboxIds: ["i"], attempt: 1 }),
    view.event({ type: "tool.started", ...call, input: '{"path":"a"}' }),
    view.event({ type: "tool.finished", ...call, isError: false, content: "x".repeat(300), durationMs: 12 }),
    view.event({ type: "turn.finished", ...turn, seq: 2, ...end }),
  ].flat();
  const ofCall = { tool_use_id: "c", tool: "read" };
  assert.deepEqual(
    told.map((frame) => frame.type === "event" && [frame.category, frame.event, frame.data]),
    [
      ["agent", "thinking_started", { turn_id: "t", attempt: 1 }],
      ["agent", "tool_call", { ...ofCall, input: '{"path":"a"}' }],
      ["agent", "tool_result", { ...ofCall, preview: "x".repeat(200), is_error: false, duration_ms: 12 }],
      ["agent", "thinking_finished", { turn_id: "t", exit_reason: "end_turn" }],
    ],
  );
});

// design: 004.17, 004.18c
test("frames by call report the start and the end of each sub-agent once", () => {
  const view = new StreamFrames();
  const base = { model: null, createdAt: "2026-11-23T10:00:00.000Z" };
  const result = { type: "tool_result" as const, id: "c", name: "spawn", content: "found", isError: false };
  const from = {
    channel: "internal",
    account: "subagent",
    conversation: "s",
    contact: { id: "background" },
    role: "owner" as const,
    origin: "subagent" as const,
  };
  const text = { type: "text" as const, text: "[Sub-agent has finished]\n\ndone" };
  const started = { type: "subagent.started" as const, turnId: "t", profile: "reader" };
  const events: SessionEvent[] = [
    { ...started, callId: "c", sessionId: "waited", mode: "wait" },
    { ...started, callId: "d", sessionId: "background", mode: "background" },
    { type: "message", seq: 3, message: { ...base, seq: 3, turnId: "t", role: "tool", parts: [result] } },
    { type: "message", seq: 4, message: { ...base, seq: 4, turnId: "u", role: "user", parts: [text], from } },
  ];
  const told = [...events, ...events.slice(2)].flatMap((event) => view.event(event));
  assert.deepEqual(
    told.flatMap((frame) =>
      frame.type === "event" && frame.category === "subagent" ? [[frame.event, frame.data]] : [],
    ),
    [
      ["spawned", { id: "waited", profile: "reader" }],
      ["spawned", { id: "background", profile: "reader" }],
      ["completed", { id: "waited", profile: "reader" }],
      ["completed", { id: "background", profile: "reader" }],
    ],
  );
});

// design: 004.17
test("frames by call report each heartbeat when it begins, and each run of a job when its turn ends", () => {
  const view = new StreamFrames();
  const from = (origin: "heartbeat" | "cron", contact: { id: string; name: string }) => ({
    channel: "internal",
    account: origin,
    conversation: origin,
    contact,
    role: "owner" as const,
    origin,
  });
  const message = (seq: number, turnId: string, sender: ReturnType<typeof from>): SessionEvent => ({
    type: "message",
    seq,
    message: {
      seq,
      turnId,
      role: "user",
      parts: [{ type: "text", text: "due" }],
      model: null,
      createdAt: "2026-11-23T10:00:00.000Z",
      from: sender,
    },
  });
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const finished = (seq: number, turnId: string): SessionEvent => ({
    type: "turn.finished",
    seq,
    turnId,
    state: "done",
    exitReason: "end_turn",
    text: "",
    usage,
    cost: { micros: 0, unpricedCalls: 0 },
  });
  const events = [
    message(1, "t", from("heartbeat", { id: "heartbeat", name: "heartbeat" })),
    finished(2, "t"),
    message(3, "u", from("cron", { id: "job-1", name: "tidy up" })),
    finished(4, "u"),
  ];
  const told = [...events, ...events].map((event) =>
    view
      .event(event)
      .flatMap((frame) =>
        frame.type === "event" && frame.category !== "agent" ? [[frame.category, frame.event, frame.data]] : [],
      ),
  );
  assert.deepEqual(told, [
    [["heartbeat", "tick", { turn_id: "t" }]],
    [],
    [],
    [["cron", "executed", { id: "job-1", name: "tidy up", exit_reason: "end_turn" }]],
    [],
    [],
    [],
    [],
  ]);
});
