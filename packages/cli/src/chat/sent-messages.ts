// Our messages without an outcome: the message id, session and turn of each.

import { randomUUID } from "node:crypto";

import type { QueueMode } from "@parley/contracts";

/** The outcome of a message. */
export interface Outcome {
  readonly state: "done" | "failed" | "cancelled" | "refused" | "command";
  /** The answer, or the reason why there is none. */
  readonly text: string;
}

export interface SentMessage {
  readonly id: string;
  readonly text: string;
  readonly mode: QueueMode | undefined;
  messageId: string | null;
  /** The session of the message. */
  session: string | null;
  turnId: string | null;
  readonly settle: (outcome: Outcome) => void;
}

export class SentMessages {
  readonly #byId = new Map<string, SentMessage>();

  /** `outcome` resolves when the message is settled and removed here. */
  add(text: string, mode: QueueMode | undefined): { said: SentMessage; outcome: Promise<Outcome> } {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const id = randomUUID();
    const settle = (outcome: Outcome): void => {
      if (this.#byId.delete(id)) resolve(outcome);
    };
    const said: SentMessage = { id, text, mode, messageId: null, session: null, turnId: null, settle };
    this.#byId.set(id, said);
    return { said, outcome: promise };
  }

  get(id: string): SentMessage | undefined {
    return this.#byId.get(id);
  }

  /** In sending order, without messages settled meanwhile. */
  all(): Iterable<SentMessage> {
    return this.#byId.values();
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  /** One of them is not accepted yet, so a new turn may be its answer. */
  get hasUntaken(): boolean {
    return [...this.all()].some(({ messageId }) => messageId === null);
  }

  /** One of them is accepted but has no turn yet. */
  get hasWaiting(): boolean {
    return [...this.all()].some(({ messageId, turnId }) => messageId !== null && turnId === null);
  }

  /** The turn that answers them has ended. */
  settleTurn(turnId: string, outcome: Outcome): void {
    for (const said of this.all()) if (said.turnId === turnId) said.settle(outcome);
  }

  /** The conversation moved to this session: stop waiting for answers of other sessions. */
  leaveOthers(session: string): void {
    for (const said of this.all()) {
      if (said.session !== null && said.session !== session)
        said.settle({
          state: "command",
          text: "The previous session continues; its answer is stored there.",
        });
    }
  }
}
