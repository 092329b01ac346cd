// "Did you mean" suggestions. Pure.

/** The known word closest to the typed one, or null when none is close. */
export function nearestName(typed: string, known: readonly string[]): string | null {
  const lower = typed.toLowerCase();
  let best: { word: string; distance: number } | null = null;
  for (const word of known) {
    const distance = word.startsWith(lower) && lower.length >= 2 ? 1 : editDistance(lower, word);
    if (distance <= Math.max(1, Math.floor(word.length / 3)) && distance < (best?.distance ?? Infinity)) {
      best = { word, distance };
    }
  }
  return best?.word ?? null;
}

/** Edit distance in which swapping two neighbours counts as one edit. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min((last[j - 1] ?? 0) + (same ? 0 : 1), (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
