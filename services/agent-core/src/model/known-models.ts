// Data about models whose provider does not report it; pure.

/** Tokens of prompt and answer together, by prefix of the model id; the longest prefix wins. */
const windows: Readonly<Record<string, number>> = {
  "claude-": 1_000_000,
  "claude-haiku-4-5": 200_000,
  // OpenAI's API does not report it. Sources: its model pages of 2025 and June 2026.
  "gpt-4o": 128_000,
  "gpt-4.1": 1_047_576,
  "gpt-5": 400_000,
  "gpt-5.4": 1_000_000,
  "gpt-5.4-mini": 400_000,
  "gpt-5.4-nano": 400_000,
  "gpt-5.5": 1_000_000,
  o3: 200_000,
  "o4-mini": 200_000,
};

/** Undefined for a model that is not in the table. */
export function knownWindow(model: string): number | undefined {
  const [prefix] = Object.keys(windows)
    .filter((each) => model.startsWith(each))
    .toSorted((a, b) => b.length - a.length);
  return prefix === undefined ? undefined : windows[prefix];
}

/**
 * The model without its version date: `claude-x-20260101` and `gpt-x-2026-01-01` cost the same as `claude-x` and
 * `gpt-x`.
 */
export function undated(model: string): string {
  return model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$/, "");
}
