// Where a tool's words go: the conversation at work, or the one it names. Pure.
import { accountsOf, hasAccount, type ParleySettings, type ReplyAddress } from "@parley/contracts";

interface Here {
  replyTo: ReplyAddress | null;
  alsoTo: ReplyAddress[];
}

/** Where the people of this turn are. Those who read the session itself see the call. */
export function currentAddresses({ replyTo, alsoTo }: Here): ReplyAddress[] {
  return [...(replyTo === null ? [] : [replyTo]), ...alsoTo];
}

/**
 * What `channel:account:conversation` names, or in words why nothing can be sent there. `channel:conversation` is one of the account
 * `default`. An account that is in no settings has nobody who sends for it, but where this turn's people are something came from.
 */
export function addressNamed(
  text: string,
  { settings, turn }: { settings: Pick<ParleySettings, "channels">; turn: Here },
): ReplyAddress | string {
  const address = parseAddress(text);
  if (address === undefined)
    return `"${text}", which is not channel:account:conversation, such as telegram:default:12345`;
  const { channel, account } = address;
  const here = currentAddresses(turn).some((each) => each.channel === channel && each.account === account);
  if (here || hasAccount(settings, address)) return address;
  const accounts = accountsOf(settings);
  const there = accounts.length === 0 ? "none is set up" : `there are ${accounts.join(", ")}`;
  return `"${text}", and there is no account ${channel}:${account}: ${there}`;
}

function parseAddress(text: string): ReplyAddress | undefined {
  const [channel = "", second = "", ...rest] = text.split(":");
  const [account, conversation] = rest.length === 0 ? ["default", second] : [second, rest.join(":")];
  if (channel === "" || account === "" || conversation === "") return undefined;
  return { channel, account, conversation };
}
