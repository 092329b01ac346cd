// `parley channels add`: asks for the credentials of an account, adds it to the running cluster, and admits its owner.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import {
  channelEntries,
  channelNamed,
  exampleAddress,
  neededSecrets,
  openQuestions,
  type ChannelEntry,
} from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { z } from "zod";

import { asTyped } from "../io/command-name.ts";
import { api } from "../cluster/api.ts";
import { Gateway, RequestRejectedError, unlessAway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { ask, canAsk, CliError, exitCodes, note, print, printJson, readAll, UsageError, type Io } from "../io/io.ts";
import { flag, jsonOption, targetOptions, text } from "../io/options.ts";
import { questionText, setUpSteps } from "../onboard/ask-channel.ts";
import { oneLine } from "../tables/format.ts";
import { operand, type Call, type CommandSpec } from "./command.ts";

/** Longer than the gateway waits for the platform. */
const addTimeoutMs = 20_000;
const pollMs = 1_000;
/** Gateways read a new account within 5 s; a platform may take some more. */
const connectWaitMs = 30_000;
/** How long the command waits for the first message of the owner. */
const ownerWaitMs = 10 * 60_000;

const [exampleChannel = ""] = exampleAddress.split(":");
const nameChannel = `Name a channel: ${channelEntries.map(({ name }) => name).join(", ")}.`;

export const addChannelCommand: CommandSpec = {
  name: "channels add",
  summary: "add an account of a chat platform while the cluster runs, or change one that was added",
  operands: ["<channel>[:<name>]"],
  options: {
    ...targetOptions,
    ...jsonOption,
    setting: text("<name>=<value>", "a setting of the account, as in parley.toml; repeatable. Lists: a,b"),
    "secret-file": text("<setting>=<file>", "a file with a secret, for example token_env=token.txt; repeatable"),
    unverified: flag("add the account even if the platform does not confirm the credentials"),
  },
  details: `On a terminal it asks for the secrets. Otherwise it reads them from standard input, one a line, in the order of docs/channels.md.
The gateway stores them in files that only it can read. For an added account, an empty secret stays as it was. A setting that ends in _env names an environment variable of the gateways
instead. The name is main unless you give another one.`,
  examples: [
    `parley channels add ${exampleChannel}`,
    `parley channels add ${exampleChannel}:work --setting owners=4711 < token.txt`,
  ],
  run,
};

async function run({ values, positionals, io }: Call): Promise<number> {
  const [channel = "", account = "main"] = operand(positionals, nameChannel).split(":");
  const entry = channelNamed(channel);
  if (entry === undefined) throw new UsageError(`There is no channel "${channel}".`, nameChannel);
  const given = values.texts("setting").map((each) => pair(each, "--setting"));
  const settings = settingsOf(entry, given);
  const files = values.texts("secret-file").map((each) => pair(each, "--secret-file"));
  const secrets = Object.fromEntries(files.map(([name, file]) => [name, readFileSync(resolve(io.cwd, file), "utf8")]));
  const gateway = new Gateway(findTarget(values, io));
  // First, so that nobody answers questions for a cluster that does not run.
  const { accounts } = await gateway.run(api.channels);
  const isChange = accounts.some(
    (each) => each.channel === channel && each.account === account && each.origin === "added",
  );
  if (canAsk(io)) for (const step of setUpSteps(entry, settings)) note(io, step);
  await askForSettings(entry, settings, io);
  Object.assign(secrets, await askForSecrets(entry, settings, secrets, { io, isChange }));
  const input = { channel, account, settings, secrets, unverified: values.has("unverified") };
  const added = await gateway.run(api.addChannel, input, addTimeoutMs).catch((error: unknown) => {
    throw isRefusal(error) ? new CliError(error.message, { fix: refusalFix(entry, input) }) : error;
  });
  if (values.has("json")) {
    printJson(io, added);
    return exitCodes.ok;
  }
  const as = added.as === null ? "" : `: ${oneLine(added.as, 80)}`;
  print(io, `${channel}:${account} is ${added.replaced ? "changed" : "added"}${as}.`);
  const { owners, dm_policy: policy = "pairing" } = settings;
  if (policy !== "pairing" || (Array.isArray(owners) && owners.length > 0)) return exitCodes.ok;
  const { contacts } = await gateway.run(api.people);
  const isOwner = (each: (typeof contacts)[number]) =>
    each.role === "owner" && each.channel === channel && each.account === account;
  return contacts.some(isOwner) ? exitCodes.ok : offerOwner(gateway, io, { channel, account });
}

const isRefusal = (error: unknown): error is RequestRejectedError =>
  error instanceof RequestRejectedError && error.status !== 401 && error.status < 500;

/** What to do when the platform, or the check of the settings, refuses the account. */
function refusalFix({ name }: ChannelEntry, { channel, account }: { channel: string; account: string }): string {
  const page = `docs/channels/${name}.md`;
  return `Nothing was added. ${page} explains it under Troubleshooting. Correct it and repeat: parley channels add ${channel}:${account}`;
}

function pair(given: string, option: string): [name: string, value: string] {
  const at = given.indexOf("=");
  if (at > 0) return [given.slice(0, at), given.slice(at + 1)];
  throw new UsageError(`${option}: "${given}" is not of the form name=value.`);
}

interface SettingsSchema {
  properties?: Record<string, { type?: string }>;
}

const schemaOf = ({ settings }: ChannelEntry) => z.toJSONSchema(settings, { io: "input" }) as SettingsSchema;

/** The settings with the types of the entry. A list is `a,b`; `yes` is true. */
function settingsOf(entry: ChannelEntry, given: readonly [string, string][]): Record<string, unknown> {
  const { properties = {} } = schemaOf(entry);
  return Object.fromEntries(given.map(([name, value]) => [name, typed(value, properties[name]?.type)]));
}

function typed(value: string, type: string | undefined): unknown {
  if (type === "string") return value;
  if (type === "boolean") return /^y(?:es)?$/i.test(value.trim()) || (parseJson(value.trim()) ?? value);
  const parsed = parseJson(value);
  if (type === "array" && !Array.isArray(parsed)) return value.split(",").map((each) => each.trim());
  return parsed ?? value;
}

/** Asks for the settings that the account needs and that are not given. */
async function askForSettings(entry: ChannelEntry, settings: Record<string, unknown>, io: Io): Promise<void> {
  const missing = openQuestions(entry, settings);
  if (missing.length > 0 && !canAsk(io))
    throw new UsageError(`${entry.title} needs ${missing.map(({ setting }) => `--setting ${setting}=…`).join(" ")}.`);
  const { properties = {} } = schemaOf(entry);
  for (const { setting, purpose } of missing) {
    const answer = await ask(io, `${questionText(setting, purpose)}: `);
    settings[setting] = typed(answer.trim(), properties[setting]?.type);
  }
}

/** The secrets that the account needs and that are neither given nor named as variables. `isChange`: an empty one stays as it is. */
async function askForSecrets(
  entry: ChannelEntry,
  settings: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, string>>,
  { io, isChange }: { io: Io; isChange: boolean },
): Promise<Record<string, string>> {
  const missing = neededSecrets(entry, settings).filter(
    ({ setting, variable }) => variable === undefined && !(setting in given),
  );
  if (missing.length === 0) return {};
  const lines = canAsk(io) ? null : (await readAll(io.stdin)).split(/\r?\n/);
  const found: Record<string, string> = {};
  const remark = isChange ? ", not shown; empty: unchanged" : ", not shown";
  for (const [index, { setting, purpose }] of missing.entries()) {
    const value =
      (lines === null
        ? await ask(io, `${questionText(setting, purpose, remark)}: `, { hidden: true })
        : lines[index]
      )?.trim() ?? "";
    if (value !== "") found[setting] = value;
    else if (!isChange) throw new UsageError(`${setting} is missing: ${purpose}.`);
  }
  return found;
}

/** Waits for the first person who writes, and admits them as owner if they know their code. */
async function offerOwner(gateway: Gateway, io: Io, of: { channel: string; account: string }): Promise<number> {
  const later = asTyped("Its answer has a code. Become its owner with: parley pairing approve <code> --role owner");
  if (!canAsk(io)) {
    print(io, `Write to it. ${later}`);
    return exitCodes.ok;
  }
  await untilConnected(gateway, io, of);
  print(io, "Now write to it from your own account. Waiting for your message; Ctrl-C ends the command.");
  const until = Date.now() + ownerWaitMs;
  for (;;) {
    const open = await unlessAway(gateway.run(api.pairings));
    const first = open?.pairings.find(({ channel, account }) => channel === of.channel && account === of.account);
    if (first !== undefined) {
      const who = `${oneLine(first.name ?? first.contactId, 60)} (${first.contactId})`;
      print(io, `${who} wrote to it and received a code.`);
      return admitOwner(gateway, io);
    }
    if (Date.now() > until) {
      print(io, `Nobody has written yet. ${later}`);
      return exitCodes.ok;
    }
    await delay(pollMs);
  }
}

/** Waits until the account receives messages: what is written before may be lost. Says why it does not, and goes on. */
async function untilConnected(gateway: Gateway, io: Io, of: { channel: string; account: string }): Promise<void> {
  const until = Date.now() + connectWaitMs;
  for (;;) {
    const known = await unlessAway(gateway.run(api.channels));
    const found = known?.accounts.find(({ channel, account }) => channel === of.channel && account === of.account);
    if (found?.state === "connected" || found?.state === "listening") return;
    if (found?.state === "disabled" || Date.now() > until) {
      const why = found?.reason ?? "no gateway has connected it yet";
      note(io, `It is not connected: ${oneLine(why, 300)}. docs/channels/${of.channel}.md explains it.`);
      return;
    }
    await delay(pollMs);
  }
}

async function admitOwner(gateway: Gateway, io: Io): Promise<number> {
  for (;;) {
    const code = (await ask(io, "If this is you, enter the code to be the owner (empty: not now): ")).trim();
    if (code === "") return exitCodes.ok;
    try {
      const { contact } = await gateway.run(api.approvePairing, { code, role: "owner" });
      print(io, `${oneLine(contact.name ?? contact.contactId, 60)} is the owner.`);
      return exitCodes.ok;
    } catch (error) {
      if (!(error instanceof RequestRejectedError) || error.status !== 404) throw error;
      note(io, "No open request has this code.");
    }
  }
}
