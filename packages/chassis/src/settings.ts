// Computes the effective settings: flags override variables, which override parley.toml, the profiles in Markdown files next to it, its
// preset and the defaults.
// `ParleySettingsSchema` in the contracts defines the settings; docs/configuration.md documents them.

import { readFileSync } from "node:fs";

import { errorMessage, nearestName, type ParleySettings, ParleySettingsSchema } from "@parley/contracts";
import { z } from "zod";

import { layersOfAgentFiles } from "./agent-files.ts";
import { ConfigError } from "./errors.ts";
import {
  isPreset,
  layerOfPreset,
  layersOfEnvironment,
  layersOfFlags,
  mergeLayers,
  nearestSource,
  parseLayer,
  type SettingsEnvironment,
  type SettingsLayer,
  sourceOf,
} from "./settings-layers.ts";

export interface ExplainedSettings {
  settings: ParleySettings;
  /** The source of the value at a path: a flag, a variable, the file, `preset <name>` or `default`. */
  originOf: (path: readonly string[]) => string;
}

/**
 * The settings of a deployment. `path`: parley.toml, undefined for none; profiles in the folder `agents` next to it count too. `env`:
 * PARLEY_PRESET, PARLEY_MODEL, `PARLEY__TABLE__KEY` and the flags in PARLEY_SET; nothing else of it is read. Throws ConfigError that names each source, key and problem.
 */
export function loadSettings(path: string | undefined, env: SettingsEnvironment = {}): ParleySettings {
  return explainSettings(path, env).settings;
}

/** Like `loadSettings`, with the source of each value. */
export function explainSettings(path: string | undefined, env: SettingsEnvironment = {}): ExplainedSettings {
  const file = path === undefined ? [] : [...layersOfAgentFiles(path), parseLayer(readSettings(path), path)];
  return explain([...file, ...layersOfEnvironment(env), ...layersOfFlags(env)]);
}

/** The settings of a text and its preset. `path` names the text in error messages. Throws ConfigError. */
export function parseSettings(text: string, path: string): ParleySettings {
  return explain([parseLayer(text, path)]).settings;
}

/** Like `parseSettings`, with the agent files next to the file at `path`, which need not have this text. Throws ConfigError. */
export function parseSettingsFile(text: string, path: string): ParleySettings {
  return explain([...layersOfAgentFiles(path), parseLayer(text, path)]).settings;
}

function explain(given: readonly SettingsLayer[]): ExplainedSettings {
  const { preset } = mergeLayers(given);
  const layers = isPreset(preset) ? [layerOfPreset(preset), ...given] : given;
  const result = ParleySettingsSchema.safeParse(mergeLayers(layers), { reportInput: true });
  if (!result.success) throw new ConfigError(settingsProblems(layers, result.error.issues));
  return { settings: result.data, originOf: (path) => sourceOf(layers, path) ?? "default" };
}

function readSettings(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const reason = errorMessage(error);
    throw new ConfigError(`PARLEY_CONFIG: cannot read ${path}: ${reason}`);
  }
}

/** All problems, grouped by source. */
function settingsProblems(layers: readonly SettingsLayer[], issues: readonly z.core.$ZodIssue[]): string {
  const bySource = new Map<string, string[]>();
  for (const { path, text } of issues.flatMap(describe)) {
    const source = nearestSource(layers, path) ?? "settings";
    bySource.set(source, [...(bySource.get(source) ?? []), `  ${text}`]);
  }
  return [...bySource].map(([source, lines]) => `${source}:\n${lines.join("\n")}`).join("\n");
}

interface Problem {
  path: readonly PropertyKey[];
  text: string;
}

function describe(issue: z.core.$ZodIssue): Problem[] {
  const table = issue.path.join(".");
  if (issue.code === "invalid_value") return [{ path: issue.path, text: `${table}: ${wrongWord(issue)}` }];
  if (issue.code === "invalid_type") return [{ path: issue.path, text: `${table}: ${wrongType(issue)}` }];
  // A setting with a description of its own keeps it.
  if (issue.code === "invalid_format" && issue.format === "url" && issue.message === "Invalid URL")
    return [{ path: issue.path, text: `${table}: must be a URL such as https://example.org` }];
  if (issue.code !== "unrecognized_keys") return [{ path: issue.path, text: `${table}: ${issue.message}` }];
  const known = knownKeys(issue.path);
  return issue.keys.map((key) => ({
    path: [...issue.path, key],
    text: `[${table === "" ? "top level" : table}] unknown key "${key}"${suggestion(key, known)}`,
  }));
}

/** The known keys at a path, for suggestions; empty for an unknown path. */
function knownKeys(path: readonly PropertyKey[]): string[] {
  let node: unknown = z.toJSONSchema(ParleySettingsSchema, { io: "input" });
  for (const key of path) {
    const properties = field(node, "properties");
    node = field(properties, String(key)) ?? field(node, "additionalProperties") ?? field(node, "items");
  }
  const properties = field(node, "properties");
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}

function field(node: unknown, key: string): unknown {
  return typeof node === "object" && node !== null ? (node as Record<string, unknown>)[key] : undefined;
}

function suggestion(key: string, known: string[]): string {
  const near = nearestName(key, known);
  if (near !== null) return `; did you mean "${near}"?`;
  return known.length === 0 ? "" : `; known: ${known.join(", ")}`;
}

/** The types of values, as parley.toml writes them. */
const typeNames: Readonly<Record<string, string>> = {
  string: "a text in quotes",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list in brackets",
  object: "a table",
  record: "a table",
};

/** The problem of a value of another type, without the value, which may be a secret; needs `reportInput`. */
function wrongType({ input, expected }: z.core.$ZodIssueInvalidType): string {
  const wanted = typeNames[expected] ?? expected;
  if (input === undefined) return `is missing; it must be ${wanted}`;
  const given = Array.isArray(input) ? "array" : typeof input;
  return `must be ${wanted}, not ${typeNames[given] ?? given}`;
}

/** The problem of a value outside of an enum; needs `reportInput`. */
function wrongWord({ input, values }: z.core.$ZodIssueInvalidValue): string {
  const words = values.map(String);
  const near = typeof input === "string" ? nearestName(input, words) : null;
  const suggestion = near === null ? "" : `; did you mean "${near}"?`;
  return `${JSON.stringify(input)} is not one of ${words.join(", ")}${suggestion}`;
}
