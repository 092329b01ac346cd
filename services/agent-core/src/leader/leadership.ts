// Becoming and staying the leader: standby → leader → exit. Losing the leadership ends the process, because a restart
// is the only clean state.
//
//   standby  pings the leader every 100 ms, polls the lock every second; immediately when nobody serves the leader's subject any more
//   leader   renews every 2 s; ends itself 4 s after the START of its last successful renewal
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import type { Logger, ServiceMetrics } from "@parley/chassis";
import { controlPing, leaderChanged, leaderReleased, WireError } from "@parley/contracts";
import type { AgentConfig } from "../config.ts";
import type { RedisState } from "../redis.ts";
import { createEpochKey, type SignGrant } from "../policy/grant-signer.ts";
import { LeaderStore } from "../store-client/leader-store.ts";
import { LeaderLock } from "./lock.ts";
import {
  absentHolder,
  afterPing,
  initialPresence,
  noticedAnswerAt,
  pingIntervalMs,
  type PingResult,
} from "./leader-presence.ts";
import { mayTakeOver, ownerName, takeoverReason } from "./standby.ts";
import { startWatchdog, type Watchdog } from "./watchdog.ts";

export interface Leadership {
  readonly leaderStore: LeaderStore;
  readonly signGrant: SignGrant;
  /** Releases the leadership so that a standby takes over immediately. All work must have stopped. */
  release(): Promise<void>;
}

export interface LeadershipDeps {
  config: AgentConfig;
  bus: Bus;
  log: Logger;
  /** Receives the state of the lock's connection. */
  redisState?: RedisState;
  metrics?: ServiceMetrics;
  /** Called once when the leadership is lost. It must end the process. */
  lost(reason: string): void;
}

/** Resolves when this replica leads. Rejects with the signal's reason. */
export async function becomeLeader(deps: LeadershipDeps, signal: AbortSignal): Promise<Leadership> {
  const { config, bus, log } = deps;
  const lock = new LeaderLock(config.redis, config.namespace, config.lease.ttlMs, log, deps.redisState);
  lock.connect();
  const released = listenForRelease(bus);
  const pings = pingLeader(bus, config, signal);
  const holders = new Holders();
  try {
    for (;;) {
      signal.throwIfAborted();
      const owner = ownerName(config.replica, config.incarnation);
      if (await tryTake(lock, owner, { ...deps, pings, holders, released: released.holder() })) {
        const key = createEpochKey();
        const leaderStore = await LeaderStore.acquire(
          bus,
          { holder: owner, grantKey: key.grantKey },
          // Retried well before others consider this replica dead: the reply may be lost with its store replica.
          {
            timeoutMs: config.lease.giveUpMs,
            attemptMs: config.lease.silentMs / 3,
            signal,
            lost: (reason) => deps.lost(reason),
          },
        );
        const { epoch } = leaderStore;
        // While the store was slow, another standby may have considered this replica dead.
        const since = performance.now();
        if (await lock.renew(owner).catch(() => false)) {
          return lead(deps, lock, { owner, leaderStore, signGrant: key.signerOf(epoch), since });
        }
        log.warn({ epoch }, "lock lost before the epoch was acquired: retried");
        // If Redis did not respond, the lock may still belong to this replica.
        await lock.release(owner).catch(() => undefined);
      }
      await Promise.race([
        delay(pollPause(config, pings, released), undefined, { signal }).catch(() => undefined),
        released.next(),
        pings.nextAbsence(),
      ]);
    }
  } catch (error) {
    lock.close();
    throw error;
  } finally {
    pings.stop();
    released.stop();
  }
}

/** Who was last seen holding the lock, and since when. */
class Holders {
  #last: { holder: string | null; since: number } | undefined;

