// Model prices by model and date; data only. US dollars per million tokens equal millionths of a dollar per token.
// Sources: the providers' price pages; Fable 5.2 and the read price of Sonnet 5.5 from third-party trackers; OpenAI as
// of June 2026, for prompts of its short tier (prices of longer prompts are not known).

export interface Tier {
  /** The size of the prompt, including cached tokens, decides the tier of the whole call. */
  upToPromptTokens: number;
  /** US dollars per million tokens. */
  input: number;
  output: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  cacheRead: number;
}

export interface PriceEntry {
  model: string;
  /** ISO 8601 date, UTC: valid from its start until the model's next entry. */
  from: string;
  /** Smallest first; a prompt larger than the last tier has no known price. */
  tiers: readonly Tier[];
}

const any = Number.POSITIVE_INFINITY;

function tier(upToPromptTokens: number, [input, output]: Pair, [cacheWrite5m, cacheWrite1h]: Pair, cacheRead: number) {
  return { upToPromptTokens, input, output, cacheWrite5m, cacheWrite1h, cacheRead };
}
type Pair = readonly [number, number];

/** OpenAI charges cache writes as input. */
function openAi(model: string, input: number, output: number, cacheRead: number): PriceEntry {
  return { model, from: "2026-06-04", tiers: [tier(272_000, [input, output], [input, input], cacheRead)] };
}

export const priceTable: readonly PriceEntry[] = [
  { model: "claude-fable-5-2", from: "2026-01-01", tiers: [tier(any, [8, 40], [10, 16], 0.2)] },
  { model: "claude-fable-5-1", from: "2026-01-01", tiers: [tier(any, [10, 50], [12.5, 20], 0.25)] },
  { model: "claude-opus-5-5", from: "2026-01-01", tiers: [tier(any, [4, 20], [5, 8], 0.2)] },
  { model: "claude-opus-5", from: "2026-01-01", tiers: [tier(any, [5, 25], [6.25, 10], 0.5)] },
  { model: "claude-sonnet-5-5", from: "2026-01-01", tiers: [tier(any, [2, 10], [2.5, 4], 0.2)] },
  { model: "claude-sonnet-5-5", from: "2026-10-07", tiers: [tier(any, [2, 10], [2.5, 4], 0.1)] },
  {
    model: "claude-haiku-5-5",
    from: "2026-01-01",
    tiers: [tier(100_000, [0.1, 0.5], [0.125, 0.2], 0.01), tier(any, [0.5, 2.5], [0.625, 1], 0.05)],
  },
  { model: "claude-haiku-4-5", from: "2025-10-15", tiers: [tier(any, [1, 5], [1.25, 2], 0.1)] },
  openAi("gpt-5.5", 5, 30, 0.5),
  openAi("gpt-5.4", 2.5, 15, 0.25),
  openAi("gpt-5.4-mini", 0.75, 4.5, 0.075),
  openAi("gpt-5.4-nano", 0.2, 1.25, 0.02),
];
