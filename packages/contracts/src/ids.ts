// Ids that sort by time, so that an index grows at its end instead of everywhere.

/** Lower-case hexadecimal of a byte. */
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const random = new Uint8Array(10 * 128);
let used = random.length;

/** A UUID of version 7: 48 bits of milliseconds, 74 of randomness. Source: RFC 9562, section 5.7. */
export function newId(now = Date.now()): string {
  if (used === random.length) {
    crypto.getRandomValues(random);
    used = 0;
  }
  const byte = (index: number) => random[used + index] ?? 0;
  const time = now.toString(16).padStart(12, "0");
  const a = (hex[0x70 | (byte(0) & 0x0f)] ?? "") + (hex[byte(1)] ?? "");
  const b = (hex[0x80 | (byte(2) & 0x3f)] ?? "") + (hex[byte(3)] ?? "");
  let c = "";
  for (let index = 4; index < 10; index++) c += hex[byte(index)] ?? "";
  used += 10;
  return `${time.slice(0, 8)}-${time.slice(8)}-${a}-${b}-${c}`;
}

/** The time of an id that `newId` made, in epoch milliseconds; null for any other id. */
export function timeOfId(id: string): number | null {
  const [, high = "", low = ""] = /^([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(id) ?? [];
  return high === "" ? null : Number.parseInt(high + low, 16);
}
