// Finds a sequence of numbers in another one in linear time (Knuth-Morris-Pratt). Pure. The engine's own string search is
// quadratic for repetitive texts.

type Numbers = Uint16Array | Int32Array;

/**
 * Calls `visit` with the index of each occurrence of `sought` from `from` on, in order, until it returns false. Occurrences may
 * overlap unless `apart`. An empty `sought` occurs nowhere.
 */
export function eachOccurrence(
  text: Numbers,
  sought: Numbers,
  { from = 0, apart = false }: { from?: number; apart?: boolean },
  visit: (at: number) => boolean,
): void {
  const { length } = sought;
  if (length === 0) return;
  const borders = bordersOf(sought);
  let matched = 0;
  for (let at = from; at < text.length; at++) {
    const each = text[at];
    while (matched > 0 && each !== sought[matched]) matched = borders[matched - 1] ?? 0;
    if (each === sought[matched]) matched += 1;
    if (matched < length) continue;
    if (!visit(at - length + 1)) return;
    matched = apart ? 0 : (borders[length - 1] ?? 0);
  }
}

/** For each prefix of the sequence, the length of the longest other prefix that it ends with. */
function bordersOf(sequence: Numbers): Int32Array {
  const borders = new Int32Array(sequence.length);
  let matched = 0;
  for (let at = 1; at < sequence.length; at++) {
    const each = sequence[at];
    while (matched > 0 && each !== sequence[matched]) matched = borders[matched - 1] ?? 0;
    if (each === sequence[matched]) matched += 1;
    borders[at] = matched;
  }
  return borders;
}
