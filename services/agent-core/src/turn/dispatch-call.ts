// Runs one tool call on a tool-runner: request, heartbeats, settlement in the store.
//
// A runner that sends no heartbeat counts as dead. The call's state in the store then decides:
//   settled   that result
//   intended  the call is requested again
//   running   `pure` and `idempotent` calls are requested again; the outcome of `once` is unknown
import { maxResultBytesFor } from "@parley/bus";
import {
  errorMessage,
  callToken,
  mainWorkspaceId,
  store,
  toolAliveIntervalMs,
  toolCall,
  toolCancel,
  WireError,
  type Attachment,
  type ContactRole,
  type DocumentRights,
  type InputOf,
  type IsolationLevel,
  type Outgoing,
  type OutputOf,
  type ToolProgress,
  type ToolResult,
  type ToolStep,
} from "@parley/contracts";
import type { ToolDeps, TurnDeps } from "./dependencies.ts";

export type ToolCallDeps = Pick<TurnDeps, "bus" | "log" | "leaderStore"> & {
  tools: Pick<ToolDeps, "signGrant" | "running">;
};

/** Silence after which a runner counts as dead. */
const silentMs = toolAliveIntervalMs * 3.5;
/** Why a request ends when its call has ended. Without a reason, each call would create an error with a stack trace. */
const ended = "the call has ended";
/** How long a call waits for any tool-runner to be available. */
const noRunnerMs = 30_000;
/** How long a cancelled call may take to be settled by its runner. */
const cancelGraceMs = 2_500;

/**
 * Size limits for the results that wait for the turn's next commit, in bytes: per step and per result. A commit must
 * fit on the bus.
 */
const unsettledStepBytes = 64 * 1024;
const unsettledBytes = 16 * 1024;

/**
 * Limit in bytes of encoded JSON for one pure result that waits for the turn's next commit, out of `count` such
 * results.
 */
function unsettledBytesFor(count: number): number {
  return Math.min(unsettledBytes, Math.floor(unsettledStepBytes / Math.max(1, count)));
}

/** How large the result of each of `count` calls may be. */
export function roomFor(count: number): Pick<RemoteCall, "maxResultBytes" | "unsettledBytes"> {
  return { maxResultBytes: maxResultBytesFor(count), unsettledBytes: unsettledBytesFor(count) };
}

export interface RemoteCall {
  sessionId: string;
  rootTurnId: string;
  /** Who takes part in the conversation: the owner alone, or others too. */
  audience: "owner" | "others";
  role: ContactRole;
  /** The workspace of the call. */
  workspace: string;
  tainted: boolean;
  documents: DocumentRights;
  minIsolation: IsolationLevel | undefined;
  /** Later calls of the step start after this one. */
  callsFollow: boolean;
  /** Patterns of paths it may not access. */
  denyPaths: readonly string[];
  step: ToolStep;
  /** JSON text; a hook may have changed the model's arguments. */
  input: string;
  timeoutMs: number;
  /** Extra time for questions to people. */
  asksMs: number;
  maxResultBytes: number;
  /** 0: the bus's limit. */
  maxResultCharacters: number;
  /** Called repeatedly while the call waits for a person. */
  asks: () => void;
  /** Called with the call's progress. */
  progress: (progress: ToolProgress) => void;
  unsettledBytes: number;
}

/** A call's result and where it is stored. */
export interface CallResult {
  result: ToolResult;
  /** The store does not have the result yet: the turn's next commit settles it. Null: it has. */
  unsettled: "done" | "failed" | null;
}

/** The call's result, from any runner. Rejects with the signal's reason once the call was cancelled. */
export async function dispatchToRunner(deps: ToolCallDeps, call: RemoteCall, signal: AbortSignal): Promise<CallResult> {
  const { step } = call;
  let giveUpAt = performance.now() + noRunnerMs;
  for (;;) {
    const outcome = await requestRunner(deps, call, signal);
    if (outcome.status === "answered") return outcome.answer;
    signal.throwIfAborted();
    // A runner was alive: allow the same time for another one.
    if (outcome.wasAlive) giveUpAt = performance.now() + noRunnerMs;
    const known = await readStep(deps, step);
    if (known.result !== null) return { result: known.result, unsettled: null };
    if (known.state === "running" && known.class === "once") {
      return { result: await settle(deps, step, "unknown", unknownResult(known)), unsettled: null };
    }
    if (outcome.status === "refused" || performance.now() >= giveUpAt) {
      const text = `The tool did not run: ${outcome.reason}.`;
      return { result: await settle(deps, step, "failed", text), unsettled: null };
    }
    deps.log.warn(
      { turnId: step.turnId, step: step.n, tool: step.tool, reason: outcome.reason },
      "tool call redirected: another tool-runner is requested",
    );
  }
}

type Outcome =
  | { status: "answered"; answer: CallResult }
  | { status: "silent" | "refused"; reason: string; wasAlive: boolean };

