// Accounts and webhooks that cannot be used: each is disabled on its own, status and logs report the reason, and the gateway continues.
// An account that is added while the cluster runs needs no file and no restart.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTelegramPeer, startTestCluster, type TestCluster } from "@parley/testing";
import type { TelegramPeer } from "@parley/testing";
import { parley as startParley, runParley } from "../../packages/cli/test/support/parley.ts";

const cleanup = new Cleanup();
const goodToken = "123456789:good-token-of-the-test-bot-000000000";
const wrongToken = "987654321:wrong-token-of-the-test-bot-00000000";
let cluster: TestCluster;
let telegram: TelegramPeer;

before(async () => {
  telegram = await startTelegramPeer({ token: goodToken, username: "parley_test_bot" });
  cleanup.add(() => telegram.close());
  const account = (name: string, variable: string) =>
    `[channels.telegram.${name}]\ntoken_env = "${variable}"\napi_root = "${telegram.url}"\n`;
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    settings: [
      account("good", "PARLEY_CHANNEL_GOOD"),
      account("missing", "PARLEY_CHANNEL_MISSING"),
      account("wrong", "PARLEY_CHANNEL_WRONG"),
      account("malformed", "PARLEY_CHANNEL_MALFORMED"),
      '[webhooks.build]\nsecret_env = "PARLEY_CHANNEL_HOOK"\n',
    ].join("\n"),
    env: {
      "channel-gateway": {
        PARLEY_CHANNEL_GOOD: goodToken,
        PARLEY_CHANNEL_WRONG: wrongToken,
        PARLEY_CHANNEL_MALFORMED: "not a token",
      },
    },
  });
});
after(() => cleanup[Symbol.asyncDispose]());

async function details(): Promise<Record<string, unknown>> {
  const response = await apiClient(cluster.httpUrls, cluster.token).fetch("/api/status");
  const { replicas } = (await response.json()) as { replicas: { service: string; details: Record<string, unknown> }[] };
  return replicas.find(({ service }) => service === "channel-gateway")?.details ?? {};
}

