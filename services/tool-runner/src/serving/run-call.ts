// One run of a call's tool on this replica: with what the tool is given, until it ends, its time is over or it is told to stop.
import { callToken, errorMessage, type ToolProgress } from "@parley/contracts";
import { seenBy } from "../documents/seen-by.ts";
import { runTool } from "../registry.ts";
import { failure } from "../tool.ts";
import type { CallDependencies, GrantedCall } from "./call-dependencies.ts";
import { Deadline } from "./deadline.ts";
import { outcome, stopped, type CallAnswer, type Outcome, type Stop } from "./outcomes.ts";
import { atMostEvery } from "./pace.ts";
import { withTaint, type Ground } from "./taint-guard.ts";

export interface RunningCall {
  request: GrantedCall;
  /** The secret of its claim, the same for every claim of this call by this life of the replica. */
  claim: string;
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
  const { faultPoint, registry, workspace, documents, contents, searcher, textWorker, checkpoint } = deps;
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
  const key = callToken(request.turnId, request.n);
  const run = (ground: Ground) =>
    runTool(
      registry,
      request.tool,
      request.input,
      {
        ...ground,
        documents: documents === null ? null : seenBy(documents(request), request),
        ...(contents === undefined ? {} : { contents: contents(request) }),
        searcher,
        textWorker,
        checkpoint: checkpoint(request, control.signal),
        ...(asksMs === 0 || deps.person === undefined
          ? {}
          : { person: deps.person(request, { asksMs, waits }, call.claim) }),
        ...(deps.sampler === undefined ? {} : { sampler: deps.sampler(request) }),
        progress: (progress) => pace.say(progress),
        signal: control.signal,
        grant: request.grant,
        sessionId: request.sessionId,
        turnId: request.turnId,
        minIsolation: request.minIsolation,
        idempotencyKey: `${request.turnId}:${request.n}`,
        callName: key.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(-100),
      },
      (error) => onBug(error, request),
    );
  const guarded = { descriptor, workspace, tainted: request.tainted ?? false };
  const work = withTaint(deps.tainted, guarded, run).catch((error: unknown) => {
    onBug(error, request);
    return failure(`The taint of files could not be read or recorded (${errorMessage(error)}); look at what was done.`);
  });
  try {
    const output = await Promise.race([work, left.promise]);
    if (output === undefined || control.signal.aborted) return stopped(request, call.stop, output);
    return outcome(output.isError ? "failed" : "done", output);
  } finally {
    deadline.close();
    pace.close();
  }
}
