// Whose the turns of a thread are: those that answer something we said, or are taken for ours, and all others.

import type { SessionEvent } from "@parley/contracts";

import type { SaidMessages } from "./said.ts";

export class TurnOwners {
  readonly #said: SaidMessages;
  readonly #turns = new Map<string, "ours" | "another">();
  /** What was said at the beginning of turns of which nothing else was heard yet. */
  readonly #beginnings = new Map<string, SessionEvent[]>();

  constructor(said: SaidMessages) {
    this.#said = said;
  }

  isKnown(turnId: string): boolean {
    return this.#turns.has(turnId);
  }

  isOurs(turnId: string): boolean {
    return this.#turns.get(turnId) === "ours";
  }

  /** It answers these messages: ours where one of them is, or where it was before. */
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

  /** Keeps a message that a turn begins with until it is known whose it is. */
  keepBeginning(turnId: string, event: SessionEvent): void {
    this.#beginnings.set(turnId, [...this.beginningOf(turnId), event]);
  }

  beginningOf(turnId: string): readonly SessionEvent[] {
    return this.#beginnings.get(turnId) ?? [];
  }

  forgetBeginning(turnId: string): void {
    this.#beginnings.delete(turnId);
  }

  /** True when the turn begins with something that no person said. */
  wasUnasked(turnId: string): boolean {
    return this.beginningOf(turnId).some(
      (event) => event.type === "message" && event.message.from !== undefined && event.message.from.origin !== "user",
    );
  }
}
