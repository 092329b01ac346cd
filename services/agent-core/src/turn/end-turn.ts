// The end of a turn that no answer of the model brings about, and what hooks are told about any end.
import type { Finish } from "@parley/contracts";
import type { Turn } from "./turn.ts";

/** How long hooks about an end may take together. */
const hooksTimeoutMs = 60_000;

/** Ends the turn without a further model call, and says so to the hooks. `spoken`: as in `Turn.finish`. */
export async function endWith(turn: Turn, finish: Finish, spoken?: string | null): Promise<"queued" | "finished"> {
  const { queued } = await turn.finish(finish, spoken);
  await reportEnd(turn, finish);
  return queued ? "queued" : "finished";
}

/** Never rejects: the turn has ended, whatever a hook makes of it. */
export async function reportEnd({ deps, claimed, place, policy }: Turn, finish: Finish): Promise<void> {
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
    deps.log.warn({ err: error, turn: claimed.turnId }, "a hook about the end of a turn was given up");
  }
}
