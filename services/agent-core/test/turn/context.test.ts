import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Part } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { buildPrompt, withoutToolTraffic } from "../../src/prompt/build-prompt.ts";
import { illegal } from "../compaction/histories.ts";
import { loopSays, message as said, person, text as saidText, used } from "./support.ts";

const text = fc.string({ maxLength: 20 }).map((value): Part => ({ type: "text", text: value }));
const reasoning = fc
  .string({ maxLength: 20 })
  .map((value): Part => ({ type: "reasoning", text: value, signature: `s-${value}` }));

/** Histories after crashes, cancellations and cuts: results missing, duplicated, for unknown calls, in any order. */
const histories = fc
  .array(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          role: fc.constant("user" as const),
          texts: fc.array(text, { minLength: 1, maxLength: 2 }),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          role: fc.constant("assistant" as const),
          texts: fc.array(fc.oneof(text, reasoning), { maxLength: 3 }),
          calls: fc.integer({ min: 0, max: 3 }),
          answered: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }),
          lost: fc.boolean(),
        }),
      },
    ),
    { maxLength: 12 },
  )
  .chain((steps) => fc.record({ steps: fc.constant(steps), cut: fc.integer({ min: 0, max: 4 }) }))
  .map(({ steps, cut }) => {
    const messages: Message[] = [];
    let nextCall = 0;
    const add = (role: Message["role"], parts: Part[]) =>
      messages.push({
        seq: messages.length + 1,
        role,
        turnId: "t",
        parts,
        model: null,
        createdAt: "2026-01-01T00:00:00.000Z",
      });
    for (const step of steps) {
      if (step.role === "user") {
        add("user", step.texts);
        continue;
      }
      const ids = Array.from({ length: step.calls }, () => `call-${nextCall++}`);
      add("assistant", [
        ...step.texts,
        ...ids.map((id): Part => ({ type: "tool_call", id, name: "read", input: "{}" })),
        { type: "finish", reason: "x", at: "2026-01-01T00:00:00.000Z" },
      ]);
      if (ids.length === 0 || step.lost) continue;
      const results = step.answered.map((index): Part => ({
        type: "tool_result",
        id: ids[index] ?? `stranger-${index}`,
        name: "read",
        content: "ok",
        isError: false,
      }));
      add("tool", results);
    }
    return messages.slice(cut);
  });

// design: 000.26b
test("answers each tool call exactly once and alternates roles for any history", () => {
  fc.assert(
    fc.property(histories, (messages) => {
      assert.equal(illegal(buildPrompt(messages)), undefined);
    }),
    { numRuns: propertyRuns(10_000) },
  );
});

test("extends the prompt only at its end while a conversation continues", () => {
  fc.assert(
    fc.property(histories, (messages) => {
      const complete = messages.findLastIndex((message) => message.role === "user");
      if (complete < 1) return;
      const before = buildPrompt(messages.slice(0, complete));
      const after = buildPrompt(messages.slice(0, complete + 1));
      // New text may be added to the last message; everything before it is unchanged.
      assert.deepEqual(after.slice(0, Math.max(0, before.length - 1)), before.slice(0, -1));
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

test("keeps text and signature of reasoning byte for byte", () => {
  const part: Part = { type: "reasoning", text: "  exactly\u0000 \ud800 this ", signature: "c2ln==" };
  const message = (seq: number, role: Message["role"], parts: Part[]): Message => ({
    seq,
    role,
    turnId: "t",
    parts,
    model: null,
    createdAt: "2026-01-01T00:00:00.000Z",
  });
  const prompt = buildPrompt([
    message(1, "user", [{ type: "text", text: "hi" }]),
    message(2, "assistant", [part, { type: "text", text: "hello" }]),
  ]);
  assert.deepEqual(prompt[1]?.parts[0], part);
});

test("never sends whitespace-only text, which the API refuses", () => {
  const message = (seq: number, role: Message["role"], text: string): Message => ({
    seq,
    role,
    turnId: "t",
    parts: [{ type: "text", text }],
    model: null,
    createdAt: "2026-01-01T00:00:00.000Z",
  });
  const prompt = buildPrompt([message(1, "user", " \n"), message(2, "assistant", "\n\n"), message(3, "user", "hello")]);
  assert.deepEqual(prompt, [
    {
      role: "user",
      parts: [
        { type: "text", text: "(an empty message)" },
        { type: "text", text: "hello" },
      ],
    },
  ]);
});

test("adds an unknown result for a call without one and drops results without a call", () => {
  const call: Part = { type: "tool_call", id: "a", name: "exec", input: "{}" };
  const stray: Part = { type: "tool_result", id: "b", name: "read", content: "x", isError: false };
  const prompt = buildPrompt([person("go"), said("assistant", [call]), said("tool", [stray]), person("and?")]);
  const last = prompt.at(-1)?.parts ?? [];
  assert.equal(last.length, 2);
  assert.ok(last[0]?.type === "tool_result" && last[0].id === "a" && last[0].isError);
  assert.match(last[0].content, /unknown/);
});

test("puts a message that arrived during a call after the results, with its header", () => {
  const headings = { timeZone: "UTC", source: false };
  const prompt = buildPrompt(
    [person("go"), ...used("read", {}, "x"), loopSays([saidText("note")]), person("and?")],
    headings,
  );
  const kinds = prompt.at(-1)?.parts.map((part) => (part.type === "text" ? part.text : part.type));
  assert.deepEqual(kinds, ["tool_result", "note", "[Thu 2026-01-01 00:00 UTC]\n", "and?"]);
});

test("sends past turns as messages and last answers, the running turn whole, for text_only", () => {
  const past = { turnId: "past" };
  const thinking: Part = { type: "reasoning", text: "hm", signature: "s" };
  const messages = [
    person("first", past),
    ...used("read", {}, "secret").map((each) => ({ ...each, ...past })),
    said("assistant", [thinking, saidText("the answer")], past),
    person("second"),
    ...used("read", {}, "shown"),
  ];
  const prompt = buildPrompt(withoutToolTraffic(messages, "turn"));
  assert.equal(illegal(prompt), undefined);
  const words = JSON.stringify(prompt);
  assert.ok(words.includes("the answer") && words.includes("shown"));
  assert.ok(!words.includes("secret") && !words.includes("hm"));
});
