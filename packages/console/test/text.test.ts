// The pure parts of the console: addresses, formats, differences, commands, calls.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { commandsFor } from "../src/chat/commands.ts";
import { describeCall, exitCodeOf } from "../src/chat/tool-summary.ts";
import { href, parseRoute } from "../src/app/router.ts";
import { lineDiff } from "../src/parts/diff.ts";
import { age, bytes, cacheShare, compact, duration, modelName, money, plural, uptime } from "../src/parts/format.ts";

describe("addresses", () => {
  test("name a view, an id and filters, and are read back", () => {
    const address = href("documents", "memory/a b.md", { version: "3" });
    assert.deepEqual(parseRoute(address), { view: "documents", id: "memory/a b.md", query: { version: "3" } });
    assert.deepEqual(parseRoute(""), { view: "chat", id: null, query: {} });
    assert.deepEqual(parseRoute("#/approvals"), { view: "approvals", id: null, query: {} });
  });
});

describe("formats", () => {
  test("times, sizes and money are short and have a unit", () => {
    assert.equal(duration(850), "850 ms");
    assert.equal(duration(12_340), "12.3 s");
    assert.equal(duration(245_000), "4 min 05 s");
    assert.equal(duration(3_900_000), "1 h 05 min");
    assert.equal(compact(12_400), "12k");
    assert.equal(modelName({ provider: "rehearsal", model: "rehearsal" }), "rehearsal");
    assert.equal(modelName({ provider: "openai", model: "x" }), "openai:x");
    assert.equal(bytes(340), "340 B");
    assert.equal(bytes(6_210), "6 KB");
    assert.equal(bytes(10_737_418_240), "10.0 GB");
    assert.equal(age("2026-01-01T00:00:00Z", Date.parse("2026-01-01T03:00:00Z")), "3 h");
    assert.equal(money({ micros: 0, unpricedCalls: 2 }), "price unknown");
    assert.equal(money({ micros: 1_500_000, unpricedCalls: 1 }), "$1.50 + unknown");
    assert.equal(cacheShare({ inputTokens: 10, outputTokens: 5, cacheReadTokens: 30, cacheWriteTokens: 0 }), 0.75);
  });
});

describe("differences", () => {
  test("show changed lines with their surroundings", () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
    const lines = lineDiff(before, before.replace("line 10", "changed"));
    assert.deepEqual(
      lines.filter(({ kind }) => kind === "added" || kind === "removed").map(({ text }) => text),
      ["line 10", "changed"],
    );
    assert.equal(lines.length, 10);
    assert.deepEqual(lineDiff("same", "same"), []);
  });
});

describe("slash menu", () => {
  const commands = [{ name: "/status" }, { name: "/stop" }, { name: "/new" }];
  test("offers the commands that begin with the text", () => {
    assert.deepEqual(commandsFor("/st", commands), [{ name: "/status" }, { name: "/stop" }]);
    assert.deepEqual(commandsFor("/stop now", commands), []);
    assert.deepEqual(commandsFor("see /st", commands), []);
  });
});

describe("tool calls", () => {
  test("are described by their object, and changes of texts as differences", () => {
    assert.equal(describeCall('{"command":"ls -la"}').title, "ls -la");
    assert.deepEqual(describeCall('{"path":"a","old_string":"x","new_string":"y"}').change, {
      before: "x",
      after: "y",
    });
    assert.equal(describeCall('{"path":"a","con').details, '{"path":"a","con');
    assert.equal(exitCodeOf("[exit code 3, 12 ms]\nout"), 3);
    assert.equal(exitCodeOf("fine"), null);
  });

  test("show characters that could hide or reorder text by name", () => {
    assert.equal(describeCall('{"command":"rm \\u202Etxt"}').title, "rm ⟨U+202E⟩txt");
  });
});

test("shows how long a process runs in whole seconds, and counts in the singular and the plural", () => {
  assert.deepEqual([uptime(32.7), uptime(245), uptime(7_200)], ["32 s", "4 min 05 s", "2 h 00 min"]);
  assert.deepEqual([plural(1, "run"), plural(0, "run"), plural(2, "file")], ["1 run", "0 runs", "2 files"]);
});
