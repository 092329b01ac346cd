// The options of `parley run`, and the session that it continues.

import { type PermissionMode, permissionModes, type QueueMode, type SessionSummary } from "@parley/contracts";

import { mainSession, modeOf, ownPrefix, speakingName } from "../chat/open.ts";
import { api } from "../cluster/api.ts";
import { type Gateway, RequestRejectedError } from "../cluster/gateway.ts";
import { CliError, UsageError } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";

export const outputFormats = ["text", "json", "stream-json"] as const;
type OutputFormat = (typeof outputFormats)[number];
export const inputFormats = ["text", "stream-json"] as const;

export interface RunOptions {
  readonly output: OutputFormat;
  readonly streamInput: boolean;
  /** Maximum number of model calls; null: by the settings. */
  readonly maxTurns: number | null;
  readonly partial: boolean;
  readonly mode: QueueMode | undefined;
  /** The permission mode of the session during the run; null: unchanged. */
  readonly permissionMode: PermissionMode | null;
  /** The named chat, if any. */
  readonly conversation: string | undefined;
  /** The session to continue: an id or key, or the most recently used one. */
  readonly session: { readonly resume: string } | "last" | null;
  /** Null: read it from standard input. */
  readonly prompt: string | null;
}

/** Throws UsageError for options that exclude each other. */
export function runOptions(values: OptionValues, positionals: readonly string[]): RunOptions {
  const output = outputFormats.find((each) => each === (values.text("output") ?? "text")) ?? "text";
  const streamInput = values.text("input-format") === "stream-json";
  const [prompt = null] = positionals;
  const resume = values.text("resume");
  if (resume !== undefined && values.has("continue"))
    throw new UsageError("Use either --resume or --continue, not both.");
  if (streamInput && output !== "stream-json") {
    throw new UsageError("--input-format stream-json needs --output stream-json.");
  }
  if (streamInput && prompt !== null)
    throw new UsageError("--input-format stream-json reads messages from standard input: remove the prompt.");
  if (values.has("partial") && output !== "stream-json") throw new UsageError("--partial needs --output stream-json.");
  return {
    output,
    streamInput,
    maxTurns: values.number("max-turns", "a number of 1 or more", { max: 999_999 }) ?? null,
    partial: values.has("partial"),
    mode: modeOf(values),
    permissionMode: permissionModeOf(values),
    conversation: values.text("conversation"),
    session: resume === undefined ? (values.has("continue") ? "last" : null) : { resume },
    prompt: prompt === "-" ? null : prompt,
  };
}

/** Modes as the Claude Agent SDK spells them. */
const sdkModes: Readonly<Partial<Record<string, PermissionMode>>> = {
  acceptEdits: "accept_edits",
  dontAsk: "dont_ask",
  bypassPermissions: "bypass",
};
/** The values of --permission-mode. */
export const permissionModeNames = [...permissionModes, ...Object.keys(sdkModes)];

/** The permission mode for Parley's or the SDK's name; undefined for any other name. */
export function readPermissionMode(name: string): PermissionMode | undefined {
  return permissionModes.find((each) => each === name) ?? sdkModes[name];
}

function permissionModeOf(values: OptionValues): PermissionMode | null {
  const text = values.text("permission-mode");
  if (text === undefined) return null;
  const mode = readPermissionMode(text);
  if (mode === undefined) throw new UsageError(`--permission-mode: "${text}" is not a permission mode.`);
  return mode;
}

/** Key prefix of sessions of single API calls; they belong to other programs, so `--continue` skips them. */
const apiCallPrefix = `${ownPrefix}call-`;

/** The id of the most recently used session that accepts messages from here. Throws CliError when there is none. */
export async function lastSession(gateway: Gateway): Promise<string> {
  for (let before: string | undefined; ;) {
    const { sessions } = await gateway.run(api.sessions, { limit: 200, status: "active", calls: true, before });
    const last = sessions.find(
      ({ key, parentId }) => parentId === null && speakingName(key, "cli") !== null && !key.startsWith(apiCallPrefix),
    );
    if (last !== undefined) return last.sessionId;
    before = sessions.at(-1)?.sessionId;
    if (before === undefined)
      throw new CliError("There is no session to continue.", { fix: "Run again without --continue." });
  }
}

/** The session by its id, or that of the conversation; null when there is none yet. */
export async function sessionOf(
  gateway: Gateway,
  sessionId: string | null,
  conversation: string,
): Promise<SessionSummary | null> {
  for (const name of sessionId === null ? [`${ownPrefix}${conversation}`, mainSession] : [sessionId]) {
    try {
      return (await gateway.run(api.session, { id: name })).session;
    } catch (error) {
      if (!(error instanceof RequestRejectedError) || error.status !== 404) throw error;
    }
  }
  return null;
}