/** Sends one request and follows heartbeats until the reply, the settlement or silence. */
export async function requestRunner(deps: ToolCallDeps, call: RemoteCall, signal: AbortSignal): Promise<Outcome> {
  const { bus, leaderStore } = deps;
  const { epoch } = leaderStore;
  const { step, timeoutMs } = call;
  const answerMs = timeoutMs + call.asksMs + noRunnerMs;
  const over = new AbortController();
  const silent = Promise.withResolvers<Outcome>();
  let wasAlive = false;
  const giveUp = (reason: string) => silent.resolve({ status: "silent", reason, wasAlive });
  const watchdog = setTimeout(() => giveUp("no tool-runner responded"), silentMs);
  const unfollow = deps.tools.running.follow(step, {
    alive: (asks) => {
      wasAlive = true;
      watchdog.refresh();
      if (asks) call.asks();
    },
    progress: call.progress,
    // The reply may be lost although the result is stored: the store's hint reports that.
    settled: () => void setTimeout(() => giveUp("the reply was lost"), 250).unref(),
  });
  const cancel = () => {
    const { turnId, n } = step;
    bus.publish(toolCancel, { epoch, turnId, n }, { call: callToken(turnId, n) });
    setTimeout(() => giveUp("cancelled"), cancelGraceMs).unref();
  };
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  try {
    const reply = bus.request(
      toolCall,
      {
        epoch,
        sessionId: call.sessionId,
        rootTurnId: call.rootTurnId,
        audience: call.audience,
        role: call.role,
        ...(call.workspace === mainWorkspaceId ? {} : { workspace: call.workspace }),
        tainted: call.tainted,
        grant: grantOf(deps, call),
        ...(call.minIsolation === undefined ? {} : { minIsolation: call.minIsolation }),
        ...(call.callsFollow ? { callsFollow: true } : {}),
        ...(call.denyPaths.length === 0 ? {} : { denyPaths: [...call.denyPaths] }),
        turnId: step.turnId,
        n: step.n,
        callId: step.callId,
        tool: step.tool,
        class: step.class,
        input: call.input,
        timeoutMs,
        maxResultBytes: call.maxResultBytes,
        ...(call.maxResultCharacters === 0 ? {} : { maxResultCharacters: call.maxResultCharacters }),
        ...(step.class === "pure" ? { unsettledBytes: call.unsettledBytes } : {}),
      },
      // One attempt: the heartbeat watchdog decides when to request again.
      {
        params: { tool: step.tool },
        timeoutMs: answerMs,
        attemptMs: answerMs,
        signal: over.signal,
      },
    );
    return await Promise.race([reply.then(answered), silent.promise]);
  } catch (error) {
    if (WireError.is(error, "STALE_EPOCH")) throw leaderStore.failure(error);
    const reason = errorMessage(error);
    return { status: WireError.is(error, "UNAVAILABLE", "TIMEOUT") ? "silent" : "refused", reason, wasAlive };
  } finally {
    over.abort(ended);
    clearTimeout(watchdog);
    signal.removeEventListener("abort", cancel);
    unfollow();
  }
}

function grantOf({ tools: { signGrant } }: ToolCallDeps, call: RemoteCall): string {
  const { sessionId, rootTurnId, audience, tainted, documents, timeoutMs, asksMs } = call;
  const { turnId, n, tool, class: toolClass } = call.step;
  return signGrant({
    sessionId,
    turnId,
    n,
    rootTurnId,
    tool,
    class: toolClass,
    audience,
    tainted,
    documents,
    maxDurationMs: timeoutMs + asksMs + noRunnerMs,
  });
}

function answered({ state, result, unsettled }: OutputOf<typeof toolCall>): Outcome {
  if (unsettled !== true || (state !== "done" && state !== "failed")) {
    return { status: "answered", answer: { result, unsettled: null } };
  }
  // The store has not checked references to attachments; the runner itself settles results that have some.
  const { attachments: _, sent: __, refused: ___, ...checked } = result;
  return { status: "answered", answer: { result: checked, unsettled: state } };
}

async function readStep({ leaderStore }: ToolCallDeps, step: ToolStep): Promise<ToolStep> {
  const { steps } = await leaderStore.request(store.turnGet, { turnId: step.turnId, n: step.n });
  return steps.find((each) => each.n === step.n) ?? step;
}

function unknownResult(step: ToolStep): string {
  return `Outcome unknown: the call was started at ${step.startedAt ?? "an unknown time"} and interrupted before its result was recorded. Check its effects before you repeat it.`;
}

/** The first settlement counts: a slow runner may have settled the call already. */
export async function settle(
  deps: Pick<ToolCallDeps, "leaderStore">,
  step: ToolStep,
  state: "done" | "failed" | "unknown",
  content: string,
  {
    outgoing = [],
    sent = [],
    refused = false,
    untrusted = false,
    durationMs,
  }: {
    outgoing?: Outgoing[];
    sent?: Attachment[];
    refused?: boolean;
    untrusted?: boolean;
    durationMs?: number;
  } = {},
): Promise<ToolResult> {
  const isError = state !== "done";
  const result: ToolResult = {
    type: "tool_result",
    id: step.callId,
    name: step.tool,
    content,
    isError,
    ...(refused ? { refused } : {}),
    ...(untrusted ? { untrusted } : {}),
    ...(sent.length === 0 ? {} : { sent }),
    ...(durationMs === undefined ? {} : { durationMs: Math.round(durationMs) }),
  };
  return settleStep(deps, step, state, result, outgoing.length === 0 ? {} : { outgoing });
}

/** The stored result: the first settlement counts, and then the first with a `hookOutcome`. */
export async function settleStep(
  { leaderStore }: Pick<ToolCallDeps, "leaderStore">,
  { turnId, n }: ToolStep,
  state: "done" | "failed" | "unknown",
  result: ToolResult,
  more: Pick<InputOf<typeof store.stepSettle>, "outgoing" | "hookOutcome">,
): Promise<ToolResult> {
  const settlement = { turnId, n, state, result, ...more };
  const { step } = await leaderStore.request(store.stepSettle, settlement);
  return step.result ?? result;
}
