// Tracks which turns of a thread answer our messages.

import type { SessionEvent } from "@parley/contracts";

import type { SentMessages } from "./sent-messages.ts";

export class TurnOwners {
  readonly #said: SentMessages;
  readonly #turns = new Map<string, "ours" | "another">();
  /** First messages of turns without any other event so far. */
  readonly #beginnings = new Map<string, SessionEvent[]>();

  constructor(said: SentMessages) {
    this.#said = said;
  }

  isKnown(turnId: string): boolean {
    return this.#turns.has(turnId);
  }

  isOurs(turnId: string): boolean {
    return this.#turns.get(turnId) === "ours";
  }

  /** Records the messages that a turn answers; it is ours if one of them is, or if it already was. */
  claim(turnId: string, messageIds: readonly string[]): void {
    let ours = this.isOurs(turnId);
    for (const said of this.#said.all()) {
      if (said.messageId === null || !messageIds.includes(said.messageId)) continue;
      said.turnId = turnId;
      ours = true;
    }
    this.#turns.set(turnId, ours ? "ours" : "another");
  }

  take(turnId: string): void {
    this.#turns.set(turnId, "ours");
  }

  leave(turnId: string): void {
    this.#turns.set(turnId, "another");
  }

  /** Holds back the first message of a turn until its owner is known. */
  keepBeginning(turnId: string, event: SessionEvent): void {
    this.#beginnings.set(turnId, [...this.beginningOf(turnId), event]);
  }

  beginningOf(turnId: string): readonly SessionEvent[] {
    return this.#beginnings.get(turnId) ?? [];
  }

  forgetBeginning(turnId: string): void {
    this.#beginnings.delete(turnId);
  }

  /** True when the first message of the turn is not from a person. */
  wasUnasked(turnId: string): boolean {
    return this.beginningOf(turnId).some(
      (event) => event.type === "message" && event.message.from !== undefined && event.message.from.origin !== "user",
    );
  }
}
