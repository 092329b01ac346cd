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

/** A deterministic UUID for a text: the `opId` of an operation that may be requested twice. */
export function nameUuid(text: string): string {
  const bytes = sha256(text).subarray(0, 16);
  // Version 8 (RFC 9562: application-defined) and the RFC's variant.
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
