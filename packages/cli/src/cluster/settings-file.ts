// Changes parley.toml without touching its comments and its other settings.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { parse, patch } from "@decimalturn/toml-patch";
import { ConfigError, parseSettingsFile } from "@parley/chassis/settings";

import { CliError } from "../io/io.ts";
import { tomlLines } from "./settings.ts";

type Value = string | number | boolean | readonly string[];
/** Values by key; null removes a key. */
type TableChange = Readonly<Record<string, Value | null>>;
/** Changes by the dotted name of their table; `""` is the top level. */
export type SettingsChange = Readonly<Record<string, TableChange>>;

/** The text with the change. Existing tables keep their place; new ones are appended. */
export function changedText(text: string, change: SettingsChange): string {
  const document = parse(text) as Record<string, unknown>;
  const added: string[] = [];
  for (const [name, values] of Object.entries(change)) {
    const path = name === "" ? [] : name.split(".");
    const table = tableAt(document, path);
    if (table === undefined) {
      const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
      if (Object.keys(given).length > 0) added.push([`[${name}]`, ...tomlLines(given)].join("\n"));
      continue;
    }
    for (const [key, value] of Object.entries(values)) {
      if (value === null) delete table[key];
      else table[key] = value;
    }
  }
  const patched = patch(text, document);
  return [...(patched.trim() === "" ? [] : [patched.trimEnd()]), ...added].join("\n\n") + "\n";
}

function tableAt(document: Record<string, unknown>, path: readonly string[]): Record<string, unknown> | undefined {
  let table: unknown = document;
  for (const name of path) {
    if (typeof table !== "object" || table === null || !(name in table)) return undefined;
    table = (table as Record<string, unknown>)[name];
  }
  return typeof table === "object" && table !== null ? (table as Record<string, unknown>) : undefined;
}

/** Changes the file, or creates it, after checking the result. Throws CliError for settings that are wrong before or after the change. */
export function changeSettings(file: string, change: SettingsChange): void {
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  let text: string;
  try {
    parseSettingsFile(before, file);
    text = changedText(before, change);
    parseSettingsFile(text, file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
  if (text === before) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}
