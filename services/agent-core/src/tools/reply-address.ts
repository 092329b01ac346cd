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

/**
 * Parses `channel:account:conversation`; returns a description of the problem if it is invalid. `channel:conversation` uses the
 * account `default`. The account must be configured or added, unless this turn received a message through it.
 */
export async function parseAddress(
  text: string,
  { settings, turn, leaderStore }: Pick<LocalContext, "settings" | "turn" | "leaderStore">,
): Promise<ReplyAddress | string> {
  const address = splitAddress(text);
  if (address === undefined)
    return `"${text}", which is not of the form channel:account:conversation, such as ${exampleAddress}`;
  const { channel, account } = address;
  const here = turnAddresses(turn).some((each) => each.channel === channel && each.account === account);
  const name = `${channel}:${account}`;
  const inFile = accountsOf(settings);
  if (here || inFile.includes(name)) return address;
  const added = await leaderStore.request(store.accountList, {});
  const accounts = [...inFile, ...added.accounts.map((each) => `${each.channel}:${each.account}`)];
  if (accounts.includes(name)) return address;
  const there = accounts.length === 0 ? "none is configured" : `configured: ${accounts.join(", ")}`;
  return `"${text}", but there is no account ${name} (${there})`;
}

function splitAddress(text: string): ReplyAddress | undefined {
  const [channel = "", second = "", ...rest] = text.split(":");
  const [account, conversation] = rest.length === 0 ? ["default", second] : [second, rest.join(":")];
  if (channel === "" || account === "" || conversation === "") return undefined;
  return { channel, account, conversation };
}
