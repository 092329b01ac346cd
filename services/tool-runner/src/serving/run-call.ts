// One run of a call's tool on this replica: with what the tool is given, until it ends, its time is over or it is told to stop.
import { callToken, errorMessage, mainWorkspaceId, type ToolProgress } from "@parley/contracts";
import { noCheckpoint } from "../checkpoints/keeper.ts";
import { seenBy } from "../documents/seen-by.ts";
import { runTool } from "../registry.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool.ts";
import { describeFileError } from "../workspace/errors.ts";
import type { WorkspaceLease } from "../workspace/workspaces.ts";
import type { CallDependencies, GrantedCall } from "./call-dependencies.ts";
import { Deadline } from "./deadline.ts";
import { outcome, stopped, type CallAnswer, type Outcome, type Stop } from "./outcomes.ts";
import { atMostEvery } from "./pace.ts";
import { withTaint, type Ground } from "./taint-guard.ts";

export interface RunningCall {
  request: GrantedCall;
  /** Returns the secret of its claim, the same for every claim of this call by this instance of the replica. */
  claim: () => string;
  control: AbortController;
  stop: Stop | undefined;
  /** May still be handed to another replica: nothing has been claimed or started. */
  waiting: boolean;
  /** Gives its place in the line to the next. */
  release: () => void;
  /** A person is waited for. */
  asks: boolean;
  sayAlive: () => void;
  answer: Promise<CallAnswer>;
}

export function stopCall(call: RunningCall, why: Stop): void {
  call.stop ??= why;
  call.control.abort(new Error(why));
}

/** The tool's output as the call's outcome; or how it was stopped, with what it had until then. */
export async function runCall(deps: CallDependencies, call: RunningCall): Promise<Outcome> {
  const { request, control } = call;
  const { faultPoint, registry, workspaces, documents, contents, searcher, textWorker, checkpoint } = deps;
  const { onBug, times } = deps;
  if (control.signal.aborted) return stopped(request, call.stop, undefined);
  faultPoint("tool.running");
  const deadline = new Deadline(request.timeoutMs, () => stopCall(call, "deadline"));
  const pace = atMostEvery<ToolProgress>(times.progressMs, (progress) => deps.progress?.(request, progress));
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
  // A tool that does not end when it is told to is left behind; its call is not.
  control.signal.addEventListener("abort", () => setTimeout(() => left.resolve(undefined), times.stopMs).unref(), {
    once: true,
  });
  const { denyPaths = [] } = request;
  const key = callToken(request.turnId, request.n);
  const contextOf = (ground: Ground): ToolContext => ({
    ...ground,
    denyPaths,
    documents: documents === null ? null : seenBy(documents(request), request),
    ...(contents === undefined ? {} : { contents: contents(request) }),
    searcher,
    textWorker,
    checkpoint: ground.workspace.id === mainWorkspaceId ? checkpoint(request, control.signal) : noCheckpoint,
    ...(asksMs === 0 || deps.person === undefined
      ? {}
      : { person: deps.person(request, { asksMs, waits }, call.claim()) }),
    ...(deps.sampler === undefined ? {} : { sampler: deps.sampler(request) }),
    progress: (progress) => pace.say(progress),
    signal: control.signal,
    grant: request.grant,
    sessionId: request.sessionId,
    turnId: request.turnId,
    ...(request.role === undefined ? {} : { role: request.role }),
    minIsolation: request.minIsolation,
    idempotencyKey: `${request.turnId}:${request.n}`,
    callName: key.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(-100),
  });
  const run = (ground: Ground) =>
    runTool(registry, request.tool, request.input, contextOf(ground), (error) => onBug(error, request));
  const work = inWorkspace(workspaces, request.workspace, ({ workspace, tainted }) =>
    withTaint(
      tainted,
      { descriptor, workspace: workspace.without(denyPaths), tainted: request.tainted ?? false },
      run,
    ).catch((error: unknown) => {
      onBug(error, request);
      return failure(
        `The taint of files could not be read or recorded (${errorMessage(error)}); look at what was done.`,
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

/** Keeps the workspace open until the tool has ended, also where its call has not waited for that. */
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
      `The workspace could not be opened: ${reason} Try again, or ask the operator to look at the tool-runner.`,
    );
  }
  await using taken = lease;
  return work(taken);
}
