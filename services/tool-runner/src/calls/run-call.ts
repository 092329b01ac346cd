// Runs the tool of one call on this replica, until it ends, exceeds its deadline or is stopped.
import { capturesContent, failSpan, genAi, genAiOperation, inSpan, parleyAttribute } from "@parley/chassis";
import { callToken, errorMessage, isOwnersWorkspace, type ToolProgress } from "@parley/contracts";
import { throttle } from "@parley/kit";
import { noCheckpoint } from "../snapshots/recorder.ts";
import { viewFor } from "../documents/documents.ts";
import { runTool } from "../tool/registry.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { describeFileError } from "../workspace/errors.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { WorkspaceLease } from "../workspace/workspaces.ts";
import type { CallDependencies, GrantedCall } from "./call-dependencies.ts";
import { Deadline } from "./deadline.ts";
import { outcome, pageCharactersFor, stopped, type CallAnswer, type Outcome, type Stop } from "./outcomes.ts";
import { withTaint, type GuardedContext } from "./taint-guard.ts";

export interface RunningCall {
  request: GrantedCall;
  /** Returns the secret of its claim, the same for every claim of this call by this process instance. */
  claim: () => string;
  control: AbortController;
  stop: Stop | undefined;
  /** Whether another replica may still take it over: nothing has been claimed or started. */
  waiting: boolean;
  /** Releases its concurrency slot. */
  release: () => void;
  /** Whether it is waiting for a person. */
  asks: boolean;
  sayAlive: () => void;
  answer: Promise<CallAnswer>;
}

export function stopCall(call: RunningCall, why: Stop): void {
  call.stop ??= why;
  call.control.abort(new Error(why));
}

/** The tool's output as the call's outcome; for a stopped call, the stop reason with the output so far. */
export function runCall(deps: CallDependencies, call: RunningCall): Promise<Outcome> {
  return inCallSpan(call.request, async () => {
    const startedAt = performance.now();
    const ended = await run(deps, call);
    return { ...ended, durationMs: Math.round(performance.now() - startedAt) };
  });
}

async function run(deps: CallDependencies, call: RunningCall): Promise<Outcome> {
  const { request, control } = call;
  const { faultPoint, registry, workspaces, documents, attachmentStore: contents, searcher, checkpoint } = deps;
  const { onBug, times } = deps;
  if (control.signal.aborted) return stopped(request, call.stop, undefined);
  faultPoint("tool.running");
  const deadline = new Deadline(request.timeoutMs, () => stopCall(call, "deadline"));
  const pace = throttle<ToolProgress>(times.progressMs, (progress) => deps.progress?.(request, progress));
  const descriptor = registry.find(request.tool)?.descriptor;
  const { asksMs = 0 } = descriptor ?? {};
  const waits = () => {
    call.release();
    const goOn = deadline.pause();
    const say = (asks: boolean) => {
      call.asks = asks;
      call.sayAlive();
    };
    say(true);
    return () => {
      goOn();
      say(false);
    };
  };
  const left = Promise.withResolvers<undefined>();
  // The call ends even if its tool ignores the abort.
  control.signal.addEventListener("abort", () => setTimeout(() => left.resolve(undefined), times.stopMs).unref(), {
    once: true,
  });
  const { denyPaths = [] } = request;
  const key = callToken(request.turnId, request.n);
  const contextOf = (ground: GuardedContext, whole: Workspace): ToolContext => ({
    ...ground,
    documents: documents === null ? null : viewFor(documents(request), request),
    ...(contents === undefined ? {} : { attachmentStore: contents(request) }),
    searcher,
    checkpoint: isOwnersWorkspace(whole.id) ? checkpoint(request, whole, control.signal) : noCheckpoint,
    ...(asksMs === 0 || deps.askPerson === undefined
      ? {}
      : { askPerson: deps.askPerson(request, { asksMs, waits }, call.claim()) }),
    ...(deps.sampler === undefined ? {} : { sampler: deps.sampler(request) }),
    progress: (progress) => pace.push(progress),
    signal: control.signal,
    grant: request.grant,
    sessionId: request.sessionId,
    turnId: request.turnId,
    ...(request.role === undefined ? {} : { role: request.role }),
    hasLaterCalls: request.callsFollow ?? false,
    minIsolation: request.minIsolation,
    maxPageCharacters: pageCharactersFor(request),
    idempotencyKey: `${request.turnId}:${request.n}`,
    callName: key.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(-100),
  });
  const work = inWorkspace(workspaces, request.workspace, ({ workspace, tainted }) =>
    withTaint(
      tainted,
      { descriptor, workspace: workspace.without(denyPaths), tainted: request.tainted ?? false },
      (ground) =>
        runTool(registry, request.tool, request.input, contextOf(ground, workspace), (error) => onBug(error, request)),
    ).catch((error: unknown) => {
      onBug(error, request);
      return failure(
        `The taint of files could not be read or recorded (${errorMessage(error)}); check what the call has changed.`,
      );
    }),
  );
  try {
    const output = await Promise.race([work, left.promise]);
    if (output === undefined || control.signal.aborted) return stopped(request, call.stop, output);
    return outcome(output.isError ? "failed" : "done", output);
  } finally {
    deadline.close();
    pace.close();
  }
}

/** Keeps the workspace open until the tool has ended, even if the call has ended before. */
async function inWorkspace(
  workspaces: CallDependencies["workspaces"],
  id: string | undefined,
  work: (lease: WorkspaceLease) => Promise<ToolOutput>,
): Promise<ToolOutput> {
  let lease: WorkspaceLease;
  try {
    lease = await workspaces.take(id);
  } catch (error) {
    const reason = describeFileError(error);
    if (reason === undefined) throw error;
    return failure(
      `The workspace could not be opened: ${reason} Try again, or ask the operator to check the tool-runner.`,
    );
  }
  await using taken = lease;
  return work(taken);
}

/** Runs a tool in an `execute_tool <tool>` span, as a child of the caller's span. Input and output are recorded only when content capture is enabled. */
function inCallSpan(request: GrantedCall, work: () => Promise<Outcome>): Promise<Outcome> {
  const attributes = {
    [genAi.operationName]: genAiOperation.executeTool,
    [genAi.toolName]: request.tool,
    [genAi.toolType]: "function",
    [genAi.toolCallId]: request.callId,
    [genAi.conversationId]: request.sessionId,
    [parleyAttribute.turnId]: request.turnId,
    [parleyAttribute.step]: request.n,
    ...(capturesContent() ? { [genAi.toolCallArguments]: request.input } : {}),
  };
  return inSpan(`${genAiOperation.executeTool} ${request.tool}`, { attributes }, async (span) => {
    const ended = await work();
    span.setAttribute(parleyAttribute.outcome, ended.state);
    if (capturesContent()) span.setAttribute(genAi.toolCallResult, ended.output.content);
    if (ended.output.isError) failSpan(span, ended.state);
    return ended;
  });
}
