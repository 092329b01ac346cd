// Signatures of grants: leaders create them, the store compares them. The contracts define the token format.

import { createHmac, createSecretKey, type KeyObject } from "node:crypto";

/** The key of an epoch: base64url of 32 random bytes. With bytes as the key, Node would create and discard an error for each signature. */
export function grantKeyOf(text: string): KeyObject {
  return createSecretKey(Buffer.from(text, "base64url"));
}

/** HMAC-SHA-256 of the signed part of a grant's token. */
export function grantSignature(key: KeyObject, signed: string): Buffer {
  return createHmac("sha256", key).update(signed).digest();
}
