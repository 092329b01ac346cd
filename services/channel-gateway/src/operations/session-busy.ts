// The refusal that a sender receives when a message is rejected because the session is busy.
import type { Bus } from "@parley/bus";
import { store, textOf } from "@parley/contracts";
import { oneLine } from "@parley/kit";

/** Thrown when a message is refused because its session is busy; nothing was stored. The sender receives the text. */
export class SessionBusyError extends Error {
  override readonly name = "SessionBusyError";
  /** The beginning of the message that started the running turn; null: unknown. */
  readonly doing: string | null;

  constructor(doing: string | null) {
    super(`I am busy with ${doing === null ? "another task" : `"${doing}"`}. Try again later, or send /stop first.`);
    this.doing = doing;
  }
}

/** How many messages back the start of the running turn is searched. */
const maxRows = 200;

/** Returns the beginning of the message that started the running turn; null when it is unknown. */
export async function busyText(bus: Bus, sessionId: string, turnId: string | null): Promise<string | null> {
  if (turnId === null) return null;
  const range = { sessionId, afterSeq: 0, beforeSeq: Number.MAX_SAFE_INTEGER, limit: maxRows };
  const { messages } = await bus.request(store.sessionMessages, range);
  const request = messages.find((message) => message.turnId === turnId && message.from !== undefined);
  return request === undefined ? null : oneLine(textOf(request.parts), 80);
}

/** Tells the owner why their message waits. */
export function awaitingApprovalText(approval: string): string {
  return `Queued. I am waiting for your decision on ${approval} first: /approve ${approval}, /deny ${approval} or /stop.`;
}
