// What a turn has taken so far, as the store has said last, and what has been added since.
import type { ClaimedTurn, Cost, Usage } from "@parley/contracts";

export interface Totals {
  modelSteps: number;
  toolCalls: number;
  usage: Usage;
  cost: Cost;
}

export class Spent {
  #totals: Totals;

  constructor({ nextStep, modelSteps, usage, cost }: Pick<ClaimedTurn, "nextStep" | "modelSteps" | "usage" | "cost">) {
    this.#totals = { modelSteps, toolCalls: nextStep - 1 - modelSteps, usage, cost };
  }

  get totals(): Totals {
    return this.#totals;
  }

  /** A model was asked for one of the turn's calls: the next commit brings the same from the store. `costMicros`: null, it has no price. */
  add(used: Usage, costMicros: number | null): void {
    const { usage, cost } = this.#totals;
    this.#totals = { ...this.#totals, usage: sum(usage, used), cost: withCall(cost, costMicros) };
  }

  /** A model's reply was committed, with its calls: the store says what the whole turn has used. */
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
