// What a sender is told whose message is refused because the agent is busy.
import type { Bus } from "@parley/bus";
import { store, textOf } from "@parley/contracts";
import { oneLine } from "./words.ts";

/** Thrown when a message is refused because its session is busy; nothing was kept. The message is for its sender. */
export class SessionBusy extends Error {
  override readonly name = "SessionBusy";
  /** What is being done, in a few words; null: not known. */
  readonly doing: string | null;

  constructor(doing: string | null) {
    super(`I am busy with ${doing === null ? "something else" : `"${doing}"`}; try again later, or send /stop first.`);
    this.doing = doing;
  }
}

/** How far back the beginning of the running turn is looked for. */
const lookedAt = 200;

/** What the running turn was asked for; null where that cannot be said. */
export async function busyWith(bus: Bus, sessionId: string, turnId: string | null): Promise<string | null> {
  if (turnId === null) return null;
  const range = { sessionId, afterSeq: 0, beforeSeq: Number.MAX_SAFE_INTEGER, limit: lookedAt };
  const { messages } = await bus.request(store.sessionMessages, range);
  const asked = messages.find((message) => message.turnId === turnId && message.from !== undefined);
  return asked === undefined ? null : oneLine(textOf(asked.parts), 80);
}