async function detailsWith(pattern: RegExp): Promise<string> {
  for (;;) {
    const { channels } = await details();
    if (pattern.test(String(channels))) return String(channels);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function parley(...args: string[]): Promise<{ code: number; output: string }> {
  return parleyWith("", ...args);
}

/** `input`: what the command reads from standard input. */
async function parleyWith(input: string, ...args: string[]): Promise<{ code: number; output: string }> {
  const { code, stdout, stderr } = await runParley(cluster.home, args, { input });
  return { code, output: stdout + stderr };
}

test("runs and reports the reason for each account when secrets are missing or wrong", async () => {
  const text = await detailsWith(
    /telegram:good connected.*telegram:wrong disabled|telegram:wrong disabled.*telegram:good connected/,
  );
  assert.match(text, /telegram:good connected as @parley_test_bot/);
  assert.match(text, /telegram:missing disabled: .*the environment variable PARLEY_CHANNEL_MISSING is not set/);
  assert.match(text, /telegram:wrong disabled: token refused by Telegram \(Unauthorized\)/);
  assert.match(text, /telegram:malformed disabled: .*PARLEY_CHANNEL_MALFORMED is not a bot token/);
  assert.match(text, /hook:build disabled: .*PARLEY_CHANNEL_HOOK/);
  assert.equal((await details())["channelsDown"], 4);
  assert.match(await apiClient(cluster.httpUrls, cluster.token).ask("hello"), /hello/);
});

test("writes one log line without a stack for each disabled account", async () => {
  await detailsWith(/telegram:wrong disabled/);
  for (const name of ["telegram:missing", "telegram:wrong", "telegram:malformed", "hook:build"]) {
    const lines = cluster.lines.filter((line) => line.includes("account disabled") && line.includes(`"${name}"`));
    assert.equal(lines.length, 1, `${name}: ${lines.join("\n")}`);
    assert.ok(!lines[0]?.includes('"stack"'));
  }
  assert.ok(!cluster.lines.join("\n").includes(wrongToken));
});

test("answers 503 when a webhook or account is disabled", async () => {
  const post = (path: string) => fetch(`${cluster.httpUrl}${path}`, { method: "POST", body: "{}" });
  const hook = await post("/hooks/build");
  assert.equal(hook.status, 503);
  assert.match(await hook.text(), /hook_disabled.*the hook \\"build\\" is disabled/);
  const account = await post("/channels/telegram/missing/webhook");
  assert.equal(account.status, 503);
  const body = await account.text();
  assert.match(body, /account_disabled/);
  assert.ok(!body.includes("PARLEY_CHANNEL"));
});

test("reports disabled accounts and exits as unhealthy when status and doctor run", async () => {
  await detailsWith(/telegram:wrong disabled/);
  const status = await parley("status");
  assert.match(status.output, /unhealthy: channels: .*telegram:wrong disabled: token refused by Telegram/);
  assert.equal(status.code, 3);
  const doctor = await parley("doctor");
  assert.match(doctor.output, /✗ channels .*telegram:missing disabled/);
  assert.match(doctor.output, /encryption .*bus not encrypted/);
  assert.equal(doctor.code, 3);
  const check = await parley("config", "check");
  assert.match(check.output, /PARLEY_CHANNEL_MISSING is not set here; \[channels\.telegram\.missing\] needs it/);
});

test("adds an account with two commands, without a file and a restart", async () => {
  const peer = await startTelegramPeer({
    token: "555555555:a-token-of-the-added-bot-0000000000000",
    username: "added_bot",
  });
  cleanup.add(() => peer.close());
  const add = (token: string) =>
    parleyWith(`${token}\n`, "channels", "add", "telegram:added", "--setting", `api_root=${peer.url}`);
  const wrong = await add(wrongToken);
  assert.deepEqual(
    [wrong.code, /token refused by Telegram \(Unauthorized\)/.test(wrong.output)],
    [1, true],
    wrong.output,
  );
  const added = await add(peer.token);
  assert.equal(added.code, 0, added.output);
  assert.match(added.output, /telegram:added is added: @added_bot/);
  assert.match(added.output, /parley pairing approve <code> --role owner/);
  peer.say("say: before");
  await peer.untilSent(1);
  const code = /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(peer.sent[0]?.text ?? "")?.[0] ?? "";
  const approved = await parley("pairing", "approve", code, "--role", "owner");
  assert.match(approved.output, /is admitted as owner/);
  peer.say("/whoami");
  await peer.untilSent(2);
  assert.match(peer.sent[1]?.text ?? "", /owner/);
});

test("keeps an added account over a restart, and removes it", async () => {
  await cluster.restart("channel-gateway", 1);
  await cluster.whenReady("channel-gateway", 1);
  await detailsWith(/telegram:added connected as @added_bot/);
  const list = await parley("channels", "list");
  assert.match(list.output, /telegram:added +connected .*added/);
  assert.match(list.output, /telegram:good +\w+ .*parley\.toml/);
  const logs = await parley("channels", "logs", "telegram:added");
  assert.match(logs.output, /lease acquired/);
  assert.ok(!logs.output.includes("telegram:good"), logs.output);
  const remote = await parley("channels", "logs", "telegram:added", "--url", cluster.httpUrl, "--json");
  const lines = remote.output.trim().split("\n");
  assert.ok(
    lines.some((line) => /"service":"channel-gateway".*"msg":"lease acquired"/.test(line)),
    remote.output,
  );
  const followed = startParley(cluster.home, ["channels", "logs", "telegram:good", "--url", cluster.httpUrl, "-f"]);
  await followed.says(/lease acquired/);
  await parley("channels", "pause", "telegram:good");
  await parley("channels", "resume", "telegram:good");
  await followed.says(/lease acquired/);
  followed.kill("SIGINT");
  assert.equal((await followed.outcome()).code, 0);
  const removed = await parley("channels", "remove", "telegram:added");
  assert.match(removed.output, /telegram:added is removed/);
  const refused = await parley("channels", "remove", "telegram:good");
  assert.match(refused.output, /is in parley\.toml/);
  assert.ok(!(await parley("channels", "list")).output.includes("telegram:added"));
});
