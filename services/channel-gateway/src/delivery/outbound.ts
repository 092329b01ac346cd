// Delivery for one account: claims outbox rows, sends the next message of each through the adapter, and settles its outcome. The store
// returns one row per conversation at a time, so each conversation keeps its order while others proceed in parallel. A long text is claimed
// again for each of its messages, so any replica continues it.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Bus, Served } from "@parley/bus";
import { failSpan, faultPoint, inSpan, parleyAttribute, type Logger } from "@parley/chassis";
import { outboxReady, store, WireError, type OutboxRow } from "@parley/contracts";
import type { SendingAdapter, LeaseRef } from "../channels/channel.ts";
import type { GatewayEvents } from "../events.ts";
import { pollEveryMs } from "./outbox-poll.ts";
import type { Previews } from "./previews.ts";
import { ratesOf } from "./rates.ts";
import { RowSender, type PartOutcome } from "./row-sender.ts";

export interface OutboundDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
  /** The stable name of this replica, and its process instance. */
  owner: { replica: string; incarnation: string };
  /**
   * Claimed rows of this process whose outcome is not stored, by id; an account that is replaced leaves them to its successor. The store returns
   * what else was claimed: that response was lost, and nobody sends it.
   */
  unsettled: Map<string, OutboxRow>;
}

/** Rows in flight at the same time, each for a different conversation. */
const maxInFlight = 8;
/** After this time an unsettled row counts as abandoned; longer than a send and the retries of its settlement. */
const claimMs = 30_000;
/** How long a settlement is retried while the store is unavailable. */
const settleForMs = 25_000;
const settlePauseMs = 500;

