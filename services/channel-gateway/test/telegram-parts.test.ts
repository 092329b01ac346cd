// An answer of 40,000 characters whose sender is killed between any two of its messages, or while one is in flight, in both modes of
// Telegram: what was sent is not sent again, the rest follows in order, and only the message in flight is unknown.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { parseSettings } from "@parley/chassis";
import { store, telegramChannel } from "@parley/contracts";
import { startTelegramPeer } from "@parley/testing";
import { Client } from "pg";
import { AnswerParts } from "../src/channels/text/parts.ts";
import type { TextPart } from "../src/channels/text/split.ts";
import { startGatewayStack, type GatewayStack } from "./support/stack.ts";

const text = Array.from({ length: 400 }, (_, line) => `${String(line).padStart(3, "0")} ${"x".repeat(95)}`).join("\n");
const { text: limits } = telegramChannel.capabilities;

/** The messages of the text, and where each begins. */
const parts = (() => {
  const answer = new AnswerParts(limits);
  const found: { position: number; next: number | null; plain: string }[] = [];
  for (let position: number | null = 0; position !== null;) {
    const part: TextPart = answer.at("answer", text, position) ?? assert.fail();
    found.push({ position, next: part.next, plain: part.rendered.plain });
    position = part.next;
  }
  return found;
})();

describe("a long answer whose sender was killed", { concurrency: true }, () => {
  let stack: GatewayStack;
  let sql: Client;
  before(async () => {
    stack = await startGatewayStack();
    sql = new Client({ connectionString: stack.stack.postgres.ownerUrl });
    await sql.connect();
  });
  after(async () => {
    await sql.end();
    await stack[Symbol.asyncDispose]();
  });

  for (const mode of ["poll", "webhook"] as const) {
    test(`is continued at every message: ${mode}`, async () => {
      assert.ok(text.length >= 39_000 && parts.length >= 10);
      const bus = await stack.stack.bus("channel-gateway");
      const at = { channel: "telegram", account: mode };
      // A crashed instance of the replica that continues.
      const dead = { replica: `heir-${mode}`, incarnation: "dead" };
      const name = `telegram:${mode}`;
      const held =
        mode === "poll"
          ? await bus.request(store.leaseAcquire, { name, owner: "dead/dead", ttlMs: 60_000 })
          : undefined;
      const cases = parts.flatMap((_, sent) => [
        { sent, inFlight: false, conversation: String(1_000 + sent) },
        { sent, inFlight: true, conversation: String(2_000 + sent) },
      ]);
      const ids = new Map<string, string>();
      for (const { sent, inFlight, conversation } of cases) {
        const outgoing = { address: { ...at, conversation }, text, expiresInMs: 600_000 };
        const { outboxId } = await bus.request(store.outboxPut, { opId: randomUUID(), outgoing });
        ids.set(conversation, outboxId);
        for (let round = 0; round <= sent; round++) {
          const { rows } = await bus.request(store.outboxClaim, {
            opId: randomUUID(),
            owner: dead,
            ...at,
            ...(held === undefined ? {} : { lease: { name, fence: held.fence } }),
            deduplicates: false,
            continues: true,
            limit: 1,
            claimMs: 60_000,
          });
          assert.equal(rows[0]?.outboxId, outboxId);
          // A message in flight stays as its claim left it; the others are not due while further cases are prepared.
          if (round === sent && inFlight) break;
          const outcome =
            round < sent
              ? { state: "part" as const, providerMessageId: String(round), position: parts[round]?.next ?? 0 }
              : { state: "retry" as const, afterMs: 600_000, reason: "not sent" };
          await bus.request(store.outboxSettle, { opId: randomUUID(), outboxId, owner: dead, outcome });
        }
      }
      await sql.query("UPDATE parley.outbox SET not_before = now() WHERE state = 'pending' AND account = $1", [mode]);
      if (held !== undefined) await bus.request(store.leaseRelease, { name, fence: held.fence });
      await using peer = await startTelegramPeer();
      const settings = parseSettings(
        `[channels.telegram.${mode}]\ntoken_env = "PARLEY_CHANNEL_T"\nmode = "${mode}"\nwebhook_secret_env = "PARLEY_CHANNEL_W"\napi_root = "${peer.url}"`,
        "test",
      );
      const channelSecrets = new Map([
        ["PARLEY_CHANNEL_T", peer.token],
        ["PARLEY_CHANNEL_W", "secret"],
      ]);
      const gateway = await stack.gateway({ name: `heir-${mode}`, config: { settings, channelSecrets } });
      const expected = cases.map(({ sent, inFlight }) => parts.slice(inFlight ? sent + 1 : sent));
      await peer.untilSent(expected.flat().length);
      for (const [index, { conversation, inFlight }] of cases.entries()) {
        const seen = peer.sent.filter(({ chatId }) => String(chatId) === conversation).map((message) => message.text);
        assert.deepEqual(
          seen,
          expected[index]?.map(({ plain }) => plain),
          conversation,
        );
        const outboxId = ids.get(conversation) ?? "";
        const state = await pollUntil(async () => {
          const found = await bus.request(store.outboxGet, { outboxId });
          return found.state !== "pending" && found.state !== "sending" && found.state;
        }, "the outcome of the text");
        assert.equal(state, inFlight ? "unknown" : "sent", conversation);
      }
      await gateway.close();
    });
  }
});
