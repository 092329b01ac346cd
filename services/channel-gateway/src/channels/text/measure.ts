// Lengths of texts in the units of platforms. Pure.
import type { LengthUnit, TextLimits } from "@parley/contracts";
import type { RenderedText } from "./render.ts";

/** Characters of a segment: alone, and as one of several, which have a header. GSM 7-bit, and UCS-2 for all other texts. */
const gsmSegment = { single: 160, of: 153 };
const ucs2Segment = { single: 70, of: 67 };
/** The basic character set of GSM 03.38, and the characters that need an escape: they count twice. */
const gsmBasic = new Set(
  "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà",
);
const gsmEscaped = new Set("\f^{}\\[~]|€");

/** In how many segments a text is sent by SMS; no character is divided between two. */
function smsSegments(text: string): number {
  const characters: readonly string[] = text.match(/./gsu) ?? [];
  const isGsm = characters.every((character) => gsmBasic.has(character) || gsmEscaped.has(character));
  const { single, of } = isGsm ? gsmSegment : ucs2Segment;
  const sizes = characters.map((character) => (isGsm ? (gsmEscaped.has(character) ? 2 : 1) : character.length));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total === 0) return 0;
  if (total <= single) return 1;
  let segments = 1;
  let used = 0;
  for (const size of sizes) {
    if (used + size > of) {
      segments += 1;
      used = 0;
    }
    used += size;
  }
  return segments;
}

export function lengthOf(text: string, unit: LengthUnit): number {
  if (unit === "utf16") return text.length;
  if (unit === "bytes") return Buffer.byteLength(text);
  if (unit === "sms_segments") return smsSegments(text);
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
  if (unit === "sms_segments") return length * gsmSegment.single;
  return unit === "code_points" ? length * 2 : length;
}
