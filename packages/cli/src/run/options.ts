// The options of `parley run`.

import type { AnswerSchema, QueueMode } from "@parley/contracts";
import { permissionModeNames, readPermissionMode } from "@parley/projections";

import { modeOf } from "../chat/open.ts";
import { UsageError } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";
import type { ExternalServer } from "./external-servers.ts";
import type { SessionSetup } from "./setup.ts";

export const outputFormats = ["text", "json", "stream-json"] as const;
export type OutputFormat = (typeof outputFormats)[number];
export const inputFormats = ["text", "stream-json"] as const;
export { permissionModeNames };

export interface RunOptions {
  readonly output: OutputFormat;
  readonly streamInput: boolean;
  /** Maximum number of model calls of the run; null: the configured limit. */
  readonly maxModelCalls: number | null;
  /** Maximum cost of the run in US dollars; null: the configured limit. */
  readonly maxUsd: number | null;
  readonly partial: boolean;
  /** How messages join a running turn; undefined: as configured. */
  readonly queueMode: QueueMode | undefined;
  /** Settings of the session during the run. */
  readonly setup: SessionSetup;
  /** The profile that answers, in a session of its own; null: the agent itself. */
  readonly profile: string | null;
  /** The named chat, if any. */
  readonly conversation: string | undefined;
  /** The session to continue: an id, key or title, or the most recently used one. `new`: a new one in any case. */
  readonly session: { readonly resume: string } | "last" | "new" | null;
  /** Continue a copy of that session. */
  readonly fork: boolean;
  /** Files of the prompt, by path. */
  readonly attach: readonly string[];
  /** Instructions for the agent, sent with the first message. */
  readonly instructions: string | null;
  /** With stream input: the program answers approval questions. */
  readonly programApproves: boolean;
  /** Names of MCP servers in the program's process, in addition to those that it names itself. */
  readonly servers: readonly string[];
  /** MCP servers of the program that this process starts or reaches. */
  readonly externalServers: Readonly<Record<string, ExternalServer>>;
  /** Report the calls of the program's hooks in the stream. */
  readonly hookEvents: boolean;
  /** Repeat the program's messages in the stream. */
  readonly replay: boolean;
  /** What the answers must match; null: they are text. */
  readonly answerSchema: AnswerSchema | null;
  /** Null: read it from standard input. */
  readonly prompt: string | null;
}

export const profileOfSession = "A continued session keeps its profile: use --profile without --resume and --continue.";

/** Reads the options. Throws UsageError for values that are not valid, such as bad numbers, and for options that exclude each other. */
export function runOptions(values: OptionValues, positionals: readonly string[]): RunOptions {
  const output = outputFormats.find((each) => each === (values.text("output") ?? "text")) ?? "text";
  const streamInput = values.text("input-format") === "stream-json";
  const [prompt = null] = positionals;
  if (streamInput && output !== "stream-json") {
    throw new UsageError("--input-format stream-json needs --output stream-json.");
  }
  if (streamInput && prompt !== null)
    throw new UsageError("--input-format stream-json reads messages from standard input: remove the prompt.");
  if (values.has("partial") && output !== "stream-json") throw new UsageError("--partial needs --output stream-json.");
  const attach = values.texts("attach");
  if (streamInput && attach.length > 0)
    throw new UsageError("--attach belongs to a prompt: with stream-json input, send files as content blocks.");
  const session = sessionChoice(values);
  const fork = values.has("fork");
  if (fork && (session === null || session === "new")) throw new UsageError("--fork needs --resume or --continue.");
  const profile = values.text("profile") ?? null;
  if (profile !== null && session !== null && session !== "new") throw new UsageError(profileOfSession);
  return {
    output,
    streamInput,
    maxModelCalls: values.number("max-turns", "a number of 1 or more", { max: 999_999 }) ?? null,
    maxUsd: readDollars(values.text("max-usd"), "--max-usd"),
    partial: values.has("partial"),
    queueMode: modeOf(values),
    setup: { permissionMode: permissionModeOf(values), workspace: values.text("workspace") },
    profile,
    conversation: values.text("conversation"),
    session,
    fork,
    attach,
    instructions: null,
    programApproves: streamInput,
    servers: [],
    externalServers: {},
    hookEvents: false,
    replay: false,
    answerSchema: null,
    prompt: prompt === "-" ? null : prompt,
  };
}

function sessionChoice(values: OptionValues): RunOptions["session"] {
  const given = ["resume", "continue", "new"].filter((name) => values.has(name));
  if (given.length > 1) throw new UsageError(`Use only one of ${given.map((name) => `--${name}`).join(" and ")}.`);
  const resume = values.text("resume");
  if (resume !== undefined) return { resume };
  if (values.has("continue")) return "last";
  return values.has("new") ? "new" : null;
}

/** An amount such as 0.25 or 3; null without one. Throws UsageError. */
export function readDollars(text: string | undefined, name: string): number | null {
  if (text === undefined) return null;
  const dollars = /^\d{1,9}(?:\.\d{1,6})?$/.test(text) ? Number(text) : 0;
  if (dollars > 0) return dollars;
  throw new UsageError(`${name}: "${text}" is not an amount of US dollars above 0, such as 0.25.`);
}

function permissionModeOf(values: OptionValues) {
  const text = values.text("permission-mode");
  if (text === undefined) return undefined;
  const mode = readPermissionMode(text);
  if (mode === undefined) throw new UsageError(`--permission-mode: "${text}" is not a permission mode.`);
  return mode;
}
