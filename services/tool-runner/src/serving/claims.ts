// What to do with a call after the store was asked for it. Pure: the store says how the step stands, this says what follows.
import type { ToolClass, ToolStep } from "@parley/contracts";

/** One life of a replica. The name stays over restarts, the incarnation does not. */
export interface RunnerId {
  replica: string;
  incarnation: string;
}

export type AfterClaim =
  /** It is ours. */
  | { act: "run" }
  /** It is settled: that is the answer. */
  | { act: "answer" }
  /** Its runner is gone for certain, and it must not run again. Only the leader can settle it. */
  | { act: "interrupted" }
  /** Another runner may be working on it: its settlement is the answer. `thenRun`: if that does not come, run it again. */
  | { act: "wait"; thenRun: boolean };

const separator = "#";

/** How a runner signs its claims. */
export function runnerName(id: RunnerId): string {
  return `${id.replica}${separator}${id.incarnation}`;
}

/** Another life of this very replica: there is one at a time, so that one is over. */
export function isEarlierLife(runner: string, me: RunnerId): boolean {
  return runner !== runnerName(me) && runner.startsWith(`${me.replica}${separator}`);
}

/**
 * A call of class `once` is never started twice: who finds it running waits for whoever runs it. Only when that was an
 * earlier life of this very replica is it certain that nobody does, and then its outcome is unknown. An `idempotent` call may
 * be run again with its key, at once where nobody else works on it, after a while where somebody may.
 */
export function afterClaim(
  claim: { granted: boolean; step: ToolStep },
  me: RunnerId,
  toolClass: ToolClass,
): AfterClaim {
  const { granted, step } = claim;
  if (granted) return { act: "run" };
  if (step.state !== "running" && step.state !== "intended") return { act: "answer" };
  // This life claimed it and has it not in its hands: the claim's answer was lost before anything was started.
  if (step.runner === runnerName(me)) return { act: "run" };
  const earlierLife = step.runner !== null && isEarlierLife(step.runner, me);
  const once = toolClass === "once";
  if (earlierLife) return once ? { act: "interrupted" } : { act: "run" };
  return { act: "wait", thenRun: !once };
}

/** The class that asks for more care, when the step was committed by a build that classed the tool differently. */
export function stricter(a: ToolClass, b: ToolClass | undefined): ToolClass {
  if (a === "once" || b === "once") return "once";
  return a === "idempotent" || b === "idempotent" ? "idempotent" : "pure";
}
