// Makes a person the owner of a new account: they write to it, confirm that it was them, and receive a text there.

import { setTimeout as delay } from "node:timers/promises";

import { channelNamed, type ParleySettings } from "@parley/contracts";

import { api, type Answer } from "../cluster/api.ts";
import { unlessAway, type Gateway } from "../cluster/gateway.ts";
import { oneLine } from "../tables/format.ts";
import { type Prompts, SetUpCancelled } from "./prompts.ts";

const pollMs = 1_000;
const deliveryTimeoutMs = 30_000;

export interface Account {
  readonly channel: string;
  readonly account: string;
}

type People = Answer<typeof api.people>;
type Person = People["pairings"][number];

/** Accounts that take pairing requests and have no owner, neither in the settings nor admitted; pure. */
export function accountsWithoutOwner(
  { channels }: Pick<ParleySettings, "channels">,
  { contacts }: Pick<People, "contacts">,
): Account[] {
  return Object.entries(channels).flatMap(([channel, accounts]) =>
    Object.entries(accounts).flatMap(([account, { owners, dm_policy: policy }]) => {
      const admitted = contacts.some(
        (each) => each.channel === channel && each.account === account && each.role === "owner",
      );
      return owners.length > 0 || policy !== "pairing" || admitted ? [] : { channel, account };
    }),
  );
}

/** Waits for the owner of each account. A refused account and Ctrl-C are reported, and the next account follows. */
export async function connectOwners(prompts: Prompts, gateway: Gateway, settings: ParleySettings): Promise<void> {
  const accounts = accountsWithoutOwner(settings, await gateway.run(api.people));
  for (const account of accounts) await connectOwner(prompts, gateway, account);
}

async function connectOwner(prompts: Prompts, gateway: Gateway, account: Account): Promise<void> {
  const title = channelNamed(account.channel)?.title ?? account.channel;
  const name = `${account.channel}:${account.account}`;
  const test = await gateway.run(api.testChannel, { ...account });
  if (!test.ok) {
    prompts.warn(
      `${title} refuses the account: ${test.text}\nCorrect it with: npx parley onboard --channel-only, then restart.`,
    );
    return;
  }
  prompts.say(test.text);
  const refused = new Set<string>();
  for (;;) {
    const person = await untilSomebodyWrites(prompts, gateway, account, title, refused);
    const isOwner = person !== null && (await isThem(prompts, person, title));
    if (person === null || isOwner === null) {
      prompts.warn(
        `No owner yet. Later: npx parley onboard --connect, or npx parley people allow ${name} <id> --role owner`,
      );
      return;
    }
    if (isOwner) {
      await gateway.run(api.setPerson, { ...account, contactId: person.contactId, role: "owner" });
      prompts.say(await greet(gateway, account, person.contactId, title));
      return;
    }
    refused.add(person.contactId);
  }
}

/** Whether the person says that they wrote; null after Ctrl-C: owners of earlier accounts stay. */
async function isThem(prompts: Prompts, { name, contactId }: Person, title: string): Promise<boolean | null> {
  const who = `${oneLine(name ?? contactId, 60)} (${contactId})`;
  try {
    return await prompts.confirm(`${who} wrote on ${title}. Is that you? They become the owner, with all rights.`);
  } catch (error) {
    if (error instanceof SetUpCancelled) return null;
    throw error;
  }
}

/** The first open pairing request of the account; null after Ctrl-C. */
async function untilSomebodyWrites(
  prompts: Prompts,
  gateway: Gateway,
  { channel, account }: Account,
  title: string,
  refused: ReadonlySet<string>,
): Promise<Person | null> {
  const waiting = prompts.wait(
    `Write any message to it on ${title} now, with your own account (${channel}:${account}; Ctrl-C: later)`,
  );
  while (!waiting.cancelled.aborted) {
    const open = await unlessAway(gateway.run(api.people));
    const found = open?.pairings.find(
      (each) => each.channel === channel && each.account === account && !refused.has(each.contactId),
    );
    if (found !== undefined) {
      waiting.stop("A message has arrived");
      return found;
    }
    await delay(pollMs, undefined, { signal: waiting.cancelled }).catch(() => undefined);
  }
  return null;
}

const greeting = "Parley is connected, and you are its owner here. Write /help for what you can do.";

/** Sends a text where a person's id is an address, and otherwise explains the next step. Returns what to tell the person. */
async function greet(gateway: Gateway, account: Account, contactId: string, title: string): Promise<string> {
  if (channelNamed(account.channel)?.contactIdIsConversationId !== true) {
    return `You are the owner. Write to it on ${title} again: now Parley answers.`;
  }
  const address = { ...account, conversation: contactId };
  const { outboxId } = await gateway.run(api.sendText, { ...address, text: greeting });
  const until = performance.now() + deliveryTimeoutMs;
  for (;;) {
    const { state } = await gateway.run(api.delivery, { id: outboxId });
    if (state === "sent") return `You are the owner. A message was sent to you on ${title}.`;
    const open = state === "pending" || state === "sending";
    if (!open || performance.now() > until) {
      return `You are the owner. The test message is "${state}": npx parley channels status ${account.channel}:${account.account} shows why.`;
    }
    await delay(pollMs / 4);
  }
}
