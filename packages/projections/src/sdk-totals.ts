// The sums of all turns of a run: model calls, tokens and cost. Pure.
import { noCost, noUsage, type Cost, type Usage } from "@parley/contracts";
import type { ModelUsage, SdkUsage } from "./sdk-types.ts";

/** Null: only the sum of several models is known. */
type Share = { usage: Usage; cost: Cost } | null;

export class RunTotals {
  modelCalls = 0;
  usage: Usage = noUsage;
  /** With the cost of sub-agents. */
  cost: Cost = noCost;
  readonly #models = new Map<string, Share>();
  readonly #run: RunTotals | undefined;

  /** `run`: the sums of the run that started this sub-agent; they include its models. */
  constructor(run?: RunTotals) {
    this.#run = run;
  }

  /** Adds an ended turn. `models`: the models that answered in it. `treeCost`: its cost with its sub-agents. */
  add(turn: { modelCalls: number; models: ReadonlySet<string>; usage: Usage; cost: Cost; treeCost: Cost }): void {
    const { modelCalls, models, usage, cost, treeCost } = turn;
    this.modelCalls += modelCalls;
    this.usage = sumOfUsage(this.usage, usage);
    this.cost = sumOfCost(this.cost, treeCost);
    this.#addModels(models, usage, cost);
  }

  #addModels(models: ReadonlySet<string>, usage: Usage, cost: Cost): void {
    if (this.#run !== undefined) this.#run.#addModels(models, usage, cost);
    for (const model of models) {
      const before = this.#models.get(model);
      const isKnown = models.size === 1 && before !== null;
      const share = {
        usage: sumOfUsage(before?.usage ?? noUsage, usage),
        cost: sumOfCost(before?.cost ?? noCost, cost),
      };
      this.#models.set(model, isKnown ? share : null);
    }
  }

  byModel(): Record<string, ModelUsage> {
    return Object.fromEntries([...this.#models].map(([model, share]) => [model, modelUsage(share)]));
  }
}

function modelUsage(share: Share): ModelUsage {
  return {
    inputTokens: share?.usage.inputTokens ?? null,
    outputTokens: share?.usage.outputTokens ?? null,
    cacheReadInputTokens: share?.usage.cacheReadTokens ?? null,
    cacheCreationInputTokens: share?.usage.cacheWriteTokens ?? null,
    costUSD: share === null ? null : dollars(share.cost),
  };
}

export function sdkUsage(usage: Usage): SdkUsage {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
  };
}

/** US dollars; null when a call has no known price, because the sum would be too small. */
export function dollars({ micros, unpricedCalls }: Cost): number | null {
  return unpricedCalls > 0 ? null : micros / 1_000_000;
}

function sumOfUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  };
}

function sumOfCost(a: Cost, b: Cost): Cost {
  return { micros: a.micros + b.micros, unpricedCalls: a.unpricedCalls + b.unpricedCalls };
}
