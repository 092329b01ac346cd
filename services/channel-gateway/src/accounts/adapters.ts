// Creates the adapter of an account from its settings and secrets. It knows channels only by their entries.
import { channelNamed, secretsOf, type PeoplePolicy } from "@parley/contracts";
import type { ChannelAdapter } from "../channels/channel.ts";
import { loadAdapter } from "../channels/load.ts";

/** Creates an adapter. `read` returns the value of a variable. Rejects with a sentence about the setting that is wrong. */
export async function createAdapter(
  { channel, account }: { channel: string; account: string },
  settings: PeoplePolicy,
  read: (variable: string, setting: string) => Promise<string>,
): Promise<ChannelAdapter> {
  const entry = channelNamed(channel);
  if (entry === undefined) throw new Error(`there is no channel "${channel}"`);
  const values: Record<string, string> = {};
  for (const { setting, variable, purpose, needed } of secretsOf(entry, settings)) {
    const place = `[channels.${channel}.${account}] ${setting}`;
    if (variable === undefined) {
      if (needed) throw new Error(`${place} is missing: ${purpose}`);
      continue;
    }
    values[setting] = await read(variable, setting).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${place}: ${reason}; set it to ${purpose}`, { cause: error });
    });
  }
  const create = await loadAdapter(channel);
  return create(account, settings, values);
}
