// Loads the adapters of configured channels: the folder with the channel's name. A channel that is not configured costs nothing.
import type { ChannelEntry, PeoplePolicy } from "@parley/contracts";
import type { z } from "zod";
import type { ChannelAdapter } from "./channel.ts";

/** Creates the adapter of one account. Throws an Error for settings that the platform cannot use. */
export type CreateAdapter = (
  account: string,
  settings: PeoplePolicy,
  /** The values of the secrets, by the setting that names their variable. */
  secrets: Readonly<Record<string, string>>,
) => ChannelAdapter;

/** What the `index.ts` of a channel's folder exports. */
interface ChannelModule {
  createAdapter: CreateAdapter;
}

/** Gives `create` the settings with the type of its entry, whose schema has parsed them. */
export function adapterOf<S extends z.ZodType<PeoplePolicy>>(
  _entry: ChannelEntry<S>,
  create: (account: string, settings: z.output<S>, secrets: Readonly<Record<string, string>>) => ChannelAdapter,
): CreateAdapter {
  return (account, settings, secrets) => create(account, settings as z.output<S>, secrets);
}

/** Rejects when the channel's folder or one of its libraries is missing. */
export async function loadAdapter(channel: string): Promise<CreateAdapter> {
  const { createAdapter } = (await import(`./${channel}/index.ts`)) as ChannelModule;
  return createAdapter;
}
