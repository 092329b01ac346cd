// Digests, and their comparison in constant time.
import { createHmac, hash, timingSafeEqual } from "node:crypto";

export function sha256(data: string | Buffer): Buffer {
  return hash("sha256", data, "buffer");
}

export function sha256Hex(data: string | Buffer): string {
  return hash("sha256", data, "hex");
}

export function hmacSha256(key: string | Buffer, ...data: (string | Buffer)[]): Buffer {
  const hmac = createHmac("sha256", key);
  for (const each of data) hmac.update(each);
  return hmac.digest();
}

/** Compares digests in constant time for a given length. */
export function sameDigest(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
