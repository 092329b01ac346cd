// The hash that addresses stored content.
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Hashing this much takes about 1 ms; 20 MB at once would delay all other work of the service by about 100 ms. */
export const hashedAtOnceBytes = 256 * 1024;

/** SHA-256 in hexadecimal. Other work of the event loop runs between the parts of large content. */
export async function contentHash(content: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (let start = 0; start < content.length; start += hashedAtOnceBytes) {
    if (start > 0) await nextTurn();
    hash.update(content.subarray(start, start + hashedAtOnceBytes));
  }
  return hash.digest("hex");
}
