// The two store operations of a tool call, as functions. It decides nothing.
import type { Bus } from "@parley/bus";
import { store, type InputOf, type OutputOf } from "@parley/contracts";

type Claim = OutputOf<typeof store.stepClaim>;
export type Settlement = InputOf<typeof store.callSettle>;

export interface StepClient {
  claim(input: InputOf<typeof store.stepClaim>): Promise<Claim>;
  settle(input: Settlement, signal: AbortSignal): Promise<OutputOf<typeof store.callSettle>["step"]>;
}

export function createStepClient(bus: Bus): StepClient {
  return {
    claim: (input) => bus.request(store.stepClaim, input),
    settle: async (input, signal) => (await bus.request(store.callSettle, input, { signal })).step,
  };
}
