// Resolves where a tool sends text: the turn's own conversation, or an address given by the model.
import { accountsOf, exampleAddress, store, type ReplyAddress } from "@parley/contracts";
import type { LocalContext } from "./local-tool.ts";

interface Here {
  replyTo: ReplyAddress | null;
  alsoTo: ReplyAddress[];
}

/** The addresses of the people in this turn. People who read the session itself see the call. */
export function turnAddresses({ replyTo, alsoTo }: Here): ReplyAddress[] {
  return [...(replyTo === null ? [] : [replyTo]), ...alsoTo];
}

/** An address whose account may be missing. */
interface NamedAddress {
  channel: string;
  account: string | undefined;
  conversation: string;
}

/**
 * Parses `channel:account:conversation`; returns a description of the problem if it is invalid. Without an account it is the one of
 * this turn's conversation in the channel, else the only account of the channel, else `default`. The account must be configured or
 * added, unless this turn received a message through it.
 */
export async function parseAddress(
  named: string | { channel: string; conversation: string },
  { settings, turn, leaderStore }: Pick<LocalContext, "settings" | "turn" | "leaderStore">,
): Promise<ReplyAddress | string> {
  const text = typeof named === "string" ? named : `${named.channel}:${named.conversation}`;
  const parsed = typeof named === "string" ? splitAddress(named) : { ...named, account: undefined };
  if (parsed === undefined || parsed.channel === "" || parsed.conversation === "") {
    return `"${text}", which is not of the form channel:account:conversation, such as ${exampleAddress}`;
  }
  const { channel, conversation } = parsed;
  const ofTurn = turnAddresses(turn).filter((each) => each.channel === channel);
  const [own] = ofTurn;
  if (parsed.account === undefined && own !== undefined) return { channel, account: own.account, conversation };
  const inFile = accountsOf(settings);
  const isKnown = (account: string, known: readonly string[]): boolean =>
    ofTurn.some((each) => each.account === account) || known.includes(`${channel}:${account}`);
  if (parsed.account !== undefined && isKnown(parsed.account, inFile)) {
    return { channel, account: parsed.account, conversation };
  }
  const added = await leaderStore.request(store.accountList, {});
  const accounts = [...inFile, ...added.accounts.map((each) => `${each.channel}:${each.account}`)];
  const account = parsed.account ?? onlyAccount(channel, accounts);
  if (isKnown(account, accounts)) return { channel, account, conversation };
  const there = accounts.length === 0 ? "none is configured" : `configured: ${accounts.join(", ")}`;
  return `"${text}", but there is no account ${channel}:${account} (${there})`;
}

/** The account that an address without one means: the channel's only one, or `default`. */
function onlyAccount(channel: string, accounts: readonly string[]): string {
  const [only, ...others] = accounts.filter((each) => each.startsWith(`${channel}:`));
  return only === undefined || others.length > 0 ? "default" : only.slice(channel.length + 1);
}

function splitAddress(text: string): NamedAddress | undefined {
  const [channel = "", second = "", ...rest] = text.split(":");
  if (rest.length === 0) return { channel, account: undefined, conversation: second };
  return second === "" ? undefined : { channel, account: second, conversation: rest.join(":") };
}
