// Holds this replica's background processes, by session. They end when the service stops or is killed.
// It formats nothing for the model.
import { randomBytes } from "node:crypto";
import { abortable } from "@parley/kit";
import type { CommandResult, StartedCommand } from "../sandbox/executor.ts";
import type { TextRingBuffer } from "./ring-buffer.ts";

/** Characters of output stored per process. */
export const keptCharacters = 100_000;
/** Ended processes stored per session, so that their exit can be read. */
const maxEnded = 20;
const idBytes = 5;

export interface BackgroundProcess {
  /** `<random>@<replica>`: identifies the replica that runs the process. */
  readonly id: string;
  readonly sessionId: string;
  /** Grant of the call that started it. */
  readonly grant: string;
  /** Role and workspace of the call that started it, unless the owner's. Only the owner sees processes of others. */
  readonly scope: string | undefined;
  /** Whether its session receives an exit notice. */
  readonly notify: boolean;
  readonly command: string;
  readonly startedAt: Date;
  /** Time limit in seconds, from its start. */
  readonly timeoutSeconds: number;
  readonly started: Pick<StartedCommand, "stop" | "signal" | "write">;
  readonly interactive: boolean;
  readonly output: TextRingBuffer;
  /** How it ended; undefined while it runs. */
  end: CommandResult | undefined;
  /** Position in the output up to which the model has seen it. */
  seen: number;
  /** Calls that currently wait for it: they report its exit to the model. */
  watchers: number;
  /** Resolves when the store has recorded it, or that took too long. */
  readonly known: Promise<void>;
}

export interface NewProcess {
  sessionId: string;
  grant: string;
  scope: string | undefined;
  notify: boolean;
  command: string;
  startedAt: Date;
  started: StartedCommand;
  interactive: boolean;
  output: TextRingBuffer;
  /** Position in the output up to which the model has seen it. */
  seen: number;
  timeoutSeconds: number;
}

/** On whose behalf processes are listed. */
export interface ProcessViewer {
  sessionId: string;
  scope?: string | undefined;
}

export interface ProcessLimits {
  /** Maximum running concurrently in one session. */
  maxPerSession: number;
  /** Maximum running concurrently on this replica. */
  maxInAll: number;
}

/** Receives the start and the end of each process. */
export interface ProcessLedger {
  begun(entry: Omit<BackgroundProcess, "known">): Promise<void>;
  /** `watched`: a call is waiting for it now. */
  ended(entry: BackgroundProcess, watched: boolean): void;
}

export class Processes {
  readonly #replica: string;
  readonly #limits: ProcessLimits;
  readonly #ledger: ProcessLedger | undefined;
  readonly #all = new Map<string, BackgroundProcess>();
  readonly #endings = new Map<string, Promise<void>>();
  readonly #changes = new Map<string, PromiseWithResolvers<void>>();

  /** Without a ledger, nothing is reported. */
  constructor(replica: string, limits: ProcessLimits, ledger?: ProcessLedger) {
    this.#replica = replica;
    this.#limits = limits;
    this.#ledger = ledger;
  }

