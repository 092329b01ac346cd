// Ids that are derived from what they identify. Random ids: `newId` of @parley/contracts.
import { hash } from "node:crypto";

/** A UUID of version 8 (RFC 9562: application-defined) that is the same for the same text. */
export function nameUuid(text: string): string {
  const bytes = hash("sha256", text, "buffer").subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/**
 * The operation id of a write: the same for every attempt, so that an attempt repeated after a crash has no second effect. `parts` name
 * the write; `["local", turnId, n]` differs from `["document", turnId, n]`.
 */
export function operationId(...parts: readonly (string | number)[]): string {
  return nameUuid(parts.join(" "));
}
