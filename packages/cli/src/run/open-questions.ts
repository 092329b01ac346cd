// Which questions of the agent wait for an answer of the person or program behind a run.

import type { SessionEvent } from "@parley/contracts";

export class OpenQuestions {
  /** The turns of the questions, by the id of the call that asks. */
  readonly #turns = new Map<string, string>();

  /** No question is open. */
  get isEmpty(): boolean {
    return this.#turns.size === 0;
  }

  follow(event: SessionEvent): void {
    if (event.type === "question.asked") this.#turns.set(event.callId, event.turnId);
    else if (event.type === "tool.finished") this.#turns.delete(event.callId);
    else if (event.type === "turn.finished") {
      for (const [call, turnId] of this.#turns) if (turnId === event.turnId) this.#turns.delete(call);
    }
  }
}
