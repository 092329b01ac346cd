// Hashes an exact call; approvals are bound to this hash. Pure.
import { createHash } from "node:crypto";
import { parseJson } from "@parley/kit";

/**
 * SHA-256, as 64 hexadecimal digits, over the tool's name, its arguments and other context of the call (a working directory, a
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
