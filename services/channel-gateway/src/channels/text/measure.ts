// Lengths of texts in the units of platforms. Pure.
import type { LengthUnit, TextLimits } from "@parley/contracts";
import type { RenderedText } from "./render.ts";

export function lengthOf(text: string, unit: LengthUnit): number {
  if (unit === "utf16") return text.length;
  if (unit === "bytes") return Buffer.byteLength(text);
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The length of a message as its platform counts it. */
export function messageLength(
  { text, plain }: RenderedText,
  { lengthCountsMarkup, lengthUnit }: Pick<TextLimits, "lengthCountsMarkup" | "lengthUnit">,
): number {
  return lengthOf(lengthCountsMarkup ? text : plain, lengthUnit);
}

/** The largest number of UTF-16 units that `length` units can have: a code point above U+FFFF is one code point and two UTF-16 units. */
export function maxUtf16Length(length: number, unit: LengthUnit): number {
  return unit === "code_points" ? length * 2 : length;
}
