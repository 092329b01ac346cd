// What an event tells about its turn. Pure.

import type { SessionEvent, TurnSummary } from "@parley/contracts";

/** A person's words, as opposed to the loop's own. */
export function isSaid(event: SessionEvent): boolean {
  return event.type === "message" && event.message.role === "user" && event.message.from !== undefined;
}

export function turnOf(event: SessionEvent): string {
  return event.type === "message" ? event.message.turnId : event.turnId;
}

/** The end of a turn as an event, from what the store says about it. */
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

/** What the end of a turn is to whoever waits for its answer. */
export function outcomeOf(state: TurnSummary["state"]): "done" | "failed" | "cancelled" {
  return state === "done" || state === "cancelled" ? state : "failed";
}
