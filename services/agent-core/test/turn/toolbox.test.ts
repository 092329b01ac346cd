import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ToolDescriptor } from "@parley/contracts";
import { listDeferred, type SearchSettings } from "../../src/tools/deferred-tools.ts";
import type { TurnPolicy } from "../../src/policy/turn-policy.ts";
import { calledNames, Toolbox } from "../../src/tools/toolbox.ts";
import { unwrapCalls } from "../../src/prompt/indirect-calls.ts";
import { tool, used } from "./support.ts";

const core = ["read", "exec"];
const rare = Array.from({ length: 10 }, (_, index) => `rare_${index}`);
const all: Pick<TurnPolicy, "hasTool"> = { hasTool: () => true };
const search: SearchSettings = { search_above: 5, always: ["read", "exec", "mcp__kept__*"], disabled: [] };
const boxOf = (names: readonly string[], settings = search, policy = all) =>
  new Toolbox(
    names.map((name) => tool(name, name === "rare_0" ? { aliases: ["Rare"] } : {})),
    "none",
    [],
    policy,
    settings,
  );
const namesOf = (tools: readonly ToolDescriptor[]) => tools.map(({ name }) => name);
const none = new Set<string>();

describe("a toolbox", () => {
  test("shows all tools and no search when there are few", () => {
    const box = boxOf([...core, "rare_0", "rare_1", "rare_2"]);
    assert.equal(box.defers, false);
    assert.deepEqual(namesOf(box.shown(none)), ["exec", "rare_0", "rare_1", "rare_2", "read"]);
  });

  test("shows the permanent tools and the search when there are many", () => {
    const box = boxOf([...core, ...rare, "mcp__kept__a", "mcp__files__b"]);
    assert.deepEqual(namesOf(box.shown(none)), ["exec", "mcp__kept__a", "read", "tool_call", "tool_search"]);
    const searching = box.shown(none).find(({ name }) => name === "tool_search");
    for (const name of [...rare, "mcp__files__b"])
      assert.ok(searching?.description.includes(`- ${name}: Does ${name}`));
  });

  test("finds every tool by all its names, shown or deferred", () => {
    const box = boxOf([...core, ...rare]);
    for (const name of [...core, ...rare, "tool_search", "tool_call"]) assert.equal(box.nameOf(name), name);
    assert.equal(box.nameOf("Rare"), "rare_0");
  });

  test("shows recently called tools as well, under any name", () => {
    const box = boxOf([...core, ...rare]);
    const shown = box.shown(calledNames([...used("Rare", {}, "ok"), ...used("rare_3", {}, "ok")]));
    assert.deepEqual(namesOf(shown), ["exec", "rare_0", "rare_3", "read", "tool_call", "tool_search"]);
  });

  test("shows everything when search is disabled by either setting", () => {
    for (const settings of [
      { ...search, search_above: 0 },
      { ...search, disabled: ["tool_search"] },
    ]) {
      assert.equal(boxOf([...core, ...rare], settings).shown(none).length, 12);
    }
  });

  test("counts and finds tools within its policy only", () => {
    const scope = new Set(["read", "rare_1"]);
    const box = boxOf([...core, ...rare], search, { hasTool: (name: string) => scope.has(name) });
    assert.deepEqual(namesOf(box.shown(none)), ["rare_1", "read"]);
    assert.equal(box.find("rare_2"), undefined);
  });

  test("still unwraps calls when its tools have become few", () => {
    const box = boxOf(core);
    const parts = unwrapCalls(
      [{ type: "tool_call", id: "1", name: "tool_call", input: '{"tool":"read","input":{}}' }],
      (name) => box.nameOf(name) === "tool_call",
    );
    assert.equal(parts[0]?.type === "tool_call" && parts[0].name, "read");
    assert.ok(box.find("tool_search")?.local);
  });
});

test("lists names only for a server with many tools and shortens long summaries", () => {
  const many = Array.from({ length: 30 }, (_, index) => tool(`mcp__big__t${index}`));
  const text = listDeferred([tool("own"), ...many, tool("mcp__small__a", { summary: "word\n".repeat(200) })]);
  assert.match(text, /^- own: Does own\nTools of the server big:\nmcp__big__t0, mcp__big__t1, /);
  assert.match(text, /Tools of the server small:\n- mcp__small__a: word word [^\n]{1,120}…$/);
});
