// What we said and have no outcome of yet: which message it became, which session took it, which turn answers it.

import { randomUUID } from "node:crypto";

import type { QueueMode } from "@parley/contracts";

/** What became of something that was said. */
export interface Outcome {
  readonly state: "done" | "failed" | "cancelled" | "refused" | "command";
  /** The answer, or what there is to know instead. */
  readonly text: string;
}

export interface Said {
  readonly id: string;
  readonly text: string;
  readonly mode: QueueMode | undefined;
  messageId: string | null;
  /** The session that took it. */
  session: string | null;
  turnId: string | null;
  readonly settle: (outcome: Outcome) => void;
}

export class SaidMessages {
  readonly #byId = new Map<string, Said>();

  /** `outcome` resolves when it is settled, which takes it out of here. */
  add(text: string, mode: QueueMode | undefined): { said: Said; outcome: Promise<Outcome> } {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const id = randomUUID();
    const settle = (outcome: Outcome): void => {
      if (this.#byId.delete(id)) resolve(outcome);
    };
    const said: Said = { id, text, mode, messageId: null, session: null, turnId: null, settle };
    this.#byId.set(id, said);
    return { said, outcome: promise };
  }

  get(id: string): Said | undefined {
    return this.#byId.get(id);
  }

  /** In the order in which it was said; one that is settled meanwhile is left out. */
  all(): Iterable<Said> {
    return this.#byId.values();
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  /** One of them was not taken yet: a turn that begins may be its answer. */
  get hasUntaken(): boolean {
    return [...this.all()].some(({ messageId }) => messageId === null);
  }

  /** One of them was taken and is not being answered yet. */
  get hasWaiting(): boolean {
    return [...this.all()].some(({ messageId, turnId }) => messageId !== null && turnId === null);
  }

  /** The turn that answers them has ended. */
  settleTurn(turnId: string, outcome: Outcome): void {
    for (const said of this.all()) if (said.turnId === turnId) said.settle(outcome);
  }

  /** We have moved to this session: what other ones took is not waited for any more. */
  leaveOthers(session: string): void {
    for (const said of this.all()) {
      if (said.session !== null && said.session !== session)
        said.settle({
          state: "command",
          text: "The session before goes on with what it was doing; its answer is kept there.",
        });
    }
  }
}
