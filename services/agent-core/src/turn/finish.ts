// Ends of turns: without a final model answer, after an internal error, the hooks on any end, and the notices for people.
import { sessionEvent, store, type ClaimedTurn, type Finish } from "@parley/contracts";
import type { ModelError } from "../model/provider.ts";
import { textExpiryMs } from "../tools/message.ts";
import { commitFinish } from "./commit.ts";
import type { TurnDeps } from "./dependencies.ts";
import { hookContextOf, type TurnState, type WritableTurn } from "./state.ts";

/** Limit for all hooks on one turn's end together. */
const hooksTimeoutMs = 60_000;

/**
 * Ends the turn without a further model call, and runs the hooks on it. `spoken`: text for people, if it differs from
 * what the output mode sends.
 */
export async function finishTurn(
  turn: WritableTurn,
  deps: TurnDeps,
  finish: Finish,
  spokenText?: string | null,
): Promise<"more_queued" | "finished"> {
  const { queued } = await commitFinish(turn, deps, finish, spokenText);
  await reportEnd(turn, deps, finish);
  return queued ? "more_queued" : "finished";
}

/** Runs the hooks on a turn's end. Never rejects: the turn has ended regardless of its hooks. */
export async function reportEnd(turn: TurnState, deps: TurnDeps, finish: Finish): Promise<void> {
  const { claimed, policy } = turn;
  deps.model.metrics.turnEnded(claimed, finish.state);
  const hookContext = hookContextOf(turn);
  const signal = AbortSignal.timeout(hooksTimeoutMs);
  try {
    if (claimed.parent !== null) {
      const facts = {
        sessionId: claimed.sessionId,
        profile: policy.profile ?? "",
        exitReason: finish.exitReason,
        lastText: finish.text,
      };
      await deps.runHooks("SubagentStop", hookContext, facts, signal);
    }
    if (finish.exitReason === "max_turns" || finish.exitReason === "max_budget") {
      await deps.runHooks("Notification", hookContext, { type: "limit", message: finish.text }, signal);
    }
  } catch (error) {
    deps.log.warn({ err: error, turnId: claimed.turnId }, "turn end hooks failed: ignored, the turn has ended");
  }
}

const failureText = "I could not answer this because of an internal error. It has been logged; please try again.";

/** Ends a turn that failed because of an internal error, with a notice, so that queued input is processed. */
export async function failTurn(
  { bus, leaderStore }: Pick<TurnDeps, "bus" | "leaderStore">,
  { turnId, sessionId, replyTo }: Pick<ClaimedTurn, "turnId" | "sessionId" | "replyTo">,
): Promise<void> {
  const notice = { text: failureText, expiresInMs: textExpiryMs };
  const { events } = await leaderStore.request(store.turnFinish, {
    turnId,
    parts: [],
    model: null,
    // The results of open calls were not checked.
    tainted: true,
    unsettled: "Interrupted by an internal error.",
    outgoing: replyTo === null ? [] : [{ address: replyTo, ...notice }],
    finish: { state: "failed", exitReason: "error", text: failureText },
  });
  for (const event of events) bus.publish(sessionEvent, event, { session: sessionId });
}

/** The end of a turn whose model was unreachable or refused the request; pure. */
export function failureNotice(error: ModelError): Finish {
  const failed = (text: string): Finish => ({ state: "failed", exitReason: "error", text });
  switch (error.failure) {
    case "auth":
      return failed(
        `I cannot answer: the model's provider rejected my API key. The operator should check ${error.keyVariable ?? "ANTHROPIC_API_KEY or OPENAI_API_KEY"}.`,
      );
    case "spend_limit":
      return failed("I cannot answer: the spending limit at the model's provider has been reached.");
    case "context_overflow":
      return failed("I cannot answer: this conversation is too long for the model. Start a new one with `/new`.");
    case "rate_limit":
    case "overloaded":
      return failed("I could not answer: the model's provider is overloaded. Please try again in a few minutes.");
    case "server":
    case "connection":
    case "stalled":
      return failed("I could not answer: the model's provider did not respond properly. Please try again.");
    case "unknown_model":
      return failed(
        `I cannot answer: the model's provider does not have this model (${error.message.slice(0, 300)}). The operator should check the name; /model selects another one.`,
      );
    case "invalid":
      return failed(`I could not answer: the model's provider rejected the request (${error.message.slice(0, 300)}).`);
    default:
      return error.failure satisfies never;
  }
}

/** The end of a turn that a person has stopped. */
export const stoppedByUser: Finish = { state: "cancelled", exitReason: "interrupted", text: "Stopped." };
