// A cursor that names the account it belongs to: the positions of another account are unrelated. Pure.

/** The cursor of this position in the updates of the account with this id. */
export function formatCursor(position: number, owner: number): string {
  return `${position} ${owner}`;
}

/** The position; null without a cursor of this account. A cursor of an older version names no account and counts. */
export function offsetOf(cursor: string | null, owner: number): number | null {
  if (cursor === null) return null;
  const [position, named = String(owner)] = cursor.split(" ");
  return named === String(owner) ? Number(position) : null;
}
