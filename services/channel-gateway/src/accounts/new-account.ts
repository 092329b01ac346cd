// Checks an account before it is added: its settings, its secrets, and the platform's answer to its credentials.
import {
  channelEntries,
  channelNamed,
  errorMessage,
  profileNames,
  secretsOf,
  secretVariableFor,
  type ParleySettings,
  type PeoplePolicy,
} from "@parley/contracts";
import type { ChannelAdapter } from "../channels/channel.ts";
import { OperationError, type NewAccount } from "../operations/operation.ts";
import { createAdapter } from "./adapters.ts";
import { parseAccount, type AccountSpec } from "./merge.ts";
import type { ChannelSecrets } from "./secrets.ts";

/** How long the platform has to confirm the credentials. */
const verifyMs = 4_000;

export interface PreparedAccount {
  /** As they are stored: the given ones, and the names of the secrets' variables. */
  settings: Record<string, unknown>;
  /** The account's own name on the platform; null: not verified. */
  as: string | null;
  /** Values of secrets by variable. */
  toStore: ReadonlyMap<string, string>;
}

/** Stores nothing. Throws OperationError with a reason for people. */
export async function prepareAccount(
  deps: { settings: ParleySettings; secrets: ChannelSecrets },
  input: NewAccount,
): Promise<PreparedAccount> {
  const { channel, account, secrets, unverified } = input;
  const entry = channelNamed(channel);
  if (entry === undefined) {
    const known = channelEntries.map(({ name }) => name).join(", ");
    throw invalid(`there is no channel "${channel}"; known: ${known}`);
  }
  const own = new Set(entry.secrets.map(({ setting }) => setting));
  const strange = Object.keys(secrets).find((setting) => !own.has(setting));
  if (strange !== undefined) throw invalid(`${channel} has no secret "${strange}"; it has: ${[...own].join(", ")}`);
  const settings: Record<string, unknown> = { ...input.settings };
  for (const { setting, required } of entry.secrets) {
    if (setting in secrets || required === true) settings[setting] ??= secretVariableFor(channel, account, setting);
  }
  const parsed = parseAccount({ channel, settings });
  if ("problem" in parsed) throw invalid(parsed.problem);
  checkProfile(deps.settings, parsed);
  const toStore = valuesToStore(deps.secrets, secretsOf(entry, parsed), secrets);
  let adapter: ChannelAdapter;
  try {
    adapter = await createAdapter(
      input,
      parsed,
      async (variable) => toStore.get(variable) ?? deps.secrets.read(variable),
    );
  } catch (error) {
    throw invalid(errorMessage(error));
  }
  return { settings, as: unverified ? null : await verify(adapter), toStore };
}

/** The variables of all secrets of an account. */
export function secretVariablesOf(spec: AccountSpec): string[] {
  return namedSecretsOf(spec).map(({ variable }) => variable);
}

/** The variables of secrets that `prepareAccount` named. */
export function ownSecretsOf(spec: AccountSpec): string[] {
  return namedSecretsOf(spec)
    .filter(({ setting, variable }) => variable === secretVariableFor(spec.channel, spec.account, setting))
    .map(({ variable }) => variable);
}

function namedSecretsOf({ channel, settings }: AccountSpec): { setting: string; variable: string }[] {
  const entry = channelNamed(channel);
  if (entry === undefined || "problem" in settings) return [];
  return secretsOf(entry, settings).flatMap(({ setting, variable }) =>
    variable === undefined ? [] : [{ setting, variable }],
  );
}

function valuesToStore(
  known: ChannelSecrets,
  named: ReturnType<typeof secretsOf>,
  values: Readonly<Record<string, string>>,
): Map<string, string> {
  const toStore = new Map<string, string>();
  for (const { setting, variable } of named) {
    const value = values[setting];
    if (value === undefined || variable === undefined) continue;
    if (known.isVariable(variable))
      throw new OperationError(
        "conflict",
        `the environment variable ${variable} is set and takes precedence over a stored secret: leave out ${setting}, or unset the variable and restart`,
      );
    toStore.set(variable, value.trim());
  }
  if (toStore.size > 0 && !known.canWrite)
    throw invalid(
      "this gateway has no folder for secrets that it may write: set PARLEY_SECRETS_DIR, or put each secret in an environment variable that the settings name",
    );
  return toStore;
}

function checkProfile(settings: ParleySettings, { profile }: PeoplePolicy): void {
  const known = profileNames(settings);
  if (profile !== undefined && !known.includes(profile))
    throw invalid(`profile: there is no profile "${profile}"; known: ${known.join(", ")}`);
}

/** Returns the account's own name; null when there is nothing to check before it is connected. */
async function verify(adapter: ChannelAdapter): Promise<string | null> {
  if (adapter.check === undefined) return null;
  const signal = AbortSignal.timeout(verifyMs);
  try {
    return (await adapter.check(signal))?.as ?? null;
  } catch (error) {
    const reason = signal.aborted ? `the platform did not answer within ${verifyMs / 1_000} s` : errorMessage(error);
    throw new OperationError("account_rejected", reason);
  }
}

function invalid(message: string): OperationError {
  return new OperationError("invalid_request", message);
}
