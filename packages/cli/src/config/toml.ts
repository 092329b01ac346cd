// Formats settings as TOML lines, optionally with the source of each value. Pure.

import { scrub } from "@parley/chassis";

type OriginOf = (path: readonly string[]) => string;

/** The lines of a table and its sub-tables; with `originOf`, a comment after each value names its source. */
export function tomlLines(value: object, originOf?: OriginOf, path: readonly string[] = []): string[] {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined && each !== null);
  const own = entries.filter(([, each]) => !isTable(each));
  const tables = entries.filter((entry): entry is [string, object] => isTable(entry[1]));
  const lines = own.map(([key, each]) => {
    const line = `${keyOf(key)} = ${scrub(tomlValue(each))}`;
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
