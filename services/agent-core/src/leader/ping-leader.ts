// Pings the leader: whether it answers, and whether its process has ended as far as the bus tells.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { controlPing, WireError } from "@parley/contracts";
import type { LeaseTimes } from "../config.ts";
import {
  absentHolder,
  afterPing,
  initialPresence,
  noticedAnswerAt,
  pingIntervalMs,
  type PingResult,
} from "./leader-presence.ts";

export interface Pings {
  lastAnswerAt(): number;
  /** The epoch of the leader that answered last; 0: none has. */
  lastEpoch(): number;
  /** The last leader that answered, if its process has ended as far as the bus tells. */
  absent(): string | undefined;
  /** Resolves when a leader becomes absent. */
  nextAbsence(): Promise<void>;
  stop(): void;
}

/** How late the timers of a process may be that has the processor time that it needs. */
const lateTimerMs = 100;

/** Pings until `signal` aborts or `stop` is called. `answered` is called for each answer of a leader. */
export function pingLeader(
  bus: Bus,
  lease: LeaseTimes,
  { signal, answered }: { signal: AbortSignal; answered: () => void },
): Pings {
  let presence = initialPresence(performance.now());
  let absence = Promise.withResolvers<void>();
  let announced: string | undefined;
  const timeoutMs = lease.silentMs / 3;
  let startedAt = performance.now();
  const lastAnswerAt = () =>
    noticedAnswerAt(presence, { startedAt, now: performance.now(), maxMs: timeoutMs + lateTimerMs });
  const absent = () => absentHolder(presence, performance.now(), lease.absentMs);
  const stopping = new AbortController();
  const ended = AbortSignal.any([signal, stopping.signal]);
  void (async () => {
    while (!ended.aborted) {
      presence = { ...presence, lastAnswerAt: lastAnswerAt() };
      const sentAt = performance.now();
      startedAt = sentAt;
      const connection = bus.connectionCount;
      const result = await ping(bus, timeoutMs);
      if (result.type === "answer") answered();
      presence = afterPing(presence, result, { connection, now: performance.now() });
      const holder = absent();
      if (holder !== undefined && holder !== announced) {
        absence.resolve();
        absence = Promise.withResolvers<void>();
      }
      announced = holder;
      await delay(Math.max(0, pingIntervalMs(presence, lease) - (performance.now() - sentAt)));
    }
  })();
  return {
    lastAnswerAt,
    lastEpoch: () => presence.answered?.epoch ?? 0,
    absent,
    nextAbsence: () => absence.promise,
    stop: () => stopping.abort(),
  };
}

async function ping(bus: Bus, timeoutMs: number): Promise<PingResult> {
  try {
    const { holder, epoch } = await bus.request(controlPing, {}, { timeoutMs, once: true });
    return { type: "answer", holder, epoch };
  } catch (error) {
    return { type: bus.connected && WireError.is(error, "UNAVAILABLE") ? "unserved" : "unknown" };
  }
}
