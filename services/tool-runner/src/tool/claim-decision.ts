// Decides how to continue a call after a claim, from the step's state in the store. Pure.
import type { ToolClass, ToolStep } from "@parley/contracts";

/** One process instance of a replica. The name survives restarts, the incarnation does not. */
export interface RunnerId {
  replica: string;
  incarnation: string;
}

export type ClaimDecision =
  /** This runner holds the claim. */
  | { act: "run" }
  /** The step is settled: return its result. */
  | { act: "answer" }
  /** Its runner has certainly ended and it must not run again. Only the leader can settle it. */
  | { act: "interrupted" }
  /** Another runner may be running it: wait for its settlement. `thenRun`: run it again if none arrives. */
  | { act: "wait"; thenRun: boolean };

const separator = "#";

/** The runner's name in claims. */
export function runnerName(id: RunnerId): string {
  return `${id.replica}${separator}${id.incarnation}`;
}

/** The replica in a name that `runnerName` made. */
export function replicaOfRunner(runner: string): string {
  return runner.slice(0, runner.lastIndexOf(separator));
}

/** Whether `runner` is a previous instance of this replica. Only one instance exists at a time, so it has ended. */
export function isPreviousInstance(runner: string, me: RunnerId): boolean {
  return runner !== runnerName(me) && runner.startsWith(`${me.replica}${separator}`);
}

/**
 * A `once` call is never started twice: a runner that finds it running waits for the other one. Only a previous instance of this
 * replica has certainly ended, and then the outcome is unknown. An `idempotent` call may be run again with its key: immediately when
 * its runner has certainly ended, otherwise after a while.
 */
export function decideClaim(
  claim: { granted: boolean; step: ToolStep },
  me: RunnerId,
  toolClass: ToolClass,
): ClaimDecision {
  const { granted, step } = claim;
  if (granted) return { act: "run" };
  if (step.state !== "running" && step.state !== "intended") return { act: "answer" };
  // This instance claimed it but is not running it: the response to the claim was lost before anything started.
  if (step.runner === runnerName(me)) return { act: "run" };
  const earlierLife = step.runner !== null && isPreviousInstance(step.runner, me);
  const once = toolClass === "once";
  if (earlierLife) return once ? { act: "interrupted" } : { act: "run" };
  return { act: "wait", thenRun: !once };
}

/** The stricter class, when the step was committed by a build that classifies the tool differently. */
export function stricterClass(a: ToolClass, b: ToolClass | undefined): ToolClass {
  if (a === "once" || b === "once") return "once";
  return a === "idempotent" || b === "idempotent" ? "idempotent" : "pure";
}