  /** Why this session cannot start another process; undefined if it can. */
  refusal(sessionId: string): string | undefined {
    const running = [...this.#all.values()].filter(({ end }) => end === undefined);
    const { maxPerSession, maxInAll } = this.#limits;
    if (maxPerSession === 0) return "Background processes are disabled here.";
    if (running.filter((each) => each.sessionId === sessionId).length >= maxPerSession) {
      return `This session already has ${maxPerSession} background processes, the maximum. End one first.`;
    }
    if (running.length >= maxInAll) return `The tool-runner already has ${maxInAll} background processes, its maximum.`;
    return undefined;
  }

  /** Takes over a running command and ends it when its time is up. */
  add(fresh: NewProcess): BackgroundProcess {
    const { started, output, startedAt, timeoutSeconds } = fresh;
    const id = `${randomBytes(idBytes).toString("hex")}@${this.#replica}`;
    const begun = { ...fresh, id, end: undefined, watchers: 0 };
    const entry: BackgroundProcess = Object.assign(begun, {
      known: this.#ledger?.begun(begun) ?? Promise.resolve(),
    });
    this.#all.set(id, entry);
    started.detach();
    output.onPush = () => this.#notice(id);
    const leftMs = startedAt.getTime() + timeoutSeconds * 1_000 - Date.now();
    const timer = setTimeout(() => started.stop("timeout"), leftMs);
    const ending = async () => {
      entry.end = await started.ended.catch(() => lost);
      clearTimeout(timer);
      this.#endings.delete(id);
      this.#ledger?.ended(entry, entry.watchers > 0);
      this.#notice(id);
      this.#forgetOld(entry.sessionId);
    };
    this.#endings.set(id, ending());
    return entry;
  }

  /** Processes of one session, oldest first. */
  ofSession(sessionId: string): BackgroundProcess[] {
    return [...this.#all.values()].filter((each) => each.sessionId === sessionId);
  }

  /** Processes that the viewer may read and control, oldest first; without `scope` (the owner's call), all of the session. */
  seenBy({ sessionId, scope }: ProcessViewer): BackgroundProcess[] {
    return this.ofSession(sessionId).filter((each) => scope === undefined || each.scope === scope);
  }

  find(viewer: ProcessViewer, id: string): BackgroundProcess | undefined {
    return this.seenBy(viewer).find((each) => each.id === id);
  }

  /** Waits for output after `seen`, the exit, the timeout or an abort. */
  async news(entry: BackgroundProcess, waitMs: number, signal: AbortSignal): Promise<void> {
    if (waitMs <= 0 || signal.aborted || entry.end !== undefined || entry.output.end > entry.seen) return;
    const change = this.#changes.get(entry.id) ?? Promise.withResolvers<void>();
    this.#changes.set(entry.id, change);
    await this.#watch(entry, change.promise, waitMs, signal);
  }

  /** Waits for the exit, the timeout or an abort. */
  async end(entry: BackgroundProcess, waitMs: number, signal: AbortSignal): Promise<void> {
    const ending = this.#endings.get(entry.id);
    if (ending !== undefined && !signal.aborted) await this.#watch(entry, ending, waitMs, signal);
  }

  async #watch(entry: BackgroundProcess, what: Promise<void>, waitMs: number, signal: AbortSignal): Promise<void> {
    entry.watchers += 1;
    await abortable(what, AbortSignal.any([signal, AbortSignal.timeout(waitMs)])).catch(() => undefined);
    entry.watchers -= 1;
  }

  /** Number running now, over all sessions. */
  get running(): number {
    return this.#endings.size;
  }

  /** Ends all processes; resolves when none is left. */
  async close(): Promise<void> {
    for (const { started, end } of this.#all.values()) if (end === undefined) started.stop("cancelled");
    await Promise.all(this.#endings.values());
  }

  #notice(id: string): void {
    this.#changes.get(id)?.resolve();
    this.#changes.delete(id);
  }

  #forgetOld(sessionId: string): void {
    const ended = this.ofSession(sessionId).filter(({ end }) => end !== undefined);
    for (const { id } of ended.slice(0, -maxEnded)) this.#all.delete(id);
  }
}

/** The replica that runs a process, from its id; undefined for a malformed id. */
export function replicaOf(id: string): string | undefined {
  const at = id.indexOf("@");
  return at < 1 ? undefined : id.slice(at + 1);
}

/** The result of a command whose exit is unknown. */
const lost: CommandResult = {
  exitCode: null,
  signal: null,
  stopReason: undefined,
  durationMs: 0,
  head: "",
  tail: "",
  totalBytes: 0,
  missingBytes: 0,
  spill: undefined,
  limitsReached: { memory: false, processes: false },
};
