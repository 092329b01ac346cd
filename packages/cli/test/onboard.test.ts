import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { parseSettings } from "@parley/chassis";
import { channelEntries, channelNamed, neededSecrets } from "@parley/contracts";
import { readSecrets, secretsPath } from "@parley/local";
import {
  Cleanup,
  startScriptedModel,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type ScriptedModel,
  type TelegramPeer,
} from "@parley/testing";

import { changedText } from "../src/cluster/settings-file.ts";
import { setUpSteps } from "../src/onboard/ask-channel.ts";
import { accountsWithoutOwner } from "../src/onboard/connect.ts";
import { missingFlags } from "../src/onboard/given.ts";
import { judge } from "../src/onboard/model-test.ts";
import { planOf } from "../src/onboard/plan.ts";
import { parley, parleyOnTerminal, startOnTerminal } from "./support/parley.ts";

const cleanup = new Cleanup();
let model: ScriptedModel;
let telegram: TelegramPeer;

before(async () => {
  model = await startScriptedModel();
  cleanup.add(() => model.stop());
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
});
after(() => cleanup[Symbol.asyncDispose]());

const key = "sk-ant-a-key-that-nobody-may-see";
const enter = "\r";
const down = "\u001B[B";

/** What the model is configured with, and no other key of the caller. */
function environment() {
  return { ANTHROPIC_BASE_URL: model.url, OPENAI_BASE_URL: `${model.url}/v1` };
}

