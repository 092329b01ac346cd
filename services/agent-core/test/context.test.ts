import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Part } from "@parley/contracts";
import fc from "fast-check";
import type { PromptMessage } from "../src/model/provider.ts";
import { buildPrompt } from "../src/turn/context.ts";
import { emptyView, extend, trim } from "../src/turn/view.ts";

const text = fc.string({ maxLength: 20 }).map((value): Part => ({ type: "text", text: value }));
const reasoning = fc
  .string({ maxLength: 20 })
  .map((value): Part => ({ type: "reasoning", text: value, signature: `s-${value}` }));

/** Histories as crashes, cancellations and cuts leave them: results missing, doubled, of unknown calls, in any order. */
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

/** What the API refuses, as far as this build can send it. */
function illegal(prompt: PromptMessage[]): string | undefined {
  let open: string[] = [];
  for (const [index, message] of prompt.entries()) {
    if (message.role !== (index % 2 === 0 ? "user" : "assistant")) return `message ${index} is of ${message.role}`;
    if (message.parts.length === 0) return `message ${index} is empty`;
    const results = message.parts.flatMap((part) => (part.type === "tool_result" ? [part.id] : []));
    if (message.role === "user") {
      if (results.join() !== open.join())
        return `message ${index} answers [${results.join()}] where [${open.join()}] are open`;
      const firstOther = message.parts.findIndex((part) => part.type !== "tool_result");
      if (firstOther >= 0 && firstOther < results.length) return `message ${index} has text before results`;
      open = [];
    } else {
      if (results.length > 0) return `message ${index} of the assistant holds results`;
      open = message.parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));
    }
    if (message.parts.some((part) => part.type === "finish")) return `message ${index} holds a finish marker`;
  }
  return open.length > 0 ? `calls ${open.join()} are never answered` : undefined;
}

test("whatever happened to a history, each tool call in the prompt is answered exactly once and roles alternate", () => {
  fc.assert(
    fc.property(histories, (messages) => {
      assert.equal(illegal(buildPrompt(messages)), undefined);
    }),
    { numRuns: 10_000 },
  );
});

test("the prompt only grows at its end while a conversation goes on", () => {
  fc.assert(
    fc.property(histories, (messages) => {
      const complete = messages.findLastIndex((message) => message.role === "user");
      if (complete < 1) return;
      const before = buildPrompt(messages.slice(0, complete));
      const after = buildPrompt(messages.slice(0, complete + 1));
      // The last message may gain the new text; everything before it stays as it was sent.
      assert.deepEqual(after.slice(0, Math.max(0, before.length - 1)), before.slice(0, -1));
    }),
    { numRuns: 2_000 },
  );
});

test("reasoning keeps its text and signature byte for byte", () => {
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

test("white space alone is never sent as text: the API refuses it", () => {
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

test("a view that outgrows its limit is cut to half of it, before a person's message", () => {
  const view = emptyView();
  const messages = Array.from({ length: 100 }, (_, index): Message => ({
    seq: index + 1,
    role: index % 2 === 0 ? "user" : "assistant",
    turnId: "t",
    parts: [{ type: "text", text: "x".repeat(100) }],
    model: null,
    createdAt: "2026-01-01T00:00:00.000Z",
  }));
  extend(view, messages, 100);
  trim(view, 5_000);
  assert.equal(view.messages[0]?.role, "user");
  assert.ok(view.messages.length <= 25 && view.messages.length >= 20, String(view.messages.length));
  const kept = [...view.messages];
  trim(view, 5_000);
  assert.deepEqual(view.messages, kept);
});

test("a view takes each message once, however often it is told", () => {
  const view = emptyView();
  const message: Message = { seq: 3, role: "user", turnId: "t", parts: [], model: null, createdAt: "" };
  extend(view, [message], 3);
  extend(view, [message], 2);
  assert.equal(view.messages.length, 1);
  assert.equal(view.seq, 3);
});
