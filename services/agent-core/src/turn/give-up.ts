// Ends a turn that failed because of an internal error, with a notice, so that queued input is processed.
import { sessionEvent, store, type ClaimedTurn } from "@parley/contracts";
import type { TurnDeps } from "./dependencies.ts";

const text = "I could not answer this because of an internal error. It has been logged; please try again.";
/** How long the notice may wait to be sent. */
const expiresInMs = 24 * 60 * 60 * 1000;

export async function failTurn(
  { bus, leaderStore }: Pick<TurnDeps, "bus" | "leaderStore">,
  { turnId, sessionId, replyTo }: Pick<ClaimedTurn, "turnId" | "sessionId" | "replyTo">,
): Promise<void> {
  const { events } = await leaderStore.request(store.turnFinish, {
    turnId,
    parts: [],
    model: null,
    // The results of open calls were not checked.
    tainted: true,
    unsettled: "Interrupted by an internal error.",
    outgoing: replyTo === null ? [] : [{ address: replyTo, text, expiresInMs }],
    finish: { state: "failed", exitReason: "error", text },
  });
  for (const event of events) bus.publish(sessionEvent, event, { session: sessionId });
}
