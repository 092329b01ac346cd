// The newest log lines about each account: which lines belong to it, and bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AccountLog } from "../src/delivery/account-log.ts";

const of = (account: string, more: object = {}) => ({
  channel: "telegram",
  account,
  level: "trace" as const,
  limit: 200,
  ...more,
});
const line = (fields: object) =>
  `${JSON.stringify({ level: "warn", time: "2026-11-24T10:00:00.000Z", service: "channel-gateway", replica: "one", msg: "m", ...fields })}\n`;

test("finds a line by its fields, by `channel:account` and by a lease, and no other line", () => {
  const log = new AccountLog();
  log.add(line({ channel: "telegram", account: "a", reason: "by fields" }));
  log.add(line({ account: "telegram:a", reason: "by name" }));
  log.add(line({ lease: "telegram:a#2", fence: 7 }));
  log.add(line({ channel: "telegram", account: "b" }));
  log.add(line({ reason: '"account":"telegram:a"' }));
  log.add('no JSON with "account":"telegram:a"');
  const fields = log.of(of("a")).map((each) => each.fields);
  assert.deepEqual(fields, [{ reason: "by fields" }, { reason: "by name" }, { lease: "telegram:a#2", fence: "7" }]);
  assert.deepEqual(log.of(of("c")), []);
});

test("keeps the newest 200 lines of an account, truncated, and returns what fits into one reply", () => {
  const log = new AccountLog();
  for (let n = 1; n <= 250; n++) log.add(line({ account: "telegram:a", count: n }));
  for (let n = 1; n <= 250; n++) log.add(line({ account: "telegram:b", reason: `${n} ${"x".repeat(5_000)}` }));
  const kept = log.of(of("a")).map(({ fields }) => fields["count"]);
  assert.deepEqual([kept.length, kept[0], kept.at(-1)], [200, "51", "250"]);
  const long = log.of(of("b"));
  assert.ok(long.length > 50 && JSON.stringify(long).length < 140_000, String(long.length));
  assert.ok(long.at(-1)?.fields["reason"]?.startsWith("250 x"));
  assert.ok(long.every(({ fields }) => fields["reason"]?.length === 1_000));
});
