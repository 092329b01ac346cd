import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Part } from "@parley/contracts";
import fc from "fast-check";
import { originalCall, unwrapCalls } from "../../src/prompt/indirect-calls.ts";

const isWrapper = (name: string) => name === "tool_call";
const call = (name: string, input: unknown): Part => ({
  type: "tool_call",
  id: "c1",
  name,
  input: typeof input === "string" ? input : JSON.stringify(input),
});
/** The unwrapped call, as name and arguments. */
const unwrapped = (part: Part) =>
  unwrapCalls([part], isWrapper).map((each) => (each.type === "tool_call" ? [each.name, each.input] : []))[0];

describe("a call by way of tool_call", () => {
  test("becomes a call of the tool it names, with that tool's arguments", () => {
    assert.deepEqual(unwrapped(call("tool_call", { tool: "cron", input: { action: "list" } })), [
      "cron",
      '{"action":"list"}',
    ]);
  });

  test("accepts its arguments as JSON text, next to the name, or none", () => {
    assert.deepEqual(unwrapped(call("tool_call", { tool: "cron", input: '{"a":1}' })), ["cron", '{"a":1}']);
    assert.deepEqual(unwrapped(call("tool_call", { tool: "cron", a: 1 })), ["cron", '{"a":1}']);
    assert.deepEqual(unwrapped(call("tool_call", { tool: "cron" })), ["cron", "{}"]);
  });

  test("unwraps nested wrappers to the innermost call", () => {
    const inner = { tool: "tool_call", input: { tool: "read", input: { path: "a" } } };
    assert.deepEqual(unwrapped(call("tool_call", inner)), ["read", '{"path":"a"}']);
  });

  test("stays unchanged when it contains no valid call", () => {
    for (const input of [
      "",
      "{",
      "[]",
      "null",
      {},
      { tool: "" },
      { tool: "a b" },
      { tool: "x", input: [] },
      { tool: "x", input: "{" },
    ]) {
      const part = call("tool_call", input);
      assert.deepEqual(unwrapCalls([part], isWrapper), [part]);
    }
  });

  test("is sent back exactly as it was written, like every other part", () => {
    const anyCall = fc.record(
      {
        type: fc.constant("tool_call" as const),
        id: fc.string(),
        name: fc.constantFrom("tool_call", "read", "nothing"),
        input: fc.oneof(
          fc.json(),
          fc.string(),
          fc
            .record({ tool: fc.constantFrom("read", "tool_call", "?"), input: fc.jsonValue({ maxDepth: 2 }) })
            .map((value) => ` ${JSON.stringify(value)}`),
        ),
      },
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(fc.array(anyCall), (parts) => {
        const kept = unwrapCalls(parts, isWrapper);
        assert.deepEqual(kept.map(originalCall), parts);
        assert.deepEqual(
          kept.map((part) => part.type === "tool_call" && part.id),
          parts.map(({ id }) => id),
        );
      }),
    );
  });
});
