// A rewind: takes a lease on the workspace in the store, restores path after path, and records the outcome. It may crash at any
// point: repeated, it does the remaining work, and its own checkpoint still contains the original state.
import { setTimeout as delay } from "node:timers/promises";
import {
  WireError,
  type checkpointRewind,
  type InputOf,
  type CapturedFile,
  type RewindReport,
  type RewoundFile,
  type store,
} from "@parley/contracts";
import { describeFileError } from "../workspace/errors.ts";
import type { WorkspaceLease } from "../workspace/workspaces.ts";
import type { ContentStore } from "./content-store.ts";
import { putDocumentBack } from "./restore-document.ts";
import { previewRestore, orderOfWork, restoreEntry, settleDirectory } from "./restore.ts";
import type { CheckpointClient } from "./checkpoint-client.ts";

export interface RewindTimes {
  /** Lease time without renewal; after that, any runner may continue a dead runner's rewind. */
  ttlMs: number;
  /** Interval between polls for the end of another rewind. */
  pollMs: number;
  /** How long to wait for another rewind. */
  patienceMs: number;
  /** How long to wait for a tool-runner to report whether its background process still runs. */
  confirmMs: number;
}

export const rewindTimes: RewindTimes = { ttlMs: 10_000, pollMs: 200, patienceMs: 30_000, confirmMs: 5_000 };

export interface RewinderDependencies {
  /** Opens a workspace by its id; undefined: the main one. */
  open: (id: string | undefined) => Promise<WorkspaceLease>;
  blobs: ContentStore;
  rows: CheckpointClient;
  /** The process instance of this replica. */
  runner: string;
  /** The session's background processes, as far as tool-runners report them: one that runs, and the tool-runners without any. */
  background: (sessionId: string) => Promise<{ running: string | undefined; idle: string[] }>;
  times: RewindTimes;
  faultPoint: (name: string) => void;
  onEnd: (sessionId: string, report: RewindReport) => void;
}

type Input = InputOf<typeof checkpointRewind>;

/** Maximum bytes of the file list in a report, so that the report fits a bus message. */
const maxListBytes = 200 * 1024;
const importance: readonly RewoundFile["outcome"][] = ["failed", "skipped", "removed", "restored"];

export class Rewinder {
  readonly #deps: RewinderDependencies;
  readonly #running = new Map<string, Promise<RewindReport>>();

  constructor(deps: RewinderDependencies) {
    this.#deps = deps;
  }

  /** A repeated request with the same `opId` joins the running rewind. Throws WireError. */
  rewind(input: Input): Promise<RewindReport> {
    if (input.dryRun) return this.#foresee(input);
    const known = this.#running.get(input.opId);
    if (known !== undefined) return known;
    const work = this.#carryOut(input).finally(() => this.#running.delete(input.opId));
    this.#running.set(input.opId, work);
    return work;
  }

  async #foresee(input: Input): Promise<RewindReport> {
    const { rows, blobs } = this.#deps;
    await using lease = await this.#open(input);
    const { workspace } = lease;
    const files: RewoundFile[] = [];
    const permit = permitOf(input);
    const changed = await rows.files(permit);
    for (const wanted of orderOfWork(changed.files))
      files.push(await previewRestore(wanted, { workspace, blobs, mark: "" }));
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
      const requestedAtMs = performance.now();
      try {
        await rows.update({ ...ref, change: { ttlMs: times.ttlMs } });
        heldUntil = requestedAtMs + times.ttlMs;
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
      await rows.update({ ...ref, change: { report } });
      onEnd(input.sessionId, report);
      return report;
    } catch (error) {
      await rows.update({ ...ref, change: { report: null } }).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(timer);
    }
  }

  /** Throws UNAVAILABLE when the folder cannot be opened. */
  async #open({ workspace }: Input): Promise<WorkspaceLease> {
    try {
      return await this.#deps.open(workspace);
    } catch (error) {
      const reason = describeFileError(error);
      if (reason === undefined) throw error;
      throw new WireError("UNAVAILABLE", `the workspace could not be opened: ${reason}`);
    }
  }

  async #begin(input: Input): Promise<{ fence: number } | { report: RewindReport }> {
    const { rows, runner, times, background } = this.#deps;
    const rewind = permitOf(input);
    const startMs = performance.now();
    for (;;) {
      const { running, idle } = await background(input.sessionId);
      if (running !== undefined) throw mayWrite(running);
      const begun = await rows.begin({ rewind, runner, ttlMs: times.ttlMs, idle });
      const waitedMs = performance.now() - startMs;
      if (begun.status === "unconfirmed") {
        if (waitedMs >= times.confirmMs) throw mayWrite(begun.processId);
      } else if (begun.status !== "busy") return begun;
      else if (waitedMs >= times.patienceMs) throw new WireError("UNAVAILABLE", "another rewind is still running");
      await delay(times.pollMs);
    }
  }

  async #putAllBack(input: Input, fence: number, hold: () => void): Promise<RewoundFile[]> {
    const { rows, blobs, faultPoint } = this.#deps;
    await using lease = await this.#open(input);
    const { workspace, tainted } = lease;
    const rewind = permitOf(input);
    const changed = await rows.files(rewind);
    const wanted = orderOfWork(changed.files);
    const keep = async (now: CapturedFile) => {
      hold();
      if (!(await rows.track({ rewind }, [now]))) throw new WireError("FENCED", "another rewind has started");
    };
    const done: RewoundFile[] = [];
    for (const each of wanted) {
      hold();
      // Called before the content is restored: after a crash in between, the file counts as tainted.
      await tainted?.restored(each.path);
      done.push(await restoreEntry(each, { workspace, blobs, mark: input.opId, keep }));
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

function mayWrite(processId: string): WireError {
  return new WireError(
    "CONFLICT",
    `background process ${processId} of this session may change files; stop it, then rewind`,
  );
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
