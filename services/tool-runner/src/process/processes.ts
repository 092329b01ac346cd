// The commands of this replica that go on in the background, by session. They live as long as this process: when the service
// stops they are ended, and when it is killed they die with it. It does not word anything for the model.
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { CommandReport, StartedCommand } from "../exec/executor.ts";
import type { TextRing } from "./text-ring.ts";

/** Characters of output that are kept of one process. */
export const keptCharacters = 100_000;
/** Ended processes that are kept per session, so that their end can be read. */
const maxEnded = 20;
const idBytes = 5;

export interface BackgroundProcess {
  /** `<random>@<replica>`: whoever is asked for it knows which replica has it. */
  readonly id: string;
  readonly sessionId: string;
  /** Of the call that started it. */
  readonly grant: string;
  /** The role and workspace of the call that started it, where that was not the owner's. Only the owner sees those of others. */
  readonly scope: string | undefined;
  /** Its session is told of its end. */
  readonly notify: boolean;
  readonly command: string;
  readonly startedAt: Date;
  /** Wall time it was given, from its start. */
  readonly timeoutSeconds: number;
  readonly started: Pick<StartedCommand, "stop" | "signal" | "write">;
  readonly interactive: boolean;
  readonly output: TextRing;
  /** How it ended; undefined while it runs. */
  end: CommandReport | undefined;
  /** What the model has been shown of the output. */
  seen: number;
  /** Calls that wait for news of it now: they tell the model of its end. */
  watchers: number;
  /** Resolves when it is known to others than this replica, or that took too long. */
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
  output: TextRing;
  /** Place in the output up to which the model has seen it. */
  seen: number;
  timeoutSeconds: number;
}

/** Who looks for processes. */
export interface ProcessViewer {
  sessionId: string;
  scope?: string | undefined;
}

export interface ProcessLimits {
  /** Running at the same time in one session. */
  maxPerSession: number;
  /** Running at the same time on this replica. */
  maxInAll: number;
}

/** Who is told that there is a process, and of its end. */
export interface ProcessLedger {
  begun(entry: Omit<BackgroundProcess, "known">): Promise<void>;
  /** `watched`: a call waits for it at this moment. */
  ended(entry: BackgroundProcess, watched: boolean): void;
}

export class Processes {
  readonly #replica: string;
  readonly #limits: ProcessLimits;
  readonly #ledger: ProcessLedger | undefined;
  readonly #all = new Map<string, BackgroundProcess>();
  readonly #endings = new Map<string, Promise<void>>();
  readonly #changes = new Map<string, PromiseWithResolvers<void>>();

  /** Without a ledger nobody is told. */
  constructor(replica: string, limits: ProcessLimits, ledger?: ProcessLedger) {
    this.#replica = replica;
    this.#limits = limits;
    this.#ledger = ledger;
  }

  /** Why this session cannot have one more running; undefined where it can. */
  refusal(sessionId: string): string | undefined {
    const running = [...this.#all.values()].filter(({ end }) => end === undefined);
    const { maxPerSession, maxInAll } = this.#limits;
    if (maxPerSession === 0) return "Background processes are switched off here.";
    if (running.filter((each) => each.sessionId === sessionId).length >= maxPerSession) {
      return `This session already has ${maxPerSession} background processes, the most it may have. End one first.`;
    }
    if (running.length >= maxInAll) return `The tool-runner already has ${maxInAll} background processes, its most.`;
    return undefined;
  }

  /** Takes a running command over: it is ended after its time, at the latest. */
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

  /** Oldest first; another session's are not seen. */
  ofSession(sessionId: string): BackgroundProcess[] {
    return [...this.#all.values()].filter((each) => each.sessionId === sessionId);
  }

  /** Those that one may look at and act on, oldest first; `scope` left out: the owner's call, which sees all of the session. */
  seenBy({ sessionId, scope }: ProcessViewer): BackgroundProcess[] {
    return this.ofSession(sessionId).filter((each) => scope === undefined || each.scope === scope);
  }

  find(viewer: ProcessViewer, id: string): BackgroundProcess | undefined {
    return this.seenBy(viewer).find((each) => each.id === id);
  }

  /** Waits until there is output after `seen`, or the end, or the time is over, or the signal is aborted. */
  async news(entry: BackgroundProcess, waitMs: number, signal: AbortSignal): Promise<void> {
    if (waitMs <= 0 || signal.aborted || entry.end !== undefined || entry.output.end > entry.seen) return;
    const change = this.#changes.get(entry.id) ?? Promise.withResolvers<void>();
    this.#changes.set(entry.id, change);
    await this.#watch(entry, change.promise, waitMs, signal);
  }

  /** Waits until it has ended, or the time is over, or the signal is aborted. */
  async end(entry: BackgroundProcess, waitMs: number, signal: AbortSignal): Promise<void> {
    const ending = this.#endings.get(entry.id);
    if (ending !== undefined && !signal.aborted) await this.#watch(entry, ending, waitMs, signal);
  }

  async #watch(entry: BackgroundProcess, what: Promise<void>, waitMs: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    entry.watchers += 1;
    try {
      await Promise.race([what, delay(waitMs, undefined, { signal: stop }).catch(() => undefined)]);
    } finally {
      entry.watchers -= 1;
      over.abort();
    }
  }

  /** Running now, of all sessions. */
  get running(): number {
    return this.#endings.size;
  }

  /** Ends all; resolves when nothing of them is left. */
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

/** The replica that has a process, by its id. */
export function replicaOf(id: string): string | undefined {
  const at = id.indexOf("@");
  return at < 1 ? undefined : id.slice(at + 1);
}

/** A command whose end could not be told. */
const lost: CommandReport = {
  exitCode: null,
  signal: null,
  stopped: undefined,
  durationMs: 0,
  head: "",
  tail: "",
  totalBytes: 0,
  missingBytes: 0,
  spill: undefined,
  hits: { memory: false, processes: false },
};
