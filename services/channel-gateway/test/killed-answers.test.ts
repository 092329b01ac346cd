// An answer of 40,000 characters by a gateway process that is killed (SIGKILL) again and again: after each of its messages, or while each is
// in flight; with and without a preview. `npm test` kills it twice in each test, `npm run test:deep` at every message.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { telegramChannel } from "@parley/contracts";
import { Cleanup, startTelegramPeer, temporaryFolder, type TelegramPeer } from "@parley/testing";
import { propertyRuns } from "@parley/testing/property-runs";
import { pollUntil } from "@parley/testing/until";
import { Client } from "pg";
import { AnswerParts } from "../src/channels/text/parts.ts";
import { startProcess } from "./support/gateway-process.ts";
import { startGatewayStack, type GatewayStack } from "./support/stack.ts";

const text = Array.from({ length: 400 }, (_, line) => `${String(line).padStart(3, "0")} ${"x".repeat(95)}`).join("\n");
/** The texts of the messages. */
const parts = (() => {
  const answer = new AnswerParts(telegramChannel.capabilities.text);
  const found: string[] = [];
  for (let position: number | null = 0; position !== null;) {
    const part = answer.at("answer", text, position);
    if (part === null) break;
    found.push(part.rendered.plain);
    position = part.next;
  }
  return found;
})();
const kills = propertyRuns(1_000) === 1_000 ? parts.length : 2;
const secret = "PARLEY_CHANNEL_BOT";
const chat = 42;

describe("a long answer whose gateway is killed", () => {
  let stack: GatewayStack;
  let sql: Client;
  /** Resolves when the answer to a message may end. */
  const shown = new Map<string, Promise<void>>();
  before(async () => {
    stack = await startGatewayStack();
    sql = new Client({ connectionString: stack.stack.postgres.ownerUrl });
    await sql.connect();
    stack.agent.script = async (said) => ({
      deltas: (async function* () {
        yield text.slice(0, 200);
        await shown.get(said);
        yield text.slice(200);
      })(),
    });
  });
  after(async () => {
    await sql.end();
    await stack[Symbol.asyncDispose]();
  });

  const stateOf = async (account: string) => {
    const { rows } = await sql.query<{ state: string }>("SELECT state FROM parley.outbox WHERE account = $1", [
      account,
    ]);
    return rows[0]?.state;
  };
  const isSettled = async (account: string) => !["pending", "sending", undefined].includes(await stateOf(account));

  /** A gateway of the account; always the same replica. */
  async function starter(cleanup: Cleanup, peer: TelegramPeer, account: string, preview: boolean) {
    const folder = await temporaryFolder(cleanup);
    const file = join(folder, "parley.toml");
    const table = `[channels.telegram.${account}]\nmode = "webhook"\ntoken_env = "${secret}"\nwebhook_secret_env = "${secret}_HOOK"\napi_root = "${peer.url}"\nowners = ["${chat}"]\npreview = ${preview}\n`;
    await writeFile(file, `[session]\npolicy = "per_conversation"\n${table}`);
    const env = { PARLEY_CONFIG: file, [secret]: peer.token, [`${secret}_HOOK`]: "s3cret" };
    return async (fault?: string) => {
      const own = await temporaryFolder(cleanup);
      const started = await startProcess(stack, account, own, {
        ...env,
        ...(fault === undefined ? {} : { FAULT: fault }),
      });
      cleanup.add(async () => void started.child.kill("SIGKILL"));
      return started;
    };
  }

  /** The person writes, and the preview appears if there is one. */
  async function ask(peer: TelegramPeer, url: string, account: string, preview: boolean): Promise<() => void> {
    const end = Promise.withResolvers<void>();
    shown.set(account, end.promise);
    const response = await fetch(`${url}/channels/telegram/${account}/webhook`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": "s3cret" },
      body: JSON.stringify({
        update_id: 1,
        message: {
          message_id: 1,
          date: Math.floor(Date.now() / 1_000),
          from: { id: chat, is_bot: false, first_name: "Ann" },
          chat: { id: chat, type: "private" },
          text: account,
        },
      }),
    });
    assert.equal(response.status, 200);
    if (preview) await peer.untilSent(1);
    return () => end.resolve();
  }

  const messages = (peer: TelegramPeer) => peer.sent.map((message) => message.text);

  for (const preview of [false, true]) {
    const what = preview ? "that replaces a preview" : "in plain messages";
    test(`is sent once, and reported as unknown when incomplete, when it dies after each message: ${what}`, async (t) => {
      const cleanup = new Cleanup();
      t.after(() => cleanup[Symbol.asyncDispose]());
      const account = `after${preview}`;
      const peer = await startTelegramPeer();
      cleanup.add(() => peer.close());
      const start = await starter(cleanup, peer, account, preview);
      const point = "outbox.after_settle:kill";
      const first = await start(point);
      const died = once(first.child, "exit");
      (await ask(peer, first.url, account, preview))();
      await died;
      assert.equal(peer.sent.length, 1, "the first one only");
      for (let killed = 1; killed < kills && !(await isSettled(account)); killed++) {
        const before: number = peer.sent.length;
        // It can die before it is ready.
        const next = await start(point).catch(() => null);
        if (next !== null && next.child.exitCode === null && next.child.signalCode === null)
          await once(next.child, "exit");
        assert.ok(peer.sent.length <= before + 1, `at most one message before kill ${killed + 1}`);
      }
      if (!(await isSettled(account))) await start();
      await pollUntil(() => isSettled(account), "the end of the answer");
      // The hint of a settlement can arrive before its response: then the process has claimed the next message too when it dies. That one
      // may have arrived, so it is not sent again, and the state says so.
      const missing = parts.filter((part) => !messages(peer).includes(part));
      assert.ok(missing.length <= kills && !missing.includes(parts[0] ?? ""), `${missing.length} are missing`);
      assert.deepEqual(
        messages(peer),
        parts.filter((part) => !missing.includes(part)),
      );
      assert.equal(await stateOf(account), missing.length === 0 ? "sent" : "unknown");
    });

    test(`is sent once and completely when it dies while each message is in flight: ${what}`, async (t) => {
      const cleanup = new Cleanup();
      t.after(() => cleanup[Symbol.asyncDispose]());
      const account = `during${preview}`;
      const peer = await startTelegramPeer();
      cleanup.add(() => peer.close());
      const start = await starter(cleanup, peer, account, preview);
      let gateway = await start();
      const end = await ask(peer, gateway.url, account, preview);
      for (let killed = 0; killed < kills; killed++) {
        // Telegram has the message and does not answer.
        const method = preview && killed === 0 ? "editMessageText" : "sendMessage";
        const isLast = killed === parts.length - 1;
        const from = peer.calls.length;
        peer.fail(method, { kind: "hang_after_commit" });
        if (killed === 0) end();
        else gateway = await start();
        const died = once(gateway.child, "exit");
        const expected = parts[killed] ?? "";
        await peer.until(`message ${killed}`, () =>
          messages(peer).includes(expected) && peer.calls.slice(from).some((call) => call.method === method)
            ? true
            : null,
        );
        gateway.child.kill("SIGKILL");
        await died;
        if (isLast) break;
      }
      await start();
      await pollUntil(() => isSettled(account), "the end of the answer");
      assert.deepEqual(messages(peer), parts);
      assert.equal(await stateOf(account), kills === 1 && preview ? "sent" : "unknown");
    });
  }
});
