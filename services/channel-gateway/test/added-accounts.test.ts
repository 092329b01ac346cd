// Accounts that are added, changed and removed while two gateways run, with a real store and the fake of a platform.
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { parseSettings } from "@parley/chassis";
import type { operations } from "@parley/contracts";
import { startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

type Account = operations.ChannelAccountStatus;

const wrongToken = "7000002:AAWrongTokenOfNobodyForTestsOnly";
let stack: GatewayStack;
let peer: TelegramPeer;
let secretsDir: string;
let one: Replica;
let two: Replica;

const path = (account: string) => `/api/channels/telegram/${account}`;

async function find(replica: Replica, account: string): Promise<Account | undefined> {
  const { accounts } = await replica.json<{ accounts: Account[] }>("/api/channels");
  return accounts.find((each) => each.account === account);
}

/** Repeats the request until the replica lists the account with the state. */
async function untilState(replica: Replica, account: string, state: Account["state"]): Promise<Account> {
  return pollUntil(async () => {
    const found = await find(replica, account);
    return found?.state === state && found;
  }, `${account} to be ${state}`);
}

/** Repeats the request until the replica lists the account no more. */
async function untilGone(replica: Replica, account: string): Promise<void> {
  await pollUntil(async () => (await find(replica, account)) === undefined, `the removal of ${account}`);
}

function add(more: object): Promise<Response> {
  return one.call("/api/channels", { body: { channel: "telegram", ...more } });
}

async function failure(response: Promise<Response>): Promise<{ status: number; code: string; message: string }> {
  const { status, ...rest } = await response.then(async (answer) => ({
    status: answer.status,
    ...((await answer.json()) as { error: { code: string; message: string } }),
  }));
  return { status, ...rest.error };
}

async function heard(text: string): Promise<string> {
  const count = peer.sent.length;
  peer.say(text);
  await peer.untilSent(count + 1);
  return peer.sent.at(-1)?.text ?? "";
}

describe("added accounts", { timeout: 120_000 }, () => {
  const settings = () => ({ api_root: peer.url, owners: ["42"] });

  before(async () => {
    secretsDir = await mkdtemp(join(tmpdir(), "parley-secrets-"));
    stack = await startGatewayStack();
    peer = await startTelegramPeer();
    const text = `[channels.telegram.file]\ntoken_env = "PARLEY_CHANNEL_FILE"\napi_root = "${peer.url}"\n`;
    const config = { settings: parseSettings(text, "test"), channelSecrets: new Map(), secretsDir };
    one = await stack.gateway({ name: "one", config });
    two = await stack.gateway({ name: "two", config });
  });
  after(async () => {
    await stack[Symbol.asyncDispose]();
    await peer.close();
    await rm(secretsDir, { recursive: true, force: true });
  });

  test("reports what is wrong and stores nothing", async () => {
    const wrong = await failure(add({ settings: settings(), secrets: { token_env: wrongToken } }));
    assert.deepEqual([wrong.status, wrong.code], [422, "account_rejected"]);
    assert.match(wrong.message, /token refused by Telegram \(Unauthorized\)/);
    const cases: [object, number, RegExp][] = [
      [{ channel: "pigeon" }, 400, /there is no channel "pigeon"; known: telegram,/],
      [{ secrets: { password: "x" } }, 400, /telegram has no secret "password"/],
      [{ settings: { mode: "pull" } }, 400, /mode: /],
      [{ settings: { profile: "nobody" } }, 400, /there is no profile "nobody"/],
      [{ settings: settings() }, 400, /PARLEY_CHANNEL_TELEGRAM_MAIN_TOKEN is not set, and there is no file/],
      [{ account: "file", secrets: { token_env: peer.token } }, 409, /is in parley.toml/],
      [{ account: "No Name" }, 400, /account: /],
    ];
    for (const [body, status, message] of cases) {
      const refused = await failure(add(body));
      assert.equal(refused.status, status, refused.message);
      assert.match(refused.message, message);
    }
    assert.equal(await find(one, "main"), undefined);
    assert.deepEqual(await readdir(secretsDir), []);
  });

  test("connects an added account on one of the replicas and answers there", async () => {
    const answer = await add({ settings: settings(), secrets: { token_env: peer.token } });
    assert.deepEqual(await answer.json(), { channel: "telegram", account: "main", as: "@parley_bot", replaced: false });
    for (const replica of [one, two]) {
      const found = await untilState(replica, "main", "connected");
      assert.equal(found.origin, "added");
      assert.match(found.owner ?? "", /^(?:one|two)\//);
    }
    assert.equal((await find(two, "file"))?.origin, "file");
    assert.match(await heard("hello"), /hello/);
    assert.deepEqual(await readdir(secretsDir), ["PARLEY_CHANNEL_TELEGRAM_MAIN_TOKEN"]);
  });

  test("starts it on a replica that starts later, and applies changes to all", async () => {
    const config = { settings: parseSettings("", "test"), channelSecrets: new Map(), secretsDir };
    const third = await stack.gateway({ name: "three", config });
    await untilState(third, "main", "connected");
    // The stored secret is used again.
    const changed = await add({ settings: { ...settings(), dm_policy: "disabled" } });
    assert.equal(((await changed.json()) as { replaced: boolean }).replaced, true);
    await untilState(third, "main", "connected");
    assert.match(await heard("still there?"), /still there/);
    await third.close();
    assert.equal(peer.conflicts, 0, "no two connections at the same time");
  });

  test("serves the webhook of an added account, and no longer when it is removed", async () => {
    const hook = { ...settings(), mode: "webhook", webhook_secret_env: "PARLEY_CHANNEL_HOOK" };
    const secrets = { token_env: peer.token, webhook_secret_env: "a secret of the hook" };
    assert.equal((await add({ account: "hook", settings: hook, secrets })).status, 200);
    await untilState(two, "hook", "connected");
    const post = (secret: string) =>
      two.call("/channels/telegram/hook/webhook", {
        body: {
          update_id: 1,
          message: {
            message_id: 1,
            date: 1,
            text: "by webhook",
            chat: { id: 42, type: "private" },
            from: { id: 42, first_name: "A" },
          },
        },
        headers: { "x-telegram-bot-api-secret-token": secret },
      });
    assert.equal((await post("another secret")).status, 401);
    const count = peer.sent.length;
    assert.equal((await post("a secret of the hook")).status, 200);
    await peer.untilSent(count + 1);
    assert.equal((await one.call(path("hook"), { method: "DELETE" })).status, 200);
    await untilGone(two, "hook");
    assert.equal((await post("a secret of the hook")).status, 404);
    assert.ok(!(await readdir(secretsDir)).some((name) => name.includes("TELEGRAM_HOOK")));
  });

  test("removes an account from all replicas, with its secret, lease and waiting texts", async () => {
    const refused = await failure(one.call(path("file"), { method: "DELETE" }));
    assert.deepEqual([refused.status, refused.code], [409, "conflict"]);
    await one.call(`${path("main")}/pause`, { body: {} });
    const waits = { channel: "telegram", account: "main", conversation: "42", text: "never sent" };
    const { outboxId } = await one.json<{ outboxId: string }>("/api/send", { body: waits });
    assert.deepEqual(await one.json(path("main"), { method: "DELETE" }), { removed: true });
    await untilGone(two, "main");
    const row = await one.json<{ state: string; error: string }>(`/api/outbox/${outboxId}`);
    assert.deepEqual([row.state, row.error], ["dropped", "the account was removed"]);
    assert.deepEqual(
      (await readdir(secretsDir)).filter((name) => name.includes("MAIN")),
      [],
    );
    assert.equal((await failure(one.call("/api/send", { body: waits }))).code, "no_such_account");
    assert.equal((await failure(one.call(path("main"), { method: "DELETE" }))).code, "no_such_account");
    const again = await add({ settings: settings(), secrets: { token_env: peer.token } });
    assert.equal(again.status, 200);
    const { paused } = await untilState(two, "main", "connected");
    assert.equal(paused, null, "a new account is not paused");
  });

  test("follows the file of a secret without a restart", async () => {
    await one.call(path("main"), { method: "DELETE" });
    await untilGone(two, "main");
    const before = await Promise.all([one, two].map((replica) => find(replica, "file")));
    assert.deepEqual(
      before.map((account) => account?.state),
      ["disabled", "disabled"],
    );
    const secret = join(secretsDir, "PARLEY_CHANNEL_FILE");
    await writeFile(secret, peer.token, { mode: 0o600 });
    await Promise.all([one, two].map((replica) => untilState(replica, "file", "connected")));
    await writeFile(secret, wrongToken);
    await Promise.all([one, two].map((replica) => untilState(replica, "file", "disabled")));
    await writeFile(secret, peer.token);
    await Promise.all([one, two].map((replica) => untilState(replica, "file", "connected")));
  });
});
