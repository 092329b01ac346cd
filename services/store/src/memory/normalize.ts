// Normalizes text for indexing and for queries, so that both match. Pure.

/** Scripts without spaces between words: each pair of neighbouring characters counts as a word. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
const latinAccents = /(\p{Script=Latin})\p{M}+/gu;
/** PostgreSQL's parser treats `and/or`, `a_b` and `src/main.ts` as one word each. */
const joints = /[/\\_|]+/g;

/** NUL, which PostgreSQL's text type does not allow, becomes a space. */
export function searchable(text: string): string {
  return text
    .normalize("NFKD")
    .replace(latinAccents, "$1")
    .normalize("NFC")
    .replace(unspaced, pairs)
    .replace(joints, " ")
    .replaceAll("\0", " ")
    .toWellFormed();
}

function pairs(run: string): string {
  const letters = Array.from(run);
  if (letters.length < 3) return ` ${run} `;
  return ` ${letters
    .slice(1)
    .map((letter, index) => `${letters[index] ?? ""}${letter}`)
    .join(" ")} `;
}
