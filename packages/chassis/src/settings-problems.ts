// Formats problems in settings: by source, with the key and a suggestion. Pure.
import { nearestName, ParleySettingsSchema } from "@parley/contracts";
import { z } from "zod";
import { nearestSource, type SettingsLayer } from "./settings-merge.ts";

/** All problems, grouped by source. */
export function settingsProblems(layers: readonly SettingsLayer[], issues: readonly z.core.$ZodIssue[]): string {
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

/** The problem of a value outside of an enum; needs `reportInput`. */
function wrongWord({ input, values }: z.core.$ZodIssueInvalidValue): string {
  const words = values.map(String);
  const near = typeof input === "string" ? nearestName(input, words) : null;
  const meant = near === null ? "" : `; did you mean "${near}"?`;
  return `${JSON.stringify(input)} is not one of ${words.join(", ")}${meant}`;
}
