// Layers of settings: preset, parley.toml, variables, flags; merging them, and finding the source of a value. It does not depend on the
// settings' schema.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { errorMessage, presetNames } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { parse as parseToml, TomlDate } from "smol-toml";
import { z } from "zod";

import { ConfigError } from "./errors.ts";

export type SettingsEnvironment = Readonly<Record<string, string | undefined>>;

/** Variables for single keys, with names of their own. */
const namedVariables = { PARLEY_PRESET: ["preset"], PARLEY_MODEL: ["agent", "model"] } as const;
/** `PARLEY__LIMITS__MAX_USD=2`: a double underscore is a dot. */
const variablePrefix = "PARLEY__";
/** Flags of the command line on their way to the services: a JSON list of `key=value`. */
const flagsVariable = "PARLEY_SET";

/** Throws ConfigError when the text is not TOML. */
export function parseLayer(text: string, source: string): SettingsLayer {
  try {
    return { source, table: parseToml(text) };
  } catch (error) {
    throw new ConfigError(`${source}: not TOML: ${errorMessage(error)}`);
  }
}

/** One layer per variable, in the order of their names. An empty variable counts as absent. Throws ConfigError. */
export function layersOfEnvironment(env: SettingsEnvironment): SettingsLayer[] {
  const given = Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const named = Object.entries(namedVariables).flatMap(([name, path]): SettingsLayer[] => {
    const value = env[name];
    return value ? [{ source: name, table: nested(path, value) }] : [];
  });
  const spelt = given
    .filter(([name]) => name.startsWith(variablePrefix))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]): SettingsLayer => {
      const path = name.slice(variablePrefix.length).toLowerCase().split("__");
      if (path.includes("")) throw new ConfigError(`${name}: write it as PARLEY__TABLE__KEY`);
      return { source: name, table: nested(path, valueOf(text)) };
    });
  return [...named, ...spelt];
}

/** One layer per flag, in their order: the last one wins. Throws ConfigError. */
export function layersOfFlags(env: SettingsEnvironment): SettingsLayer[] {
  const text = env[flagsVariable];
  if (!text) return [];
  const flags = z.array(z.string()).safeParse(parseJson(text));
  if (!flags.success) throw new ConfigError(`${flagsVariable}: must be a JSON list such as ["limits.max_usd=2"]`);
  return flags.data.map(layerOfFlag);
}

/** The environment variable that passes the flags of `--set` on. */
export function flagsAsVariable(flags: readonly string[]): Record<string, string> {
  return flags.length === 0 ? {} : { [flagsVariable]: JSON.stringify(flags) };
}

function layerOfFlag(flag: string): SettingsLayer {
  const equals = flag.indexOf("=");
  const key = flag.slice(0, equals).trim();
  if (equals < 1 || key === "") throw new ConfigError(`--set ${flag}: write it as --set table.key=value`);
  const source = key === "preset" ? "--preset" : `--set ${key}`;
  const path = pathOf(key);
  if (path === undefined) throw new ConfigError(`--set ${flag}: "${key}" is not a key such as limits.max_usd`);
  return { source, table: nested(path, valueOf(flag.slice(equals + 1))) };
}

/** Reads a preset's file, which is in a parent folder of the code, in the repository and in images. Throws ConfigError. */
export function layerOfPreset(name: string): SettingsLayer {
  const file = findUpwards(import.meta.dirname, join("presets", `${name}.toml`));
  if (file === undefined) throw new ConfigError(`preset "${name}": its file presets/${name}.toml is missing`);
  const { table } = parseLayer(readFileSync(file, "utf8"), file);
  return { source: `preset ${name}`, table };
}

export function isPreset(value: unknown): value is (typeof presetNames)[number] {
  return presetNames.some((name) => name === value);
}

function findUpwards(from: string, path: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const file = join(folder, path);
    if (existsSync(file)) return file;
    if (dirname(folder) === folder) return undefined;
  }
}

function nested(path: readonly string[], value: unknown): Table {
  const [key = "", ...rest] = path;
  return Object.fromEntries([[key, rest.length === 0 ? value : nested(rest, value)]]);
}

/** Parses a dotted TOML key, with quoted parts where necessary. */
function pathOf(key: string): string[] | undefined {
  const parsed = parsedToml(`${key} = 0`);
  const path: string[] = [];
  for (let node = parsed; isTable(node);) {
    const [entry, ...others] = Object.entries(node);
    if (entry === undefined || others.length > 0) return undefined;
    path.push(entry[0]);
    node = entry[1];
  }
  return path.length === 0 ? undefined : path;
}

/** Parses a TOML value; otherwise returns the text. */
function valueOf(text: string): unknown {
  const parsed = parsedToml(`value = ${text}`);
  if (!isTable(parsed) || Object.keys(parsed).length !== 1) return text;
  const { value } = parsed;
  return value instanceof TomlDate ? text : value;
}

function parsedToml(text: string): unknown {
  try {
    return parseToml(text);
  } catch {
    return undefined;
  }
}

export type Table = Readonly<Record<string, unknown>>;

export interface SettingsLayer {
  /** For display: a file's name, `preset goat`, a variable, a flag. */
  source: string;
  table: Table;
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** `layers`: highest precedence last. */
export function mergeLayers(layers: readonly SettingsLayer[]): Table {
  return layers.reduce<Table>((merged, { table }) => merge(merged, table), {});
}

function merge(low: Table, high: Table): Table {
  const entries = Object.entries(high).map(([key, value]): [string, unknown] => {
    const below = Object.hasOwn(low, key) ? low[key] : undefined;
    return [key, isTable(value) ? merge(isTable(below) ? below : {}, value) : value];
  });
  return Object.fromEntries([...Object.entries(low), ...entries]);
}

/** The source of the value at a path: the layer with the highest precedence that contains it; undefined: the default applies. */
export function sourceOf(layers: readonly SettingsLayer[], path: readonly PropertyKey[]): string | undefined {
  return layers.findLast(({ table }) => depthOf(table, path) === path.length)?.source;
}

/** The source of a problem at a path: among the layers that contain the longest part of the path, the one with the highest precedence. */
export function nearestSource(layers: readonly SettingsLayer[], path: readonly PropertyKey[]): string | undefined {
  const depths = layers.map(({ table }) => depthOf(table, path));
  const deepest = Math.max(...depths);
  return layers[depths.lastIndexOf(deepest)]?.source;
}

/** The length of the path's part that exists in the table. A list counts completely, because lists are replaced, not merged. */
function depthOf(table: Table, path: readonly PropertyKey[]): number {
  let node: unknown = table;
  for (const [depth, key] of path.entries()) {
    if (Array.isArray(node)) return path.length;
    if (!isTable(node) || !Object.hasOwn(node, key)) return depth;
    node = node[String(key)];
  }
  return path.length;
}
