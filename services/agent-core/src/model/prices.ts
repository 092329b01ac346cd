// What a model call has cost; pure. What is not known is null and never 0: a sum with a silent zero in it looks paid for.
import type { ModelsSettings, Usage } from "@parley/contracts";
import { undated } from "./known-models.ts";
import { priceTable, type Tier } from "./price-table.ts";
import type { ModelProvider } from "./provider.ts";

/** A model that can be paid for. */
export type PricedModel = Pick<ModelProvider, "model" | "priceList">;

type KnownModels = ModelsSettings["known"];
type PriceSettings = NonNullable<KnownModels[string]["price"]>;

/**
 * Millionths of a US dollar, rounded. Null: the provider did not say what was used, or nobody knows the price. `at`: the time of
 * the call, epoch milliseconds.
 */
export function costOf(model: PricedModel, usage: Usage | null, at: number, known: KnownModels): number | null {
  if (usage === null) return null;
  const configured = known[model.model]?.price;
  if (configured !== undefined) return sum(usage, fromSettings(configured));
  if (model.priceList === "free") return 0;
  const tier = model.priceList === "official" ? tierOf(model.model, promptTokens(usage), at) : undefined;
  return tier === undefined ? null : sum(usage, tier);
}

/** The size of a call's prompt: what was read, written to the cache and read from it. */
export function promptTokens(usage: Usage): number {
  return usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}

function tierOf(model: string, prompt: number, at: number): Tier | undefined {
  const id = undated(model);
  const entry = priceTable
    .filter((each) => each.model === id && Date.parse(each.from) <= at)
    .toSorted((a, b) => a.from.localeCompare(b.from))
    .at(-1);
  return entry?.tiers.find((tier) => prompt <= tier.upToPromptTokens);
}

/** One tier. What is left out of a price is charged as settings/models.ts says. */
function fromSettings(price: PriceSettings): Tier {
  return {
    upToPromptTokens: Number.POSITIVE_INFINITY,
    input: price.input,
    output: price.output,
    cacheWrite5m: price.cache_write ?? price.input * 1.25,
    cacheWrite1h: price.cache_write_1h ?? price.input * 2,
    cacheRead: price.cache_read ?? price.input,
  };
}

function sum(usage: Usage, tier: Tier): number {
  const written1h = Math.min(usage.cacheWriteTokens, usage.cacheWrite1hTokens ?? 0);
  return Math.round(
    usage.inputTokens * tier.input +
      usage.outputTokens * tier.output +
      (usage.cacheWriteTokens - written1h) * tier.cacheWrite5m +
      written1h * tier.cacheWrite1h +
      usage.cacheReadTokens * tier.cacheRead,
  );
}
