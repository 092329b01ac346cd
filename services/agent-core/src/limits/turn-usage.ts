// What a turn has used so far: the store's last totals plus what was added since.
import type { ClaimedTurn, Cost, Usage } from "@parley/contracts";

export interface Totals {
  modelSteps: number;
  toolCalls: number;
  usage: Usage;
  cost: Cost;
}

export class TurnUsage {
  #totals: Totals;

  constructor({ nextStep, modelSteps, usage, cost }: Pick<ClaimedTurn, "nextStep" | "modelSteps" | "usage" | "cost">) {
    this.#totals = { modelSteps, toolCalls: nextStep - 1 - modelSteps, usage, cost };
  }

  get totals(): Totals {
    return this.#totals;
  }

  /**
   * Adds a model call made for one of the turn's tool calls; the next commit returns totals that include it.
   * `costMicros` null: no price.
   */
  add(used: Usage, costMicros: number | null): void {
    const { usage, cost } = this.#totals;
    this.#totals = { ...this.#totals, usage: sum(usage, used), cost: withCall(cost, costMicros) };
  }

  /** A model's reply was committed with its calls: the store returned the totals of the whole turn. */
  committed({ usage, cost }: Pick<Totals, "usage" | "cost">, toolCalls: number): void {
    const before = this.#totals;
    this.#totals = { modelSteps: before.modelSteps + 1, toolCalls: before.toolCalls + toolCalls, usage, cost };
  }
}

function sum(one: Usage, other: Usage): Usage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
  };
}

function withCall({ micros, unpricedCalls }: Cost, costMicros: number | null): Cost {
  return costMicros === null
    ? { micros, unpricedCalls: unpricedCalls + 1 }
    : { micros: micros + costMicros, unpricedCalls };
}
