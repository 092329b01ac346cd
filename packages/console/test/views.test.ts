// The pure parts of the views: sums of usage, the bars of a turn.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bodyOf } from "../src/views/account-form.ts";
import { asTree } from "../src/views/session-tree.ts";
import { byDay, byGroup, shareOf, totalOf, type UsageRow } from "../src/views/usage-rows.ts";
import { waterfall } from "../src/views/waterfall.ts";

const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 30, cacheWriteTokens: 0 };
const row = (day: string, model: string, micros: number, unpricedCalls = 0): UsageRow => ({
  day,
  model,
  calls: 1,
  usage,
  cost: { micros, unpricedCalls },
});

describe("the form of an account", () => {
  const filled = (fields: Readonly<Record<string, string>>) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    return form;
  };

  test("becomes settings in their types and secrets, without empty fields", () => {
    const form = filled({
      account: "work",
      "secret:token_env": " abc ",
      "secret:webhook_secret_env": "",
      "setting:host": "irc.example.org",
      "setting:owners": "1, 2,",
      further: `port = 6697 # with TLS\ntls = true\ngroups = ['#a', "it's",]\nlimit = 1_000\nnick = parley\nname = 'Parley #1'`,
    });
    assert.deepEqual(bodyOf("irc", form), {
      channel: "irc",
      account: "work",
      settings: {
        host: "irc.example.org",
        owners: ["1", "2"],
        port: 6697,
        tls: true,
        groups: ["#a", "it's"],
        limit: 1000,
        nick: "parley",
        name: "Parley #1",
      },
      secrets: { token_env: "abc" },
    });
  });

  test("names the line that is no setting", () => {
    assert.throws(
      () => bodyOf("irc", filled({ further: "port: 6697" })),
      /"port: 6697" is not in the form name = value/,
    );
  });
});

describe("the tree of sessions", () => {
  const node = (sessionId: string, parentId: string | null = null) => ({ sessionId, parentId });
  const lines = (rows: readonly { sessionId: string; parentId: string | null }[]) =>
    asTree(rows).map(({ row, depth }) => `${depth} ${row.sessionId}`);

  test("has each sub-agent below the session that started it", () => {
    const rows = [node("child", "a"), node("b"), node("grandchild", "child"), node("a"), node("other", "a")];
    assert.deepEqual(lines(rows), ["0 b", "0 a", "1 child", "2 grandchild", "1 other"]);
  });

  test("keeps sub-agents whose parent is not listed, and no row twice", () => {
    assert.deepEqual(lines([node("child", "unlisted"), node("a")]), ["0 child", "0 a"]);
  });
});

describe("usage", () => {
  const rows = [row("2026-01-02", "a", 10), row("2026-01-02", "b", 20), row("2026-01-03", "a", 0, 1)];

  test("is summed by day with the days without calls", () => {
    const days = byDay(rows, 3, new Date("2026-01-03T12:00:00Z"));
    assert.deepEqual(
      days.map(({ day, calls, promptTokens }) => [day, calls, promptTokens]),
      [
        ["2026-01-01", 0, 0],
        ["2026-01-02", 2, 80],
        ["2026-01-03", 1, 40],
      ],
    );
  });

  test("keeps the times of a group, and the share of its prompt from the cache", () => {
    const [first] = rows;
    assert.ok(first !== undefined);
    const [known, unknown] = byGroup([
      { ...first, name: "a", sessionId: null, p50Ms: 900, p95Ms: 2_000 },
      { ...first, name: "b", sessionId: null, usage: { ...usage, inputTokens: 0, cacheReadTokens: 0 } },
    ]);
    assert.ok(known !== undefined && unknown !== undefined);
    assert.deepEqual([known.p50Ms, known.p95Ms, shareOf(known)], [900, 2_000, 0.75]);
    assert.deepEqual([unknown.p50Ms, unknown.p95Ms, shareOf(unknown)], [null, null, null]);
  });

  test("keeps calls without a price unknown", () => {
    assert.deepEqual(totalOf(rows).cost, { micros: 30, unpricedCalls: 1 });
  });
});

describe("waterfall", () => {
  const at = (ms: number) => new Date(ms).toISOString();
  const span = { state: "done", exact: true };

  test("places spans on one scale and ends what still runs now", () => {
    const { bars, totalMs } = waterfall(
      {
        turnId: "t",
        sessionId: "s",
        state: "running",
        receivedAt: at(1_000),
        finishedAt: null,
        spans: [
          { ...span, kind: "queue", name: "", startedAt: at(1_000), endedAt: at(1_100) },
          {
            ...span,
            kind: "model",
            name: "m",
            startedAt: at(1_100),
            endedAt: at(1_300),
            inputTokens: 9,
            outputTokens: 2,
          },
          { ...span, kind: "tool", name: "exec", state: "failed", startedAt: at(1_350), endedAt: at(1_600) },
          { ...span, kind: "tool", name: "exec", state: "running", startedAt: at(1_700), endedAt: null },
        ],
      },
      2_000,
    );
    assert.deepEqual(
      bars.map(({ kind, fromMs, toMs }) => [kind, fromMs, toMs]),
      [
        ["queue", 0, 100],
        ["model", 100, 300],
        ["failed", 350, 600],
        ["tool", 700, 1_000],
      ],
    );
    assert.equal(bars[1]?.detail, "9 → 2 tokens, committed at 300 ms");
    assert.equal(bars[0]?.detail, "claimed at 100 ms");
    assert.deepEqual(
      bars.map(({ mark }) => mark),
      ["claimed", "committed", null, null],
    );
    assert.equal(totalMs, 1_000);
  });
});