export class Outbound {
  readonly #deps: OutboundDeps;
  readonly #adapter: SendingAdapter;
  /** The lease that sends need; null while this replica does not hold it, undefined when they need none. */
  readonly #lease: () => LeaseRef | null | undefined;
  readonly #onFenced: (lease: LeaseRef) => void;
  readonly #sender: RowSender;
  readonly #sending = new Set<Promise<void>>();
  readonly #hint: Served;
  #claiming: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(
    deps: OutboundDeps,
    adapter: SendingAdapter,
    /** `held` returns undefined when sends need no lease. */
    lease: { held: () => LeaseRef | null | undefined; fenced: (lease: LeaseRef) => void },
    previews?: Previews,
  ) {
    this.#deps = deps;
    this.#adapter = adapter;
    this.#sender = new RowSender(deps, adapter, previews);
    this.#lease = lease.held;
    this.#onFenced = lease.fenced;
    this.#hint = deps.bus.subscribe(outboxReady, { channel: adapter.channel }, ({ account }) => {
      if (account === adapter.account) this.wake();
    });
    this.wake();
  }

  /** Starts a claim, because there may be rows to send. */
  wake(): void {
    if (this.#closed) return;
    if (this.#claiming !== undefined) {
      this.#again = true;
      return;
    }
    if (this.#sending.size >= maxInFlight) return;
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = undefined;
      if (this.#again) {
        this.#again = false;
        this.wake();
      }
    });
  }

  /** Stops claiming and waits for the sends in flight. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#hint.close();
    clearTimeout(this.#timer);
    await this.#claiming;
    await Promise.all(this.#sending);
  }

  async #claim(): Promise<void> {
    const { bus, owner, log } = this.#deps;
    const { channel, account, capabilities } = this.#adapter;
    const lease = this.#lease();
    if (lease === null) return;
    try {
      faultPoint("outbox.before_claim");
      const { rows, waitMs } = await bus.request(store.outboxClaim, {
        opId: randomUUID(),
        owner,
        channel,
        account,
        ...(lease === undefined ? {} : { lease: { name: lease.name, fence: lease.fence } }),
        deduplicates: capabilities.supportsIdempotentSend,
        continues: true,
        previews: capabilities.preview !== undefined,
        filesWithText: capabilities.filesWithText === true,
        ...(capabilities.rates === undefined ? {} : { rates: ratesOf(capabilities.rates) }),
        limit: maxInFlight - this.#sending.size,
        claimMs,
        unsettled: this.#unsettledIds(),
      });
      faultPoint("outbox.after_claim");
      for (const row of rows) this.#start(row);
      if (waitMs !== undefined) this.#wakeIn(waitMs);
    } catch (error) {
      if (WireError.is(error, "FENCED") && lease !== undefined) this.#onFenced(lease);
      else log.warn({ err: error, channel, account }, "outbox claim failed");
    }
  }

  #unsettledIds(): string[] {
    const { channel, account } = this.#adapter;
    return [...this.#deps.unsettled.values()].flatMap(({ outboxId, address }) =>
      address.channel === channel && address.account === account ? [outboxId] : [],
    );
  }

  #start(row: OutboxRow): void {
    this.#deps.unsettled.set(row.outboxId, row);
    const work = this.#deliver(row)
      .catch((error: unknown) => this.#deps.log.error({ err: error, outboxId: row.outboxId }, "delivery failed"))
      .finally(() => {
        this.#sending.delete(work);
        // The conversation's next row can be claimed now.
        this.wake();
      });
    this.#sending.add(work);
  }

  async #deliver(row: OutboxRow): Promise<void> {
    const outcome = await this.#sendTraced(row);
    faultPoint("outbox.after_send");
    this.#deps.events.outbound(this.#adapter.channel, outcome.state);
    this.#logFailure(row, outcome);
    await this.#settle(row, outcome);
    faultPoint("outbox.after_settle");
    // The store measures the pause from the settlement.
    if (outcome.state === "retry") this.#wakeIn(outcome.afterMs);
  }

  /** One line when a text fails for the first time, and one when it ends without certainty that it arrived. */
  #logFailure({ outboxId, attempts }: OutboxRow, outcome: PartOutcome): void {
    if (!("reason" in outcome)) return;
    const { channel, account } = this.#adapter;
    const about = { channel, account, outboxId, outcome: outcome.state, reason: outcome.reason };
    if (outcome.state !== "retry") this.#deps.log.warn(about, "text not delivered for certain");
    else if (attempts === 0 && outcome.held !== true && outcome.withoutPreview !== true)
      this.#deps.log.warn({ ...about, waitMs: outcome.afterMs }, "text not sent: retried later");
  }

  /** Sends in a span below the turn that created the row, even if the turn ended long ago or on another replica. */
  #sendTraced(row: OutboxRow): Promise<PartOutcome> {
    const { channel, account } = this.#adapter;
    const attributes = {
      [parleyAttribute.channel]: channel,
      [parleyAttribute.account]: account,
      [parleyAttribute.outboxId]: row.outboxId,
      [parleyAttribute.attempt]: row.attempts + 1,
      ...(row.turnId === null ? {} : { [parleyAttribute.turnId]: row.turnId }),
    };
    return inSpan(`send ${channel}`, { kind: "producer", parent: row.trace, attributes }, async (span) => {
      const outcome = await this.#sender.send(row);
      span.setAttribute(parleyAttribute.outcome, outcome.state);
      if (outcome.state !== "sent" && outcome.state !== "part") failSpan(span, outcome.state);
      return outcome;
    });
  }

  /** Retries while the store is unavailable, so that a sent text is not recorded as unsent. */
  async #settle(row: OutboxRow, outcome: PartOutcome): Promise<void> {
    const { bus, owner, log, unsettled } = this.#deps;
    const opId = randomUUID();
    const deadline = performance.now() + settleForMs;
    for (;;) {
      try {
        await bus.request(store.outboxSettle, { opId, outboxId: row.outboxId, owner, outcome });
        // Meanwhile the row may be claimed for its next message.
        if (unsettled.get(row.outboxId) === row) unsettled.delete(row.outboxId);
        return;
      } catch (error) {
        if (performance.now() >= deadline || WireError.is(error, "INVALID_INPUT", "CONFLICT", "NOT_FOUND")) {
          log.error(
            { err: error, outboxId: row.outboxId, state: outcome.state },
            "outcome not stored: the delivery state of the row may be wrong",
          );
          return;
        }
        await delay(settlePauseMs);
      }
    }
  }

  /** Keeps only the earliest timer; the poll of the outbox (outbox-poll.ts) covers later ones. */
  #wakeIn(ms: number): void {
    const atMs = performance.now() + ms;
    if (this.#closed || ms >= pollEveryMs || atMs >= this.#timerAtMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = atMs;
    this.#timer = setTimeout(() => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.wake();
    }, ms);
  }
}
