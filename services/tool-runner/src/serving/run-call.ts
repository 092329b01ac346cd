// One run of a call's tool on this replica: with what the tool is given, until it ends, its time is over or it is told to stop.
import { callToken, type ToolCallRequest, type ToolProgress } from "@parley/contracts";
import { seenBy } from "../documents/seen-by.ts";
import { runTool } from "../registry.ts";
import type { CallDependencies } from "./call-dependencies.ts";
import { Deadline } from "./deadline.ts";
import { outcome, stopped, type CallAnswer, type Outcome, type Stop } from "./outcomes.ts";
import { atMostEvery } from "./pace.ts";

export interface RunningCall {
  request: ToolCallRequest;
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
  const { faultPoint, registry, workspace, documents, contents, searcher, checkpoint, onBug, times } = deps;
  if (control.signal.aborted) return stopped(request, call.stop, undefined);
  faultPoint("tool.running");
  const deadline = new Deadline(request.timeoutMs, () => stopCall(call, "deadline"));
  const pace = atMostEvery<ToolProgress>(times.progressMs, (progress) => deps.progress?.(request, progress));
  const { asksMs = 0 } = registry.find(request.tool)?.descriptor ?? {};
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
  const work = runTool(
    registry,
    request.tool,
    request.input,
    {
      workspace: denyPaths.length === 0 ? workspace : workspace.without(denyPaths),
      denyPaths,
      documents: documents === null ? null : seenBy(documents, request),
      ...(contents === undefined ? {} : { contents }),
      searcher,
      checkpoint: checkpoint(request.rootTurnId ?? request.turnId, control.signal),
      ...(asksMs === 0 || deps.person === undefined ? {} : { person: deps.person(request, { asksMs, waits }) }),
      ...(deps.sampler === undefined ? {} : { sampler: deps.sampler(request) }),
      progress: (progress) => pace.say(progress),
      signal: control.signal,
      sessionId: request.sessionId,
      turnId: request.turnId,
      tainted: request.tainted ?? false,
      minIsolation: request.minIsolation,
      idempotencyKey: `${request.turnId}:${request.n}`,
      callName: key.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(-100),
    },
    (error) => onBug(error, request),
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
