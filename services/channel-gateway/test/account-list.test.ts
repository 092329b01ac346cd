// Which accounts there are, and where their secrets come from.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { chmod, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { secretVariableFor, secretVariable } from "@parley/contracts";
import { accountChanges, fileAccounts, mergeAccounts } from "../src/accounts/merge.ts";
import { ChannelSecrets } from "../src/accounts/secrets.ts";

const table = (name: string) => `[channels.telegram.${name}]\ntoken_env = "PARLEY_CHANNEL_T"\n`;
const file = fileAccounts(parseSettings(table("main") + table("other"), "test"));
const row = (
  account: string,
  revision: string,
  settings: Record<string, unknown> = { token_env: "PARLEY_CHANNEL_A" },
) => ({
  channel: "telegram",
  account,
  revision,
  settings,
});
const named = (specs: readonly { name: string; origin: string }[]) =>
  specs.map(({ name, origin }) => `${name} ${origin}`);

test("merges added accounts with those of the file, which come first", () => {
  const merged = mergeAccounts(file, [row("main", "1"), row("new", "2")]);
  assert.deepEqual(named(merged), ["telegram:main file", "telegram:other file", "telegram:new added"]);
  const settings = merged[2]?.settings;
  assert.ok(settings !== undefined && !("problem" in settings));
  assert.equal(settings.dm_policy, "pairing", "defaults are filled in");
});

test("keeps an added account whose settings are invalid, with the reason", () => {
  const [, , bad, strange] = mergeAccounts(file, [
    row("bad", "1", { token_env: "HOME" }),
    { ...row("x", "2"), channel: "pigeon" },
  ]);
  assert.match(JSON.stringify(bad?.settings), /token_env: must be the name of an environment variable/);
  assert.match(JSON.stringify(strange?.settings), /there is no channel/);
});

test("replaces only accounts that changed", () => {
  const before = mergeAccounts(file, [row("a", "1"), row("b", "2"), row("c", "3")]);
  const { remove, add } = accountChanges(before, mergeAccounts(file, [row("a", "1"), row("b", "9"), row("d", "4")]));
  assert.deepEqual(remove, ["telegram:b", "telegram:c"]);
  assert.deepEqual(named(add), ["telegram:b added", "telegram:d added"]);
  assert.deepEqual(accountChanges(before, before), { remove: [], add: [] });
});

test("replaces an account whose secrets changed", () => {
  const [main, other] = file;
  assert.ok(main !== undefined && other !== undefined);
  const before = [{ ...main, secretsVersion: "1" }, other];
  const { remove, add } = accountChanges(before, [{ ...main, secretsVersion: "2" }, other]);
  assert.deepEqual([remove, named(add)], [["telegram:main"], ["telegram:main file"]]);
  assert.deepEqual(accountChanges(before, before), { remove: [], add: [] });
});

const folder = mkdtempSync(join(tmpdir(), "parley-secrets-"));
after(() => rm(folder, { recursive: true, force: true }));
const variable = secretVariableFor("telegram", "my-bot", "token_env");

test("names the variable of a secret by its account", () => {
  assert.equal(variable, "PARLEY_CHANNEL_TELEGRAM_MY_BOT_TOKEN");
  assert.equal(secretVariable.safeParse(variable).success, true);
});

test("stores secrets in files that only their owner can read", async () => {
  const inside = join(folder, "new");
  const secrets = new ChannelSecrets(new Map([["PARLEY_CHANNEL_T", "of the environment"]]), inside);
  await secrets.write(variable, "first value");
  await secrets.write(variable, "second value");
  assert.equal((await stat(join(inside, variable))).mode & 0o777, 0o600);
  assert.equal((await stat(inside)).mode & 0o777, 0o700);
  assert.equal(await readFile(join(inside, variable), "utf8"), "second value\n");
  const other = new ChannelSecrets(new Map(), inside);
  assert.equal(await other.read(variable), "second value", "another process reads it");
  assert.deepEqual(other.values, ["second value"], "the log removes it");
  assert.equal(await secrets.read("PARLEY_CHANNEL_T"), "of the environment");
  await secrets.remove(variable);
  await secrets.remove(variable);
  await assert.rejects(other.read(variable), /is not set, and there is no file/);
});

test("changes the version of secrets when one of their files changes", async () => {
  const inside = join(folder, "versions");
  const secrets = new ChannelSecrets(new Map([["PARLEY_CHANNEL_T", "of the environment"]]), inside);
  const version = () => secrets.versionOf(["PARLEY_CHANNEL_T", variable, "PARLEY_CHANNEL_OTHER"]);
  assert.equal(await version(), undefined);
  await secrets.write(variable, "first value");
  const first = await version();
  assert.equal(await version(), first);
  await secrets.write("PARLEY_CHANNEL_T", "hidden by the variable");
  assert.equal(await version(), first);
  await secrets.write(variable, "second value");
  assert.notEqual(await version(), first);
  assert.doesNotMatch(`${first} ${await version()}`, /value/);
});

test("refuses a secret in a file that others can read", async () => {
  const path = join(folder, variable);
  await writeFile(path, "a value\n");
  await chmod(path, 0o644);
  const secrets = new ChannelSecrets(new Map(), folder);
  await assert.rejects(secrets.read(variable), /can be read or changed by others: chmod 600/);
  await chmod(path, 0o440);
  assert.equal(await secrets.read(variable), "a value");
});

test("reads only variables when there is no folder", async () => {
  const secrets = new ChannelSecrets(new Map());
  assert.equal(secrets.canWrite, false);
  await assert.rejects(secrets.read(variable), new Error(`the environment variable ${variable} is not set`));
});
