// Signatures of grants: leaders create them, the store compares them. The contracts define the token format.

import { createHmac } from "node:crypto";

/** HMAC-SHA-256 of the signed part of a grant's token. `key`: 32 random bytes, new in each epoch. */
export function grantSignature(key: Uint8Array, signed: string): Buffer {
  return createHmac("sha256", key).update(signed).digest();
}
