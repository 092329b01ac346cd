// Ends a turn without a final model answer, and runs the hooks on the end of any turn.
import type { Finish } from "@parley/contracts";
import type { TurnState } from "./state.ts";

/** Limit for all hooks on one turn's end together. */
const hooksTimeoutMs = 60_000;

/** Ends the turn without a further model call, and runs the hooks on it. `spoken`: as in `Turn.finish`. */
export async function finishTurn(
  turn: TurnState,
  finish: Finish,
  spoken?: string | null,
): Promise<"queued" | "finished"> {
  const { queued } = await turn.finish(finish, spoken);
  await reportEnd(turn, finish);
  return queued ? "queued" : "finished";
}

/** Never rejects: the turn has ended regardless of its hooks. */
export async function reportEnd({ deps, claimed, place, policy }: TurnState, finish: Finish): Promise<void> {
  const signal = AbortSignal.timeout(hooksTimeoutMs);
  try {
    if (claimed.parent !== null) {
      const facts = {
        sessionId: claimed.sessionId,
        profile: policy.profile ?? "",
        exitReason: finish.exitReason,
        lastText: finish.text,
      };
      await deps.runHooks("SubagentStop", place, facts, signal);
    }
    if (finish.exitReason === "max_turns" || finish.exitReason === "max_budget") {
      await deps.runHooks("Notification", place, { type: "limit", message: finish.text }, signal);
    }
  } catch (error) {
    deps.log.warn({ err: error, turn: claimed.turnId }, "turn end hooks failed: ignored, the turn has ended");
  }
}