  since(holder: string | null, now: number): number {
    if (this.#last === undefined || this.#last.holder !== holder) this.#last = { holder, since: now };
    return this.#last.since;
  }
}

interface Pings {
  lastAnswerAt(): number;
  /** The last leader that answered, if its process has ended as far as the bus tells. */
  absent(): string | undefined;
  /** Resolves when a leader becomes absent. */
  nextAbsence(): Promise<void>;
  stop(): void;
}

async function tryTake(
  lock: LeaderLock,
  owner: string,
  seen: LeadershipDeps & { pings: Pings; holders: Holders; released: string | undefined },
): Promise<boolean> {
  try {
    const holder = await lock.acquire(owner);
    if (holder === owner) return true;
    const now = performance.now();
    const observation = {
      holder,
      heldSince: seen.holders.since(holder, now),
      now,
      lastAnswerAt: seen.pings.lastAnswerAt(),
      released: seen.released,
      absent: seen.pings.absent(),
    };
    if (holder === null || !mayTakeOver(observation, seen.config, seen.config.lease)) return false;
    const replaced = await lock.takeOver(holder, owner);
    if (replaced) seen.log.warn({ holder, reason: takeoverReason(observation) }, "leader replaced");
    return replaced;
  } catch {
    // Redis is unavailable: no replica can lead until it is back.
    return false;
  }
}

/** Polls as often as it pings while the leader is silent; otherwise standbys spread their polls of the lock. */
function pollPause(config: AgentConfig, pings: Pings, released: { holder(): string | undefined }): number {
  const silent = performance.now() - pings.lastAnswerAt() > config.lease.silentMs / 2;
  if (silent || released.holder() !== undefined || pings.absent() !== undefined) return config.lease.pingMs / 2;
  return config.lease.pollMs * (0.8 + 0.4 * Math.random());
}

/** How late the timers of a process may be that has the processor time that it needs. */
const lateTimerMs = 100;

function pingLeader(bus: Bus, { lease }: AgentConfig, signal: AbortSignal): Pings {
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
    absent,
    nextAbsence: () => absence.promise,
    stop: () => stopping.abort(),
  };
}

async function ping(bus: Bus, timeoutMs: number): Promise<PingResult> {
  try {
    const { holder } = await bus.request(controlPing, {}, { timeoutMs, once: true });
    return { type: "answer", holder };
  } catch (error) {
    return { type: bus.connected && WireError.is(error, "UNAVAILABLE") ? "unserved" : "unknown" };
  }
}

function listenForRelease(bus: Bus): { holder(): string | undefined; next(): Promise<void>; stop(): void } {
  let released: string | undefined;
  const first = Promise.withResolvers<void>();
  const subscription = bus.subscribe(leaderReleased, {}, ({ holder }) => {
    released = holder;
    first.resolve();
  });
  return {
    holder: () => released,
    // After the first hand-over the pause is short, so nothing needs to interrupt it.
    next: () => (released !== undefined ? new Promise(() => undefined) : first.promise),
    stop: () => subscription.close(),
  };
}

interface Taken {
  owner: string;
  leaderStore: LeaderStore;
  signGrant: SignGrant;
  /** When the lock was last known to be held; monotonic milliseconds. */
  since: number;
}

function lead(deps: LeadershipDeps, lock: LeaderLock, { owner, leaderStore, signGrant, since }: Taken): Leadership {
  const { epoch } = leaderStore;
  const { config, bus, log, metrics } = deps;
  let goodSince = since;
  let leads = true;
  const report = () => {
    metrics?.set("parley_leader", leads ? 1 : 0);
    metrics?.set("parley_epoch", leads ? epoch : 0);
    metrics?.set("parley_lease_age_seconds", leads ? (performance.now() - goodSince) / 1_000 : 0);
  };
  for (const name of ["parley_leader", "parley_epoch", "parley_lease_age_seconds"] as const)
    metrics?.collect(name, report);
  metrics?.count("parley_takeovers_total");
  const watchdog: Watchdog = startWatchdog(goodSince + config.lease.giveUpMs);
  const stopped = new AbortController();

  const lose = (reason: string) => {
    if (stopped.signal.aborted) return;
    stopped.abort();
    deps.lost(reason);
  };
  const renewing = (async () => {
    let pauseMs = config.lease.renewMs;
    while (!stopped.signal.aborted) {
      await delay(pauseMs, undefined, { signal: stopped.signal }).catch(() => undefined);
      if (stopped.signal.aborted) return;
      const start = performance.now();
      if (start - goodSince >= config.lease.giveUpMs) return lose("the lease was not renewed in time");
      const renewed = await lock.renew(owner).catch(() => undefined);
      if (renewed === false) return lose("the lock expired or has another holder");
      if (renewed === true) {
        goodSince = start;
        watchdog.extend(goodSince + config.lease.giveUpMs);
      }
      pauseMs = renewed === true ? config.lease.renewMs : config.lease.renewMs / 8;
    }
  })();

  const ping = bus.serve(controlPing, async () => ({ epoch, holder: owner }));
  bus.publish(leaderChanged, { epoch, holder: owner });
  log.info({ epoch }, "leadership acquired");
  return {
    leaderStore,
    signGrant,
    async release() {
      stopped.abort();
      leads = false;
      ping.close();
      await lock
        .release(owner)
        .catch((error: unknown) => log.warn({ err: error }, "lock not released: it expires by itself"));
      bus.publish(leaderReleased, { epoch, holder: owner });
      // Without a connection nobody receives it.
      if (bus.connected) await bus.flush();
      await renewing;
      await watchdog.stop();
      lock.close();
    },
  };
}
