// Parses a tool call for permission decisions: all arguments once, and the main argument in the form that rules match.
import { createHash } from "node:crypto";
import { parseJson } from "@parley/kit";
import { z } from "zod";
import { commandPaths, type CommandPaths } from "./command-paths.ts";
import { patchPaths, parsePath, type ParsedPath } from "./paths.ts";
import { parseCommand, type ParsedCommand } from "./shell.ts";
import { fileAccessOf, mainArgument, type PermissionTool } from "./tool-traits.ts";

export type Argument =
  | { kind: "command"; parsed: ParsedCommand; files: readonly RedirectedFile[]; paths: CommandPaths }
  | { kind: "paths"; paths: readonly ParsedPath[] }
  /** `url` is null if the text is not a URL. */
  | { kind: "url"; written: string; url: URL | null }
  | { kind: "text"; text: string }
  /** The argument is missing, or the tool has none. */
  | { kind: "none" };

/** A file that a redirection of a command opens. */
interface RedirectedFile {
  mode: "read" | "write";
  /** Null when it is known only at run time. */
  path: ParsedPath | null;
}

export interface ParsedCall {
  tool: PermissionTool;
  /** The arguments; empty if the model's arguments are not an object. */
  input: Readonly<Record<string, unknown>>;
  /** The field of the main argument; null if the tool has none. */
  field: string | null;
  argument: Argument;
  /** Files and folders that a file tool works on, from all of its arguments. */
  paths: readonly ParsedPath[];
}

const Input = z.record(z.string(), z.unknown());

/**
 * Parses a call for `decidePermission`, `describeCall` and `rulesForAlways`.
 * `input`: the model's arguments, as text or parsed. `roots`: absolute paths of the workspace.
 */
export async function parseCall(
  tool: PermissionTool,
  input: unknown,
  options: { roots?: readonly string[] } = {},
): Promise<ParsedCall> {
  const parsedInput = Input.safeParse(typeof input === "string" ? parseJson(input) : input);
  const fields = parsedInput.success ? parsedInput.data : {};
  const main = mainArgument(tool);
  const field = main.kind === "none" ? null : main.field;
  const value = field === null ? undefined : fields[field];
  const pathField = fileAccessOf(tool).length > 0 ? (fields["path"] ?? ".") : undefined;
  const paths = typeof pathField === "string" ? [parsePath(pathField, options.roots)] : [];
  const call = { tool, input: fields, field, paths };
  if (main.kind === "path" && value === undefined) {
    return { ...call, argument: { kind: "paths", paths: [parsePath(".", options.roots)] } };
  }
  if (main.kind === "none" || typeof value !== "string") return { ...call, argument: { kind: "none" } };
  switch (main.kind) {
    case "command": {
      const parsed = await parseCommand(value);
      const files = redirectedFiles(parsed, fields["workdir"], options.roots);
      const usedPaths = commandPaths(parsed, fields["workdir"], options.roots);
      return { ...call, argument: { kind: "command", parsed, files, paths: usedPaths } };
    }
    case "path":
      return { ...call, argument: { kind: "paths", paths: [parsePath(value, options.roots)] } };
    case "patch": {
      const patchedPaths = patchPaths(value).map((path) => parsePath(path, options.roots));
      return { ...call, paths: patchedPaths, argument: { kind: "paths", paths: patchedPaths } };
    }
    case "url":
      return { ...call, argument: { kind: "url", written: value, url: URL.parse(value) } };
    case "text":
      return { ...call, argument: { kind: "text", text: value } };
    default:
      return main satisfies never;
  }
}

/** Whether the call addresses its recipient by a field that permission rules do not match; they match only `to`. */
export function hasUnmatchedRecipient(input: ParsedCall["input"]): boolean {
  return ["channel", "chat_id", "account", "conversation"].some((field) => input[field] !== undefined);
}

/**
 * The files that redirections open. Relative paths start at the call's folder. A `cd` makes that folder unknown; relative paths then count
 * as paths with `..`, which no rule for files allows.
 */
function redirectedFiles(command: ParsedCommand, workdir: unknown, roots: readonly string[] = []): RedirectedFile[] {
  const changesFolder = command.commands.some(({ words }) => /^(?:cd|pushd|popd)$/.test(words[0]?.value ?? ""));
  const folder = typeof workdir === "string" ? `${workdir}/` : "";
  return command.redirects.map(({ path, mode }) => {
    if (path === null) return { mode, path };
    const isAbsolute = path.startsWith("/");
    const parsed = parsePath(isAbsolute ? path : `${folder}${path}`, roots);
    return { mode, path: { ...parsed, written: path, hasParent: parsed.hasParent || (changesFolder && !isAbsolute) } };
  });
}

/**
 * Hashes an exact call; approvals are bound to this hash: SHA-256, as 64 hexadecimal digits, over the tool's name, its arguments and other context of the call (a working directory, a
 * session). `input` is the JSON text from the model; key order and white space do not affect the hash, everything else does. Text
 * that is not JSON is hashed as is.
 */
export function callHash(tool: string, input: string, more: Readonly<Record<string, unknown>> = {}): string {
  return createHash("sha256")
    .update(canonicalJson([tool, parsed(input), more]))
    .digest("hex");
}

function parsed(input: string): { json: unknown } | { text: string } {
  const json = parseJson(input);
  return json === undefined ? { text: input } : { json };
}

/** JSON with sorted keys and no white space, without undefined fields. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`).join(",")}}`;
}
