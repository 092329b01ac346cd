// `y` and `n` as answers to an approval question, for channels without buttons and for people who prefer to type. Pure.

export interface QuickAnswer {
  decision: "allow" | "deny";
  /** The reason of a denial. */
  message?: string;
}

/** Maximum characters of the reason of a denial. */
const maxReason = 4_000;

/** Returns the answer that a whole message is; undefined for any other text. Only a denial may have further words. */
export function parseQuickAnswer(text: string): QuickAnswer | undefined {
  const trimmed = text.trim();
  if (/^y(?:es)?[.!]?$/i.test(trimmed)) return { decision: "allow" };
  const no = /^n(?:o)?(?:[.!]?$|[\s,:;.-]+([^]+)$)/i.exec(trimmed);
  if (no === null) return undefined;
  const message = no[1]?.slice(0, maxReason).toWellFormed();
  return { decision: "deny", ...(message === undefined ? {} : { message }) };
}