test("changes settings without losing comments, order and other values", () => {
  const text = '# mine\n[session]\npolicy = "named" # mine too\n\n[agent]\nmax_nudges = 2\nmodel = "rehearsal"\n';
  const { change } = planOf({
    model: { provider: "local", name: "ollama", baseUrl: "http://127.0.0.1:11434/v1", model: "qwen3:8b" },
    preset: "goat",
    channel: { channel: "irc", account: "libera", settings: { host: "h", nick: "n", groups: "#a, #b" }, secrets: {} },
  });
  const changed = changedText(text, change);
  assert.match(changed, /policy = "named" # mine too/);
  assert.match(changed, /^# mine\n/);
  const settings = parseSettings(changed, "parley.toml");
  assert.equal(settings.preset, "goat");
  assert.deepEqual([settings.agent.model, settings.agent.max_nudges], ["ollama", 2]);
  assert.equal(settings.llm["ollama"]?.model, "qwen3:8b");
  assert.deepEqual(settings.channels["irc"]?.["libera"]?.groups, ["#a", "#b"]);
  assert.equal(changedText(changed, change), changed, "a second run changes nothing");
  const back = changedText(
    changed,
    planOf({ model: { provider: "anthropic", key, baseUrl: "" }, preset: null, channel: null }).change,
  );
  assert.deepEqual([parseSettings(back, "x").agent.model, parseSettings(back, "x").preset], [undefined, undefined]);
});

test("asks for every secret that a channel needs with its default settings", () => {
  for (const entry of channelEntries) {
    const needed = new Set(neededSecrets(entry, {}).map(({ setting }) => setting));
    for (const { setting, required } of entry.secrets) {
      if (required === true) assert.ok(needed.has(setting), `${entry.name} ${setting}`);
    }
  }
  const entry = channelNamed("telegram");
  assert.ok(entry);
  assert.deepEqual(missingFlags(entry, {}, { token_env: "f" }), []);
  assert.match(missingFlags(entry, { mode: "webhook" }, {}).join(), /token_env=<file>.*webhook_secret_env=<file>/);
});

test("shows the steps of default settings as plain text, for every channel", () => {
  for (const entry of channelEntries) {
    const steps = setUpSteps(entry);
    assert.ok(steps.length > 1, entry.name);
    for (const step of steps) assert.doesNotMatch(step, /\]\(|`|mode = "(?:webhook|events|lmtp)"/, step);
  }
  const [telegram, slack] = [channelNamed("telegram"), channelNamed("slack")];
  assert.ok(telegram !== undefined && slack !== undefined);
  assert.equal(setUpSteps(telegram).length, 2);
  assert.equal(setUpSteps(telegram, { mode: "webhook" }).length, 3);
  assert.match(
    setUpSteps(slack).join("\n"),
    /the manifest of Slack \(docs\/channels\/slack\.md\)[\s\S]*mode = "socket"/,
  );
});

test("says what a refusal of the model means, without the key", () => {
  const body = (message: string) => JSON.stringify({ error: { message } });
  assert.deepEqual(judge(401, body(`invalid ${key}`), key), {
    outcome: "key_refused",
    text: "The key was refused (401: invalid [key]).",
  });
  assert.equal(judge(404, body("no such model"), key).outcome, "unknown_model");
  assert.match(judge(429, body("quota"), key).text, /limit or credit is used up \(429: quota\)/);
  assert.match(judge(500, "<html>", key).text, /did not answer \(500: <html>\)/);
  assert.equal(judge(200, "", key).outcome, "works");
});

test("looks for an owner only where people can ask for access and nobody is the owner yet", () => {
  const settings = parseSettings(
    `[channels.telegram.new]\ntoken_env = "PARLEY_CHANNEL_A"\n[channels.telegram.admitted]\ntoken_env = "PARLEY_CHANNEL_B"\n` +
      `[channels.telegram.listed]\ntoken_env = "PARLEY_CHANNEL_C"\nowners = ["1"]\n` +
      `[channels.telegram.closed]\ntoken_env = "PARLEY_CHANNEL_D"\ndm_policy = "allowlist"\n`,
    "parley.toml",
  );
  const owner = { channel: "telegram", account: "admitted", contactId: "1", name: null, role: "owner" as const };
  assert.deepEqual(accountsWithoutOwner(settings, { contacts: [owner] }), [{ channel: "telegram", account: "new" }]);
});

test("takes all answers from flags, and refuses a wrong key without writing anything", async () => {
  const home = await temporaryFolder(cleanup);
  const file = join(home, "key.txt");
  writeFileSync(file, `${key}\n`);
  const args = ["onboard", "--yes", "--model-provider", "anthropic", "--api-key-file", file, "--preset", "goat"];
  model.failNext({ status: 401 });
  const refused = await parley(home, args, environment()).outcome();
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /The key was refused \(401: scripted 401\)/);
  assert.equal(existsSync(secretsPath(home)), false);

  const token = join(home, "token.txt");
  writeFileSync(token, telegram.token);
  const channel = ["--channel", "telegram", "--channel-secret-file", `token_env=${token}`];
  const done = await parley(
    home,
    [...args, ...channel, "--channel-set", `api_root=${telegram.url}`],
    environment(),
  ).outcome();
  assert.equal(done.code, 0, done.stderr);
  assert.doesNotMatch(done.stdout + done.stderr, new RegExp(`${key}|${telegram.token}`));
  assert.equal(statSync(secretsPath(home)).mode & 0o777, 0o600);
  assert.deepEqual(readSecrets(home), { ANTHROPIC_API_KEY: key, PARLEY_CHANNEL_TELEGRAM_MAIN_TOKEN: telegram.token });
  const settings = parseSettings(readFileSync(join(home, "parley.toml"), "utf8"), "parley.toml");
  assert.equal(settings.preset, "goat");
  assert.ok(settings.channels["telegram"]?.["main"]);

  const local = ["onboard", "--yes", "--model-provider", "local", "--model-url", `${model.url}/v1`, "--model", "tiny"];
  assert.equal((await parley(home, local, environment()).outcome()).code, 0);
  assert.match(readFileSync(join(home, "parley.toml"), "utf8"), /model = "local"[\s\S]*\[llm\.local\]/);
  assert.match((await parley(home, ["onboard", "--yes"]).outcome()).stderr, /Choose a provider with --model-provider/);
  assert.match((await parley(home, ["onboard"]).outcome()).stderr, /needs a terminal/);
});

test("asks on a terminal, asks again for a refused key, and stores the answers at the end", async () => {
  const home = await temporaryFolder(cleanup);
  const run = parleyOnTerminal(home, ["onboard", "--offer"], environment());
  await run.says(/No model is configured yet/);
  run.write(enter);
  await run.says(/Which model do you want to use/);
  run.write(enter); // Claude
  await run.says(/API key \(stored/);
  model.failNext({ status: 401 });
  run.write(`sk-wrong${enter}`);
  await run.says(/The key was refused \(401: scripted 401\)/);
  await run.says(/API key \(stored/);
  run.write(`${key}${enter}`);
  await run.says(/claude\S* \(Claude\) answers/);
  await run.says(/How should it work/);
  run.write(`${down}${enter}`); // Careful worker
  await run.says(/Where do you want to write to Parley/);
  run.write(`${down}${enter}`); // Telegram
  await run.says(/Setting up Telegram[\s\S]*?BotFather/);
  await run.says(/The bot's token from @BotFather \(token_env/);
  assert.equal(existsSync(join(home, "parley.toml")), false, "nothing is written before the last answer");
  run.write(`${telegram.token}${enter}`);
  await run.says(/Done/);
  const { code, stdout, stderr } = await run.outcome();
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stdout, new RegExp(`${key}|sk-wrong|${telegram.token}`));
  assert.equal(readSecrets(home)["ANTHROPIC_API_KEY"], key);
  assert.equal(parseSettings(readFileSync(join(home, "parley.toml"), "utf8"), "parley.toml").preset, "goat");
});

test("changes nothing and goes on when the person declines the offer", async () => {
  const home = await temporaryFolder(cleanup);
  const run = parleyOnTerminal(home, ["onboard", "--offer"], environment());
  await run.says(/No model is configured yet/);
  run.write(`${down}${enter}`);
  await run.says(/The rehearsal model answers until then/);
  const { code, stderr } = await run.outcome();
  assert.equal(code, 0, stderr);
  assert.deepEqual([existsSync(join(home, "parley.toml")), existsSync(secretsPath(home))], [false, false]);
});

test("offers the set-up at the first start on a terminal, and starts nothing when it is cancelled", async () => {
  const home = await temporaryFolder(cleanup);
  const run = startOnTerminal(home);
  await run.says(/No model is configured yet/);
  run.write("\u0003");
  const { code, stdout } = await run.outcome();
  assert.notEqual(code, 0);
  assert.match(stdout, /cancelled; nothing was changed/);
  assert.doesNotMatch(stdout, /ready in/);
  assert.equal(existsSync(join(home, "parley.toml")), false);
});

test("writes nothing when the person ends the questions with Ctrl-C", async () => {
  const home = await temporaryFolder(cleanup);
  const run = parleyOnTerminal(home, ["onboard"], environment());
  await run.says(/Which model do you want to use/);
  run.write("\u0003");
  const { code, stdout } = await run.outcome();
  assert.equal(code, 130);
  assert.match(stdout, /cancelled; nothing was changed/);
  assert.equal(existsSync(join(home, "parley.toml")), false);
});

test("makes the person who writes the owner of the new account, and sends a message", async () => {
  const home = await temporaryFolder(cleanup);
  const files = { token_env: join(home, "token.txt") };
  writeFileSync(files.token_env, telegram.token);
  const args = ["onboard", "--yes", "--model-provider", "rehearsal", "--channel", "telegram"];
  const flags = ["--channel-secret-file", `token_env=${files.token_env}`, "--channel-set", `api_root=${telegram.url}`];
  assert.equal((await parley(home, [...args, ...flags]).outcome()).code, 0);
  // The start reads the stored secret: the cluster's environment does not contain it.
  const first = await startTestCluster(cleanup, { home, processes: [] });
  const later = parleyOnTerminal(home, ["onboard", "--connect"]);
  await later.says(/Write any message to it on Telegram now/);
  telegram.say("hello", { from: 4711 });
  await later.says(/\(4711\) wrote on Telegram. Is that you/);
  later.write("\u0003");
  await later.says(/No owner yet\. Later: /);
  assert.equal((await later.outcome()).code, 0);
  const run = parleyOnTerminal(home, ["onboard", "--connect"]);
  await run.says(/\(4711\) wrote on Telegram. Is that you/);
  run.write(enter);
  await run.says(/You are the owner\. A message was sent/);
  assert.equal((await run.outcome()).code, 0);
  assert.ok(telegram.sent.some(({ chatId, text }) => String(chatId) === "4711" && text.includes("you are its owner")));
  telegram.say("say: it works", { from: 4711 });
  await telegram.until("an answer", () => telegram.sent.find(({ text }) => text.includes("it works")) ?? null);
  // Nothing is left to connect.
  assert.equal((await parleyOnTerminal(home, ["onboard", "--connect"]).outcome()).code, 0);
  // Again without the secret in the environment: the token and the owner are stored.
  await first.stop();
  await startTestCluster(cleanup, { again: first, processes: [] });
  telegram.say("say: it works after a restart", { from: 4711 });
  await telegram.until("an answer", () => telegram.sent.find(({ text }) => text.includes("after a restart")) ?? null);
});

test("asks nothing for a new account when Parley does not run", async () => {
  const { code, stdout } = await parleyOnTerminal(await temporaryFolder(cleanup), [
    "channels",
    "add",
    "telegram",
  ]).outcome();
  assert.equal(code, 1);
  assert.match(stdout, /no cluster has run there yet[\s\S]*npm start/);
  assert.doesNotMatch(stdout, /BotFather/);
});

test("adds an account with one command: hides secrets, refuses a wrong token, and offers the first person as owner", async () => {
  await using platform = await startTelegramPeer();
  const home = await temporaryFolder(cleanup);
  await startTestCluster(cleanup, { home, processes: [] });
  const add = () => parleyOnTerminal(home, ["channels", "add", "telegram", "--setting", `api_root=${platform.url}`]);
  const wrong = add();
  await wrong.says(/token from @BotFather \(token_env, not shown\): /);
  wrong.write(`7000002:AAWrongTokenOfNobodyForTestsOnly${enter}`);
  const refused = await wrong.outcome();
  assert.equal(refused.code, 1);
  assert.match(refused.stdout, /token refused by Telegram \(Unauthorized\)/);
  assert.match(refused.stdout, /Nothing was added\. docs\/channels\/telegram\.md explains it under Troubleshooting/);
  assert.doesNotMatch(refused.stdout, /AAWrongToken/);
  const matrix = parleyOnTerminal(home, ["channels", "add", "matrix"]);
  await matrix.says(/your own Matrix id.*\(owners\): /i);
  matrix.write(`@bea:example.net${enter}`);
  await matrix.says(/client API.*\(homeserver\): /);
  matrix.write(`${platform.url}${enter}`);
  await matrix.says(/access token.*\(token_env, not shown\): /);
  matrix.write(`syt_a-token-that-nobody-may-see${enter}`);
  const { stdout } = await matrix.outcome();
  assert.equal(stdout.split("@bea:example.net").length, 2, "an answer is echoed once");
  assert.doesNotMatch(stdout, /nobody-may-see/, "a secret is not shown after a question whose answer is");
  const run = add();
  await run.says(/token from @BotFather \(token_env, not shown\): /);
  run.write(`${platform.token}${enter}`);
  await run.says(/Now write to it/);
  platform.say("hello", { from: 4711 });
  await run.says(/\(4711\) wrote to it and received a code/);
  const [told] = await platform.untilSent(1);
  await run.says(/enter the code/);
  run.write(`${/[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(told?.text ?? "")?.[0]}${enter}`);
  await run.says(/is the owner/);
  assert.equal((await run.outcome()).code, 0);
});
