// Which accounts there are: those of parley.toml, and those that were added while the cluster runs. Pure.
import { channelNamed, channelEntries, type ParleySettings, type PeoplePolicy, type store } from "@parley/contracts";

/** An account as it should be. */
export interface AccountSpec {
  /** `channel:account`. */
  name: string;
  channel: string;
  account: string;
  origin: "file" | "added";
  /** Another value when the account changed. */
  revision: string;
  /** Another value when a file of its secrets changed. */
  secretsVersion?: string;
  /** The settings, or why they cannot be used. */
  settings: PeoplePolicy | { problem: string };
}

/** The accounts of parley.toml. */
export function fileAccounts({ channels }: Pick<ParleySettings, "channels">): AccountSpec[] {
  return channelEntries.flatMap(({ name: channel }) =>
    Object.entries(channels[channel] ?? {}).map(([account, settings]) => ({
      name: `${channel}:${account}`,
      channel,
      account,
      origin: "file" as const,
      revision: "file",
      settings,
    })),
  );
}

/** Reads the settings of an added account with the entry of its channel; a newer gateway may have stored them. */
export function parseAccount({ channel, settings }: Pick<store.AddedAccount, "channel" | "settings">) {
  const entry = channelNamed(channel);
  if (entry === undefined) return { problem: `there is no channel "${channel}"` };
  const parsed = entry.settings.safeParse(settings);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join(".")}: ${message}`,
  );
  return { problem: problems.join("; ") };
}

/** All accounts. An account of parley.toml hides an added one with the same name. */
export function mergeAccounts(file: readonly AccountSpec[], added: readonly store.AddedAccount[]): AccountSpec[] {
  const inFile = new Set(file.map(({ name }) => name));
  const others = added.map((row) => {
    const { channel, account, revision } = row;
    const place = { name: `${channel}:${account}`, channel, account };
    return { ...place, origin: "added" as const, revision, settings: parseAccount(row) };
  });
  return [...file, ...others.filter(({ name }) => !inFile.has(name))];
}

type AccountVersion = Pick<AccountSpec, "name" | "revision" | "secretsVersion">;

/** What to do so that `current` becomes `wanted`. A changed account is removed and added. */
export function accountChanges(
  current: readonly AccountVersion[],
  wanted: readonly AccountSpec[],
): { remove: string[]; add: AccountSpec[] } {
  const has = (list: readonly AccountVersion[], each: AccountVersion) =>
    list.some(
      ({ name, revision, secretsVersion }) =>
        name === each.name && revision === each.revision && secretsVersion === each.secretsVersion,
    );
  return {
    remove: current.filter((each) => !has(wanted, each)).map(({ name }) => name),
    add: wanted.filter((each) => !has(current, each)),
  };
}
