// Messages queued by the first version: their senders have no channel.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;

before(async () => {
  fixture = await openStoreFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

test("messages queued or claimed under the first version are answered after the migration", async () => {
  const { sql, core } = fixture;
  const { sessionId: queued } = await fixture.put("old:queued");
  const { turnId } = await fixture.begun();
  for (const table of ["inbox", "messages"])
    await sql.query(`UPDATE parley.${table} SET sender = (sender::jsonb - 'channel' - 'account')::text`);
  await sql.query(await readFile(new URL("../migrations/0024_senders_channel.sql", import.meta.url), "utf8"));
  const claim = { ...fixture.fenced(), sessionId: queued, knownSeq: 0, maxClaims: 5 };
  const claimed = await core.request(store.turnClaim, claim);
  assert.equal(claimed.status, "started");
  const taken = claimed.messages.map(({ from }) => [from?.channel, from?.account, from?.contact.id]);
  assert.deepEqual(taken, [["telegram", "main", "7"]]);
  const rows = await sql.query(
    "SELECT sender::jsonb ->> 'channel' AS channel FROM parley.messages WHERE turn_id = $1",
    [turnId],
  );
  assert.deepEqual(rows.rows, [{ channel: "telegram" }]);
});
