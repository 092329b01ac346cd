// Whether outsiders had a hand in an old text. Pure.

import type { DocumentMeta } from "@parley/contracts";

/**
 * Whether a text may hold lines that outsiders had a hand in. A person's change leaves the other lines their authors; only a removal,
 * and a person who saved the text as it stood, leave none of them. `versions`: the text's own version and those before it, newest
 * first.
 */
export function mayHoldUntrusted(versions: readonly DocumentMeta[]): boolean {
  let broughtBack = Infinity;
  for (const [index, { version, author, deleted, sha256, restoredFrom }] of versions.entries()) {
    // Its lines are those of another version, whatever stood between.
    if (version > broughtBack) continue;
    if (restoredFrom !== null) {
      broughtBack = restoredFrom;
      continue;
    }
    if (deleted) return false;
    if (author === "untrusted") return true;
    const isPerson = author === "owner" || author === "import";
    if (isPerson && versions[index + 1]?.sha256 === sha256) return false;
  }
  return false;
}
