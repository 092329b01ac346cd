// A rewind: owns the workspace through the store, puts path after path back, and writes down what came of it. It may die at any
// moment: asked again, it does what is left, and what it made of itself (its own checkpoint) still knows how everything was.
import { setTimeout as delay } from "node:timers/promises";
import {
  WireError,
  type checkpointRewind,
  type InputOf,
  type KeptFile,
  type RewindOutcome,
  type RewindReport,
  type RewoundFile,
  type store,
} from "@parley/contracts";
import type { Workspace } from "../workspace/workspace.ts";
import type { Blobs } from "./blobs.ts";
import { putDocumentBack } from "./restore-document.ts";
import { foresee, orderOfWork, putBack, settleDirectory } from "./restore.ts";
import type { Rows } from "./rows.ts";

export interface RewindTimes {
  /** How long the workspace stays owned without a renewal: after that a dead runner's rewind is anybody's. */
  ttlMs: number;
  /** Pause between looks whether another rewind has ended. */
  pollMs: number;
  /** How long another rewind is waited for. */
  patienceMs: number;
}

export const rewindTimes: RewindTimes = { ttlMs: 10_000, pollMs: 200, patienceMs: 30_000 };

export interface RewinderDependencies {
  workspace: Workspace;
  blobs: Blobs;
  rows: Rows;
  /** This life of this replica. */
  runner: string;
  /** What goes on in the background and may write: a sentence without its end, or undefined. */
  busy: (sessionId: string) => Promise<string | undefined>;
  times: RewindTimes;
  /** An earlier content of this file was brought back. */
  onRestored?: ((path: string) => Promise<void>) | undefined;
  faultPoint: (name: string) => void;
  onEnd: (sessionId: string, report: RewindReport) => void;
}

type Input = InputOf<typeof checkpointRewind>;

/** Bytes of the list of files in a report: with the rest it fits a message of the bus. */
const maxListBytes = 200 * 1024;
const importance: readonly RewindOutcome[] = ["failed", "skipped", "removed", "restored"];

export class Rewinder {
  readonly #deps: RewinderDependencies;
  readonly #running = new Map<string, Promise<RewindReport>>();

  constructor(deps: RewinderDependencies) {
    this.#deps = deps;
  }

  /** Asked again with the same `opId` it joins what goes on. Throws WireError. */
  rewind(input: Input): Promise<RewindReport> {
    if (input.dryRun) return this.#foresee(input);
    const known = this.#running.get(input.opId);
    if (known !== undefined) return known;
    const work = this.#carryOut(input).finally(() => this.#running.delete(input.opId));
    this.#running.set(input.opId, work);
    return work;
  }

  async #foresee(input: Input): Promise<RewindReport> {
    const { rows, workspace, blobs } = this.#deps;
    const files: RewoundFile[] = [];
    const permit = permitOf(input);
    const changed = await rows.files(permit);
    for (const wanted of orderOfWork(changed.files)) files.push(await foresee(wanted, { workspace, blobs, mark: "" }));
    for (const wanted of changed.documents) files.push(await putDocumentBack(wanted, rows, permit, null));
    return reportOf(null, files);
  }

  async #carryOut(input: Input): Promise<RewindReport> {
    const { rows, times, onEnd } = this.#deps;
    const begun = await this.#begin(input);
    if ("report" in begun) return begun.report;
    const ref = { rewind: permitOf(input), fence: begun.fence };
    const lost = new AbortController();
    let heldUntil = performance.now() + times.ttlMs;
    const renew = async () => {
      const asked = performance.now();
      try {
        await rows.renew({ ...ref, ttlMs: times.ttlMs });
        heldUntil = asked + times.ttlMs;
      } catch (error) {
        if (WireError.is(error, "FENCED")) lost.abort(error);
      }
    };
    const timer = setInterval(() => void renew(), times.ttlMs / 3);
    const hold = () => {
      lost.signal.throwIfAborted();
      if (performance.now() >= heldUntil) throw new WireError("UNAVAILABLE", "the store could not be reached in time");
    };
    try {
      const report = reportOf(input.opId, await this.#putAllBack(input, begun.fence, hold));
      await rows.end({ ...ref, report });
      onEnd(input.sessionId, report);
      return report;
    } catch (error) {
      await rows.end({ ...ref, report: null }).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(timer);
    }
  }

  async #begin(input: Input): Promise<{ fence: number } | { report: RewindReport }> {
    const { rows, runner, times, busy } = this.#deps;
    const rewind = permitOf(input);
    const deadline = performance.now() + times.patienceMs;
    for (;;) {
      const writer = await busy(input.sessionId);
      if (writer !== undefined) throw new WireError("CONFLICT", `${writer}; stop it, then rewind`);
      const begun = await rows.begin({ rewind, runner, ttlMs: times.ttlMs });
      if (begun.status !== "busy") return begun;
      if (performance.now() >= deadline) throw new WireError("UNAVAILABLE", "another rewind is still at work");
      await delay(times.pollMs);
    }
  }

  async #putAllBack(input: Input, fence: number, hold: () => void): Promise<RewoundFile[]> {
    const { rows, workspace, blobs, faultPoint, onRestored } = this.#deps;
    const rewind = permitOf(input);
    const changed = await rows.files(rewind);
    const wanted = orderOfWork(changed.files);
    const keep = async (now: KeptFile) => {
      hold();
      if (!(await rows.track({ rewind }, [now]))) throw new WireError("FENCED", "another rewind has begun");
    };
    const done: RewoundFile[] = [];
    for (const each of wanted) {
      hold();
      // Before its content is there: a crash in between leaves a file that counts as tainted.
      await onRestored?.(each.path);
      done.push(await putBack(each, { workspace, blobs, mark: input.opId, keep }));
      faultPoint("rewind.after_file");
    }
    for (const each of wanted.toReversed()) await settleDirectory(each, workspace);
    for (const each of changed.documents) {
      hold();
      done.push(await putDocumentBack(each, rows, rewind, fence));
    }
    return done;
  }
}

function permitOf({ opId: rewindId, secret }: Input): store.RewindPermit {
  return { rewindId, secret };
}

function reportOf(checkpointId: string | null, files: readonly RewoundFile[]): RewindReport {
  const counts = { restored: 0, removed: 0, skipped: 0, failed: 0 };
  for (const { outcome } of files) counts[outcome] += 1;
  const sorted = importance.flatMap((outcome) => files.filter((file) => file.outcome === outcome));
  let bytes = 0;
  const listed = sorted.filter((file) => (bytes += Buffer.byteLength(JSON.stringify(file))) <= maxListBytes);
  return { checkpointId, counts, files: listed, omitted: files.length - listed.length };
}
