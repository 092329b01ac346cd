// The figures of each design in its preset, loaded as at the start of a service. A preset may differ only where `differences` says so,
// and the row in docs/seeds.md gives the same reason.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { loadSettings } from "@parley/chassis";
import type { ParleySettings, presetNames } from "@parley/contracts";
import { retryDelayMs } from "../services/agent-core/src/model/call.ts";

type Preset = (typeof presetNames)[number];

interface Figure {
  /** Row of docs/seeds.md. */
  row: string;
  name: string;
  /** The value of the design. */
  design: unknown;
  actual: (settings: ParleySettings) => unknown;
}

/** Values that differ from the design on purpose; the row's remark contains the reason. */
const differences: { row: string; name: string; ours: unknown; reason: string }[] = [
  {
    row: "000.2",
    name: "queue mode",
    ours: "queue",
    reason: 'Off in the preset: each message is a turn of its own; `queue.mode = "coalesce"` switches it on',
  },
  {
    row: "001.5",
    name: "identical calls that end a turn",
    ours: 5,
    reason: "Five identical calls with identical results end the turn, unless `limits.max_repeated_calls` is 0",
  },
  {
    row: "001.6d",
    name: "seconds of one command",
    ours: 120,
    reason: "A command has 120 s instead of 60; other tools have their own limits",
  },
  {
    row: "001.9b",
    name: "tries of the model",
    ours: 8,
    reason: "A fault: the first 429 ended the turn. Eight tries",
  },
];

const seconds = ({ models: { retry } }: ParleySettings) =>
  Array.from(
    { length: retry.tries - 1 },
    (_, index) =>
      retryDelayMs(index + 1, { baseMs: retry.base_seconds * 1_000, capMs: retry.max_seconds * 1_000 }, 0, 0) / 1_000,
  );

const rows = new Map(
  readFileSync(new URL("../docs/seeds.md", import.meta.url), "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, id = "", , state = "", , , remark = ""] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
      return id === "" ? [] : [[id, { state, remark }] as const];
    }),
);

const known = new Set<string>();

function compare(preset: Preset, figures: Figure[]): void {
  const settings = loadSettings(undefined, { PARLEY_PRESET: preset });
  for (const { row, name, design, actual } of figures) {
    const key = `${row} ${name}`;
    const difference = differences.find((each) => each.row === row && each.name === name);
    known.add(key);
    if (difference === undefined) {
      assert.deepEqual(actual(settings), design, `preset ${preset}, ${key}`);
      continue;
    }
    assert.notDeepEqual(difference.ours, design, `${key} does not differ`);
    assert.deepEqual(actual(settings), difference.ours, `preset ${preset}, ${key}`);
    assert.ok(rows.get(row)?.remark.includes(difference.reason), `docs/seeds.md, ${row}: ${difference.reason}`);
    assert.notEqual(rows.get(row)?.state, "implemented", row);
  }
}

// design: 000.1b, 000.2, 000.7, 000.12, 000.13b, 000.16b, 000.22, 000.26, 000.39b, 000.43
test("singleton has the figures of design 000", () => {
  compare("singleton", [
    { row: "000.1b", name: "concurrent turns", design: 1, actual: ({ agent }) => agent.max_concurrent_turns },
    { row: "000.2", name: "queue mode", design: "coalesce", actual: ({ queue }) => queue.mode },
    { row: "000.43", name: "order", design: "arrival", actual: ({ queue }) => queue.order },
    { row: "000.7", name: "execution", design: "serial", actual: ({ tools }) => tools.execution },
    { row: "000.12", name: "tries", design: 8, actual: ({ models }) => models.retry.tries },
    { row: "000.12", name: "waits", design: [2, 4, 8, 16, 32, 64, 128], actual: seconds },
    { row: "000.12", name: "failures", design: ["rate_limit", "overloaded"], actual: ({ models }) => models.retry.on },
    { row: "000.13b", name: "depth", design: 1, actual: ({ subagents }) => subagents.max_depth },
    {
      row: "000.16b",
      name: "seconds of one command",
      design: 1_800,
      actual: ({ tools }) => tools.exec.timeout_seconds,
    },
    {
      row: "000.16b",
      name: "in the background",
      design: 0,
      actual: ({ tools }) => tools.exec.background_after_seconds,
    },
    { row: "000.22", name: "one document", design: 20_000, actual: ({ context }) => context.max_document_chars },
    { row: "000.22", name: "all documents", design: 150_000, actual: ({ context }) => context.max_documents_chars },
    { row: "000.26", name: "tokens", design: 200_000, actual: ({ compaction }) => compaction.trigger_tokens },
    {
      row: "000.39b",
      name: "rounds without tools",
      design: 16,
      actual: ({ limits }) => limits.max_rounds_without_tools,
    },
  ]);
});

