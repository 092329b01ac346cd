// Becoming and staying the leader: standby → leader → exit. Losing the leadership ends the process, because a restart
// is the only clean state. Not getting it never does: the replica tries again.
//
//   standby  pings the leader every 100 ms, polls the lock every second; immediately when nobody serves the leader's subject any more.
//            With the lock it requests an epoch of the store; without a reply it releases the lock and pauses, longer each time
//   leader   renews every 2 s; ends itself 4 s after the START of its last successful renewal
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import type { Logger, ServiceMetrics } from "@parley/chassis";
import { controlPing, errorMessage, leaderChanged, leaderReleased } from "@parley/contracts";
import { backoffMs } from "@parley/kit";
import type { AgentConfig } from "../config.ts";
import type { RedisState } from "../redis.ts";
import { createEpochKey, type SignGrant } from "../policy/grant-signer.ts";
import { LeaderStore } from "../store-client/leader-store.ts";
import { LeaderLock } from "./lock.ts";
import { pingLeader, type Pings } from "./ping-leader.ts";
import { mayTakeOver, ownerName, takeoverReason } from "./standby.ts";
import type { Standing } from "./standing.ts";
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
  /** Receives what this replica waits for. */
  standing?: Standing;
  /** Called once when the leadership is lost. It must end the process. */
  lost(reason: string): void;
}

/** Pauses between requests for an epoch that the store did not answer. */
const epochPause = { firstMs: 250, maxMs: 2_000, jitter: 0.2 };

/** Resolves when this replica leads, however long that takes. Rejects with the signal's reason. */
export async function becomeLeader(deps: LeadershipDeps, signal: AbortSignal): Promise<Leadership> {
  const { config, bus, log } = deps;
  const lock = new LeaderLock(config.redis, config.namespace, config.lease.ttlMs, log, deps.redisState);
  const released = listenForRelease(bus);
  const pings = pingLeader(bus, config.lease, { signal, answered: () => deps.standing?.leaderFound() });
  const holders = new Holders();
  let failures = 0;
  try {
    // The first attempt would fail, and the next one is a poll later.
    await lock.connect();
    for (;;) {
      signal.throwIfAborted();
      const owner = ownerName(config.replica, config.incarnation);
      if (await tryTake(lock, owner, { ...deps, pings, holders, released: released.holder() })) {
        const key = createEpochKey();
        const leaderStore = await requestEpoch(
          deps,
          lock,
          { holder: owner, grantKey: key.grantKey, after: pings.lastEpoch() },
          signal,
        );
        if (leaderStore === undefined) {
          // Another standby may reach the store.
          await lock.release(owner).catch(() => undefined);
          failures += 1;
          await delay(backoffMs(failures, epochPause), undefined, { signal }).catch(() => undefined);
          continue;
        }
        failures = 0;
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

/**
 * Undefined when the store gave no epoch: it is overloaded, restarts or cannot be reached, or another replica has the lock meanwhile. Throws
 * only when the signal aborts.
 */
async function requestEpoch(
  deps: LeadershipDeps,
  lock: LeaderLock,
  input: { holder: string; grantKey: string; after: number },
  signal: AbortSignal,
): Promise<LeaderStore | undefined> {
  const { lease } = deps.config;
  try {
    // Repeated well before others consider this replica dead: the reply may be lost with its store replica.
    const options = { timeoutMs: lease.giveUpMs, attemptMs: lease.silentMs / 3, signal };
    let { after } = input;
    for (;;) {
      const lost = (reason: string) => deps.lost(reason);
      const acquired = await LeaderStore.acquire(deps.bus, { ...input, after }, { ...options, lost });
      if (acquired instanceof LeaderStore) return acquired;
      // An epoch that is not known here began before this replica had the lock, or another replica has the lock now and leads.
      if (!(await lock.renew(input.holder).catch(() => false))) return undefined;
      after = acquired.currentEpoch;
    }
  } catch (error) {
    signal.throwIfAborted();
    deps.standing?.noEpoch(errorMessage(error));
    return undefined;
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
  } catch (error) {
    // No replica can lead until Redis accepts its commands; that matters only while nobody leads.
    const silentMs = performance.now() - seen.pings.lastAnswerAt();
    if (silentMs >= seen.config.lease.silentMs) seen.standing?.noLock(errorMessage(error));
    return false;
  }
}

/** Polls as often as it pings while the leader is silent; otherwise standbys spread their polls of the lock. */
function pollPause(config: AgentConfig, pings: Pings, released: { holder(): string | undefined }): number {
  const silent = performance.now() - pings.lastAnswerAt() > config.lease.silentMs / 2;
  if (silent || released.holder() !== undefined || pings.absent() !== undefined) return config.lease.pingMs / 2;
  return config.lease.pollMs * (0.8 + 0.4 * Math.random());
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
  deps.standing?.leaderFound();
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
