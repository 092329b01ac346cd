// Finds, reads and prints the settings: the file, the environment and the flags, as the services evaluate them. Values of secrets are never read.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

import { type ExplainedSettings, explainSettings, flagsAsVariable, redactSecrets } from "@parley/chassis/settings";
import { channelEntries, secretsOf, type ParleySettings } from "@parley/contracts";

import { homePath } from "./target.ts";
import type { Io } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";

/** The given file, PARLEY_CONFIG, or parley.toml in the data folder or the working folder, in this order; null if none exists. */
export function findSettings(given: string | undefined, values: OptionValues, io: Io): string | null {
  if (given !== undefined) return resolve(io.cwd, given);
  if (io.env["PARLEY_CONFIG"]) return resolve(io.cwd, io.env["PARLEY_CONFIG"]);
  const places = [join(homePath(values, io), "parley.toml"), join(io.cwd, "parley.toml")];
  return places.find((path) => existsSync(path)) ?? null;
}

/** `file`: from `findSettings`. `running`: flags and variables of the running cluster; the environment overrides them. Throws ConfigError. */
export function readSettings(
  file: string | null,
  values: OptionValues,
  io: Io,
  running: Readonly<Record<string, string>> = {},
): ExplainedSettings {
  const preset = values.text("preset");
  const flags = [...(preset === undefined ? [] : [`preset=${preset}`]), ...values.texts("set")];
  return explainSettings(file ?? undefined, { ...running, ...io.env, ...flagsAsVariable(flags) });
}

export interface NamedSecret {
  readonly name: string;
  /** The table that names it. */
  readonly wantedBy: string;
}

function namedSecrets({ channels, webhooks, observers }: ParleySettings): NamedSecret[] {
  const named: NamedSecret[] = [];
  const add = (name: string | undefined, wantedBy: string): void => {
    if (name !== undefined) named.push({ name, wantedBy });
  };
  for (const entry of channelEntries) {
    for (const [account, own] of Object.entries(channels[entry.name] ?? {})) {
      for (const { variable } of secretsOf(entry, own)) add(variable, `[channels.${entry.name}.${account}]`);
    }
  }
  for (const [id, hook] of Object.entries(webhooks)) add(hook.secret_env, `[webhooks.${id}]`);
  for (const observer of observers) add(observer.token_env, "[[observers]]");
  return named;
}

export function missingSecrets(
  settings: ParleySettings,
  env: Readonly<Record<string, string | undefined>>,
): NamedSecret[] {
  return namedSecrets(settings).filter(({ name }) => env[name] === undefined || env[name] === "");
}

type OriginOf = (path: readonly string[]) => string;

/** The lines of a table and its sub-tables; with `originOf`, a comment after each value names its source. */
export function tomlLines(value: object, originOf?: OriginOf, path: readonly string[] = []): string[] {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined && each !== null);
  const own = entries.filter(([, each]) => !isTable(each));
  const tables = entries.filter((entry): entry is [string, object] => isTable(entry[1]));
  const lines = own.map(([key, each]) => {
    const line = `${keyOf(key)} = ${redactSecrets(tomlValue(each))}`;
    return originOf === undefined ? line : `${line}  # ${originOf([...path, key])}`;
  });
  if (path.length > 0 && (lines.length > 0 || tables.length === 0)) lines.unshift(`[${path.map(keyOf).join(".")}]`);
  for (const [key, table] of tables) {
    const below = tomlLines(table, originOf, [...path, key]);
    if (below.length > 0) lines.push(...(lines.length > 0 ? [""] : []), ...below);
  }
  return lines;
}

/** Each value by its dotted key, with its source, for programs. */
export function originEntries(
  value: object,
  originOf: OriginOf,
  path: readonly string[] = [],
): [string, { value: unknown; origin: string }][] {
  return Object.entries(value).flatMap(([key, each]: [string, unknown]) => {
    const place = [...path, key];
    if (isTable(each)) return originEntries(each, originOf, place);
    return each === undefined ? [] : [[place.map(keyOf).join("."), { value: each, origin: originOf(place) }]];
  });
}

/** A list may hold tables: hooks, observers. They are written in one line. */
function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  if (!isTable(value)) return JSON.stringify(value);
  const entries = Object.entries(value).filter(([, each]) => each !== undefined && each !== null);
  return `{ ${entries.map(([key, each]) => `${keyOf(key)} = ${tomlValue(each)}`).join(", ")} }`;
}

function isTable(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function keyOf(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}
