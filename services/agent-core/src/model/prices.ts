// The cost of a model call; pure. An unknown cost is null and never 0: a sum that includes a wrong 0 would look
// complete.
import type { ModelsSettings, Usage } from "@parley/contracts";
import { undated } from "./known-models.ts";
import { priceTable, type Tier } from "./price-table.ts";
import type { ModelProvider } from "./provider.ts";

/** The fields of a model that determine its price. */
export type PricedModel = Pick<ModelProvider, "model" | "priceList">;

type KnownModels = ModelsSettings["known"];
type PriceSettings = NonNullable<KnownModels[string]["price"]>;

/**
 * Millionths of a US dollar, rounded. Null: the provider reported no usage, or the price is not known. `at`: the time
 * of the call, epoch milliseconds.
 */
export function costOf(model: PricedModel, usage: Usage | null, at: number, known: KnownModels): number | null {
  if (usage === null) return null;
  const configured = known[model.model]?.price;
  if (configured !== undefined) return sum(usage, fromSettings(configured));
  if (model.priceList === "free") return 0;
  const tier = model.priceList === "official" ? tierOf(model.model, promptTokens(usage), at) : undefined;
  return tier === undefined ? null : sum(usage, tier);
}

/** The size of a call's prompt: input, cache writes and cache reads. */
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

/** A single tier. Omitted prices get the defaults documented in settings/models.ts. */
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
