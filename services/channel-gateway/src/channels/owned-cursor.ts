// A cursor that names the account it belongs to: the positions of another account are unrelated. Pure.

/** The cursor of this position in the updates of the account with this id. Neither contains a space. */
export function formatCursor(position: number | string, owner: number | string): string {
  return `${position} ${owner}`;
}

/** The position; null without a cursor of this account. A cursor of an older version names no account and counts. */
export function positionOf(cursor: string | null, owner: number | string): string | null {
  if (cursor === null) return null;
  const [position = "", named = String(owner)] = cursor.split(" ");
  return named === String(owner) ? position : null;
}

/** The same for positions that are numbers. */
export function offsetOf(cursor: string | null, owner: number): number | null {
  const position = positionOf(cursor, owner);
  return position === null ? null : Number(position);
}
