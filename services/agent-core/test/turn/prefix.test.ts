import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Message, ToolDescriptor } from "@parley/contracts";
import { mayRenew, prefixOf } from "../../src/session/prefix.ts";
import { emptyView, appendMessages } from "../../src/session/view.ts";
import { answer, message, person } from "./support.ts";

const tool = (name: string, more: Partial<ToolDescriptor> = {}): ToolDescriptor => ({
  name,
  aliases: [],
  summary: "",
  description: name,
  inputSchema: { type: "object" },
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: [],
  timeoutMs: 1,
  resource: { kind: "none" },
  ...more,
});

describe("the prefix", () => {
  // design: 001.11, switch.19
  test("does not depend on the order of tools or on fields the model does not receive", () => {
    const one = prefixOf("system", [tool("b"), tool("a")], {});
    const other = prefixOf("system", [tool("a", { timeoutMs: 9, risk: "high" }), tool("b")], {});
    assert.equal(one.hash, other.hash);
    assert.deepEqual(
      one.tools.map(({ name }) => name),
      ["a", "b"],
    );
  });

  test("changes with the system prompt, a description, a schema or a tool", () => {
    const hashes = [
      prefixOf("system", [tool("a")], {}),
      prefixOf("System", [tool("a")], {}),
      prefixOf("system", [tool("a", { description: "new" })], {}),
      prefixOf("system", [tool("a", { inputSchema: { type: "object", properties: {} } })], {}),
      prefixOf("system", [tool("a"), tool("b")], {}),
      prefixOf("system", [], {}),
    ].map(({ hash }) => hash);
    assert.equal(new Set(hashes).size, hashes.length);
  });
});

describe("renewing a prefix", () => {
  const now = Date.parse("2026-01-01T02:00:00.000Z");
  const at = (minutesAgo: number) => new Date(now - minutesAgo * 60_000).toISOString();
  const viewOf = (...messages: Message[]) => {
    const view = emptyView();
    appendMessages(view, messages, messages.at(-1)?.seq ?? 0);
    return view;
  };

  test("is allowed while no answer exists under the old one", () => {
    assert.equal(mayRenew(viewOf(), now), true);
    assert.equal(mayRenew(viewOf(person("a", { createdAt: at(0) }), person("b", { createdAt: at(0) })), now), true);
  });

  test("is allowed when the provider's cache has expired, not before", () => {
    const idle = (minutes: number) => viewOf(person("a"), { ...answer("b"), createdAt: at(minutes) });
    assert.equal(mayRenew(idle(59), now), false);
    assert.equal(mayRenew(idle(61), now), true);
  });

  test("is never allowed while reasoning is bound to the old one by its signature", () => {
    const thought = [{ type: "reasoning", text: "hm", signature: "s" } as const, { type: "text", text: "a" } as const];
    assert.equal(mayRenew(viewOf(person("a"), message("assistant", thought, { createdAt: at(600) })), now), false);
  });
});
