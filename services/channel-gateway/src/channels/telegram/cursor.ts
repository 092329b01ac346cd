// The cursor of polling. It names the bot: the numbers of another bot's updates are unrelated, and a higher offset discards them. Pure.

/** The cursor after all updates below `offset`. */
export function formatCursor(offset: number, botId: number): string {
  return `${offset} ${botId}`;
}

/** The offset to request; null without a cursor of this bot. A cursor of an older version names no bot and counts. */
export function offsetOf(cursor: string | null, botId: number): number | null {
  if (cursor === null) return null;
  const [offset, owner = String(botId)] = cursor.split(" ");
  return owner === String(botId) ? Number(offset) : null;
}
