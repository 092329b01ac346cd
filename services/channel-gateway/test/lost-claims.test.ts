// A claim of texts whose first attempt is answered too late, on a real store: the text is sent once and without waiting for its claim to expire.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { store } from "@parley/contracts";
import { pollUntil } from "@parley/testing/until";
import { Client } from "pg";
import { Platform } from "./support/platform.ts";
import { startGatewayStack } from "./support/stack.ts";

test("sends a text immediately when the claim that took it was repeated before its response", async () => {
  await using stack = await startGatewayStack();
  const bus = await stack.stack.bus("channel-gateway");
  const address = { channel: "test", account: "late", conversation: "1" };
  const outgoing = { address, text: "hello", expiresInMs: 600_000 };
  const { outboxId } = await bus.request(store.outboxPut, { opId: randomUUID(), outgoing });
  const [sql, locker] = [0, 1].map(() => new Client({ connectionString: stack.stack.postgres.ownerUrl }));
  assert.ok(sql !== undefined && locker !== undefined);
  await Promise.all([sql.connect(), locker.connect()]);
  await locker.query("BEGIN");
  await locker.query("SELECT FROM parley.outbox WHERE id = $1 FOR UPDATE", [outboxId]);
  const platform = new Platform("late");
  const account = platform.account({}, "one", { ownedConnection: false });
  delete account.adapter.connect;
  await stack.gateway({ name: "one", overrides: { accounts: [account] } });
  // The gateway no longer waits for the response to the first attempt when the second one runs.
  await pollUntil(async () => {
    const { rowCount } = await sql.query(
      "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted",
    );
    return (rowCount ?? 0) >= 2;
  }, "the second attempt of the claim");
  await locker.query("COMMIT");
  const settled = await pollUntil(async () => {
    const row = await bus.request(store.outboxGet, { outboxId });
    return row.state === "pending" || row.state === "sending" ? null : row;
  }, "the end of the text");
  assert.equal(settled.state, "sent");
  assert.deepEqual(platform.sent, [{ conversation: "1", text: "hello" }]);
  await Promise.all([sql.end(), locker.end()]);
});
