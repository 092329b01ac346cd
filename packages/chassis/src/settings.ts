// Reads parley.toml. What may stand in it is said by `ParleySettingsSchema` in the contracts.
import { readFileSync } from "node:fs";
import { ParleySettingsSchema, type ParleySettings } from "@parley/contracts";
import { parse as parseToml } from "smol-toml";
import { z } from "zod";
import { ConfigError } from "./errors.ts";

/** The settings of a deployment; the defaults when there is no file. Throws ConfigError. */
export function loadSettings(path: string | undefined): ParleySettings {
  if (path === undefined) return ParleySettingsSchema.parse({});
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(
      `PARLEY_CONFIG: cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  return parseSettings(text, path);
}

/** Throws ConfigError that names the file, the key and what is wrong with it. */
export function parseSettings(text: string, path: string): ParleySettings {
  let data: unknown;
  try {
    data = parseToml(text);
  } catch (error) {
    throw new ConfigError(`${path}: not TOML: ${error instanceof Error ? error.message : String(error)}`);
  }
  const result = ParleySettingsSchema.safeParse(data);
  if (result.success) return result.data;
  const issues = result.error.issues.map((issue) => `  ${describe(issue)}`);
  throw new ConfigError(`${path}:\n${issues.join("\n")}`);
}

function describe(issue: z.core.$ZodIssue): string {
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const known = knownKeys(issue.path);
    const hints = issue.keys.map((key) => `unknown key "${key}"${suggestion(key, known)}`);
    return `[${path === "" ? "top level" : path}] ${hints.join("; ")}`;
  }
  return `${path}: ${issue.message}`;
}

/** The keys that the settings have at a path, for a suggestion; empty where the path cannot be followed. */
function knownKeys(path: readonly PropertyKey[]): string[] {
  let node: unknown = z.toJSONSchema(ParleySettingsSchema, { io: "input" });
  for (const key of path) {
    const properties = field(node, "properties");
    node = field(properties, String(key)) ?? field(node, "additionalProperties");
  }
  const properties = field(node, "properties");
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}

function field(node: unknown, key: string): unknown {
  return typeof node === "object" && node !== null ? (node as Record<string, unknown>)[key] : undefined;
}

function suggestion(key: string, known: string[]): string {
  const near = known
    .map((name) => ({ name, distance: editDistance(key, name) }))
    .filter(({ name, distance }) => distance <= Math.max(2, Math.floor(name.length / 3)))
    .sort((a, b) => a.distance - b.distance)[0];
  if (near !== undefined) return `; did you mean "${near.name}"?`;
  return known.length === 0 ? "" : `; known: ${known.join(", ")}`;
}

/** Levenshtein distance, row by row. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
