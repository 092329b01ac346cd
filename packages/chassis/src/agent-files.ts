// Profiles in Markdown files, in the format of Claude Code's sub-agents: a head of `key: value` lines between two `---`, and below it the
// instructions. Each file is a layer of settings.

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { errorMessage } from "@parley/contracts";

import { ConfigError } from "./errors.ts";
import type { SettingsLayer, Table } from "./settings-layers.ts";

/** The folder of the files, next to parley.toml. */
const folderName = "agents";

/** One layer per file of the folder `agents` next to the settings file. Throws ConfigError that names the file. */
export function layersOfAgentFiles(settingsFile: string): SettingsLayer[] {
  const folder = join(dirname(settingsFile), folderName);
  const sources = new Map<string, string>();
  return filesIn(folder).map((path) => {
    const { name, profile } = readAgentFile(textOf(path), path);
    const other = sources.get(name);
    if (other !== undefined) throw new ConfigError(`${path}: ${other} has the same name, ${name}`);
    sources.set(name, path);
    return { source: path, table: { profiles: { [name]: profile } } };
  });
}

function filesIn(folder: string): string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".md"));
    return names.toSorted().map((name) => join(folder, name));
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) return [];
    throw new ConfigError(`${folder}: ${errorMessage(error)}`);
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(`${path}: ${errorMessage(error)}`);
  }
}

/** Keys of Claude Code with another name here. */
const renamed: Readonly<Record<string, string>> = { maxTurns: "max_iterations" };
/** How Claude Code shows the agent. */
const ignored = "color";

/**
 * The profile of a file. The keys of its head are those of `[profiles.<name>]`; `name` is the file's name unless it is given, and the model
 * `inherit` that of the settings. Pure. Throws ConfigError for a head that cannot be read; the schema of the settings checks the values.
 */
export function readAgentFile(text: string, path: string): { name: string; profile: Table } {
  const match = /^---\r?\n(.*?\r?\n)?---[ \t]*(?:\r?\n|$)(.*)$/s.exec(text);
  if (match === null) throw new ConfigError(`${path}: must begin with a head between two lines of ---`);
  const [, head = "", body = ""] = match;
  const { name = basename(path, ".md"), [ignored]: _color, ...fields } = readHead(head, path);
  if (typeof name !== "string") throw new ConfigError(`${path}: name must be a text`);
  const entries = Object.entries(fields).flatMap(([key, value]): [string, unknown][] => {
    if (key === "model" && value === "inherit") return [];
    const isList = key === "tools" && typeof value === "string";
    return [[renamed[key] ?? key, isList ? listOf(value) : value]];
  });
  const instructions = body.trim();
  return { name, profile: { ...Object.fromEntries(entries), ...(instructions && { system_prompt: instructions }) } };
}

type HeadValue = string | number | boolean | string[];

/** `key: value` lines, and lists as `- item` lines below their key. */
function readHead(head: string, path: string): Record<string, HeadValue> {
  const fields = new Map<string, HeadValue>();
  let list: string[] | undefined;
  for (const line of head.split(/\r?\n/)) {
    if (/^\s*(?:#.*)?$/.test(line)) continue;
    const [, item] = /^\s*- +(.+)$/.exec(line) ?? [];
    if (item !== undefined && list !== undefined) {
      list.push(unquoted(item.trim()));
      continue;
    }
    const [, key, text = ""] = /^([A-Za-z_][\w-]*):(?:[ \t]+(.*))?$/.exec(line) ?? [];
    if (key === undefined || /^[|>][+-]?$/.test(text.trim()))
      throw new ConfigError(`${path}: the line "${line.trim()}" of the head is not \`key: value\` on one line`);
    if (fields.has(key)) throw new ConfigError(`${path}: ${key} occurs twice in the head`);
    list = text.trim() === "" ? [] : undefined;
    fields.set(key, list ?? valueOf(text.trim()));
  }
  return Object.fromEntries(fields);
}

function valueOf(text: string): HeadValue {
  if (text.startsWith("[") && text.endsWith("]")) return listOf(text.slice(1, -1));
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return Number(text);
  if (text === "true" || text === "false") return text === "true";
  return unquoted(text);
}

/** Items between commas. */
function listOf(text: string): string[] {
  const items = text.split(",").map((item) => unquoted(item.trim()));
  return items.filter((item) => item !== "");
}

function unquoted(text: string): string {
  const [, , inner] = /^(["'])(.*)\1$/.exec(text) ?? [];
  return inner ?? text;
}
