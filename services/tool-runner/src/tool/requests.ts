// What a tool may request during its call: an answer from a person, or from a model. `calls` implements both.
import type { agentSample, InputOf, OutputOf } from "@parley/contracts";

/** The result of a question. */
export type Reply =
  | { kind: "said"; text: string }
  /** No person can answer in this turn. */
  | { kind: "nobody"; reason: string }
  /** No answer arrived within the call's total time for questions. */
  | { kind: "silent" };

export interface PersonPrompt {
  /** Rejects with the signal's reason, and closes the question. Questions of one call are asked one at a time. */
  ask(question: string, options: readonly string[], signal: AbortSignal): Promise<Reply>;
}

type SampleRequest = Omit<InputOf<typeof agentSample>, "epoch" | "id" | "turnId" | "n">;
export type SampleResult = OutputOf<typeof agentSample>;

export interface SamplingClient {
  /** Rejects with the signal's reason, and cancels the request. */
  sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult>;
}
