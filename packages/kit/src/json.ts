// JSON from outside.

/** The parsed text, or undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The parsed object, or undefined if the text is not a JSON object. */
export function parseJsonObject(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}