// design: 001.5, 001.6, 001.6d, 001.18d, 001.24b, 001.25, 001.9b
test("delegate has the figures of design 001", () => {
  compare("delegate", [
    { row: "001.5", name: "rounds", design: 0, actual: ({ limits }) => limits.max_iterations },
    {
      row: "001.5",
      name: "identical calls that end a turn",
      design: 0,
      actual: ({ limits }) => limits.max_repeated_calls,
    },
    { row: "001.6", name: "tool calls", design: 0, actual: ({ limits }) => limits.max_tool_calls },
    { row: "001.6", name: "seconds of a turn", design: 0, actual: ({ limits }) => limits.max_turn_seconds },
    { row: "001.6d", name: "seconds of one command", design: 60, actual: ({ tools }) => tools.exec.timeout_seconds },
    { row: "001.18d", name: "depth", design: 3, actual: ({ subagents }) => subagents.max_depth },
    { row: "001.24b", name: "hits", design: 5, actual: ({ memory }) => memory.auto_recall },
    { row: "001.25", name: "turns", design: 20, actual: ({ compaction }) => compaction.trigger_turns },
    { row: "001.25", name: "kept turns", design: 5, actual: ({ compaction }) => compaction.keep_last_turns },
    { row: "001.9b", name: "tries of the model", design: 1, actual: ({ models }) => models.retry.tries },
  ]);
});

// design: 002.4, 002.6, 002.7, 002.8, 002.9, 002.12, 002.23, 002.23b, 002.29c
test("repl has the figures of design 002", () => {
  compare("repl", [
    { row: "002.4", name: "nudges", design: 3, actual: ({ agent }) => agent.max_nudges },
    { row: "002.6", name: "waits of five tries", design: [10, 20, 40, 80], actual: seconds },
    { row: "002.6", name: "longest wait", design: 320, actual: ({ models }) => models.retry.max_seconds },
    { row: "002.7", name: "characters of a result", design: 40_000, actual: ({ tools }) => tools.max_result_chars },
    { row: "002.8", name: "messages", design: 50, actual: ({ compaction }) => compaction.max_messages },
    { row: "002.9", name: "rounds", design: 15, actual: ({ limits }) => limits.max_iterations },
    { row: "002.12", name: "tokens", design: 80_000, actual: ({ compaction }) => compaction.trigger_tokens },
    { row: "002.12", name: "first messages", design: 1, actual: ({ compaction }) => compaction.keep_first },
    { row: "002.12", name: "last messages", design: 6, actual: ({ compaction }) => compaction.keep_last },
    { row: "002.23", name: "days", design: 30, actual: ({ session }) => session.retention_days },
    { row: "002.23b", name: "sessions", design: 200, actual: ({ session }) => session.max_sessions },
    {
      row: "002.29c",
      name: "an instruction to be concise",
      design: true,
      actual: ({ agent }) => agent.system_prompt?.startsWith("Be concise") === true,
    },
  ]);
});

// design: 003.1, 003.11, 003.14b, 003.20, 003.27, 003.33, 003.33b, 003.39
test("goat has the figures of design 003", () => {
  compare("goat", [
    { row: "003.1", name: "tokens of an answer", design: 16_384, actual: ({ agent }) => agent.max_output_tokens },
    { row: "003.11", name: "failures before a fallback", design: 1, actual: ({ models }) => models.fallback_after },
    { row: "003.14b", name: "parallel calls", design: 5, actual: ({ tools }) => tools.max_parallel },
    { row: "003.20", name: "calls in the sandbox", design: "ask", actual: ({ permissions }) => permissions.contained },
    { row: "003.27", name: "share", design: 0.8, actual: ({ compaction }) => compaction.trigger_share },
    { row: "003.27", name: "kept share", design: 0.4, actual: ({ compaction }) => compaction.keep_share },
    { row: "003.33", name: "depth", design: 1, actual: ({ subagents }) => subagents.max_depth },
    { row: "003.33b", name: "children", design: 10, actual: ({ subagents }) => subagents.max_children },
    { row: "003.33b", name: "sub-agents", design: 10, actual: ({ subagents }) => subagents.max_concurrent },
    { row: "003.39", name: "waits of three tries", design: [1, 2], actual: seconds },
    { row: "003.39", name: "longest wait", design: 30, actual: ({ models }) => models.retry.max_seconds },
  ]);
});

// design: 004.1, 004.2, 004.9b, 004.10, 004.25, 004.25c, 004.29, 004.37
test("nanobot has the figures of design 004", () => {
  compare("nanobot", [
    { row: "004.1", name: "rounds", design: 20, actual: ({ limits }) => limits.max_iterations },
    { row: "004.2", name: "concurrent turns", design: 1, actual: ({ agent }) => agent.max_concurrent_turns },
    { row: "004.9b", name: "seconds of one command", design: 60, actual: ({ tools }) => tools.exec.timeout_seconds },
    { row: "004.10", name: "rounds", design: 15, actual: ({ subagents }) => subagents.max_iterations },
    { row: "004.25", name: "minutes", design: 30, actual: ({ heartbeat }) => heartbeat.every_minutes },
    {
      row: "004.25c",
      name: "hours of heartbeats",
      design: "00:00-00:00",
      actual: ({ heartbeat }) => heartbeat.active_hours,
    },
    { row: "004.29", name: "messages", design: 50, actual: ({ compaction }) => compaction.max_messages },
    {
      row: "004.37",
      name: "minutes of a pairing code",
      design: 10,
      actual: ({ permissions }) => permissions.pairing_minutes,
    },
  ]);
});

test("lists only differences of compared figures", () => {
  assert.deepEqual(
    differences.map(({ row, name }) => `${row} ${name}`).filter((key) => !known.has(key)),
    [],
  );
});
