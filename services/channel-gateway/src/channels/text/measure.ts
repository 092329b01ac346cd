// Lengths of texts in the units of platforms. Pure.
import type { LengthUnit } from "@parley/contracts";

export function lengthOf(text: string, unit: LengthUnit): number {
  if (unit === "utf16") return text.length;
  if (unit === "bytes") return Buffer.byteLength(text);
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The largest number of UTF-16 units that `length` units can have: a code point above U+FFFF is one code point and two UTF-16 units. */
export function mostUtf16(length: number, unit: LengthUnit): number {
  return unit === "code_points" ? length * 2 : length;
}
