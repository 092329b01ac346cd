// What events reveal about their turns. Pure.

import type { SessionEvent, TurnSummary } from "@parley/contracts";

/** True for a message of a sender, as opposed to the loop's own. */
export function isSaid(event: SessionEvent): boolean {
  return event.type === "message" && event.message.role === "user" && event.message.from !== undefined;
}

export function turnOf(event: SessionEvent): string {
  return event.type === "message" ? event.message.turnId : event.turnId;
}

/** The end of a turn as an event, made from the store's record. */
export function endOf({ turnId, state, exitReason, text, usage, cost }: TurnSummary): SessionEvent {
  return {
    type: "turn.finished",
    seq: 0,
    turnId,
    state,
    exitReason: exitReason ?? "error",
    text: text ?? "",
    usage,
    cost,
  };
}

/** The outcome of an ended turn for the waiting caller. */
export function outcomeOf(state: TurnSummary["state"]): "done" | "failed" | "cancelled" {
  return state === "done" || state === "cancelled" ? state : "failed";
}
