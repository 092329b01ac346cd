// Delivery for one account: claims outbox rows, sends the next message of each through the adapter, and settles its outcome. The store
// returns one row per conversation at a time, so each conversation keeps its order while others proceed in parallel. A long text is claimed
// again for each of its messages, so any replica continues it.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { fetchBlob, type Bus, type Served } from "@parley/bus";
import { failSpan, faultPoint, inSpan, parleyAttribute, type Logger } from "@parley/chassis";
import {
  errorMessage,
  outboxReady,
  sizeText,
  store,
  WireError,
  type InputOf,
  type OutboxRow,
  type SendRates,
} from "@parley/contracts";
import type { ChannelAdapter, LeaseRef, OutboundPart, SendOutcome } from "../channels/channel.ts";
import { AnswerParts } from "../channels/text/parts.ts";
import type { GatewayEvents } from "../events.ts";
import { typedCommands } from "../channels/text/typed-commands.ts";

export interface OutboundDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
  /** The stable name of this replica, and its process instance. */
  owner: { replica: string; incarnation: string };
}

/** Rows in flight at the same time, each for a different conversation. */
const maxInFlight = 8;
const defaultSendTimeoutMs = 10_000;
/** Sending a file takes longer; a send and its settlement still fit into `claimMs`. */
const sendFileTimeoutMs = 20_000;
/** Pause before an attachment is requested again after the store failed to return it. */
const fileRetryMs = 2_000;
/** After this time an unsettled row counts as abandoned; longer than a send and the retries of its settlement. */
const claimMs = 30_000;
/** How often the store is polled without a hint. */
const backstopMs = 2_000;
/** How long a settlement is retried while the store is unavailable. */
const settleForMs = 25_000;
const settlePauseMs = 500;

/** The outcome of one message, and where the next one begins. */
type PartOutcome = InputOf<typeof store.outboxSettle>["outcome"];

type PreparedPart = Pick<OutboundPart, "text" | "file" | "actions"> & { next: number | null };

/** A crashed sender had begun to send the message: it may have arrived, so it is not sent again. */
const interrupted: SendOutcome = { state: "unknown", reason: "the sender crashed while sending" };

export class Outbound {
  readonly #deps: OutboundDeps;
  readonly #adapter: ChannelAdapter;
  /** The lease of an owned connection; null while this replica does not hold it. */
  readonly #lease: () => LeaseRef | null;
  readonly #onFenced: (lease: LeaseRef) => void;
  readonly #parts: AnswerParts;
  readonly #sending = new Set<Promise<void>>();
  readonly #hint: Served;
  readonly #backstop: NodeJS.Timeout;
  #claiming: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(
    deps: OutboundDeps,
    adapter: ChannelAdapter,
    lease: { held: () => LeaseRef | null; fenced: (lease: LeaseRef) => void },
  ) {
    this.#deps = deps;
    this.#adapter = adapter;
    this.#parts = new AnswerParts(adapter.capabilities.text);
    this.#lease = lease.held;
    this.#onFenced = lease.fenced;
    this.#hint = deps.bus.subscribe(outboxReady, { channel: adapter.channel }, ({ account }) => {
      if (account === adapter.account) this.wake();
    });
    this.#backstop = setInterval(() => this.wake(), backstopMs);
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
    clearInterval(this.#backstop);
    clearTimeout(this.#timer);
    await this.#claiming;
    await Promise.all(this.#sending);
  }

  async #claim(): Promise<void> {
    const { bus, owner, log } = this.#deps;
    const { channel, account, capabilities, ownedConnection, sendsWithoutConnection } = this.#adapter;
    const lease = ownedConnection && sendsWithoutConnection !== true ? this.#lease() : undefined;
    if (lease === null) return;
    try {
      faultPoint("outbox.before_claim");
      const { rows, waitMs } = await bus.request(store.outboxClaim, {
        opId: randomUUID(),
        owner,
        channel,
        account,
        ...(lease === undefined ? {} : { lease: { name: lease.name, fence: lease.fence } }),
        deduplicates: capabilities.deduplicates,
        continues: true,
        ...(capabilities.rates === undefined ? {} : { rates: ratesOf(capabilities.rates) }),
        limit: maxInFlight - this.#sending.size,
        claimMs,
      });
      faultPoint("outbox.after_claim");
      for (const row of rows) this.#start(row);
      if (waitMs !== undefined) this.#wakeIn(waitMs);
    } catch (error) {
      if (WireError.is(error, "FENCED") && lease !== undefined) this.#onFenced(lease);
      else log.warn({ err: error, channel, account }, "outbox claim failed");
    }
  }

  #start(row: OutboxRow): void {
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
    await this.#settle(row, outcome);
    faultPoint("outbox.after_settle");
    // The store measures the pause from the settlement.
    if (outcome.state === "retry") this.#wakeIn(outcome.afterMs);
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
      const outcome = await this.#send(row);
      span.setAttribute(parleyAttribute.outcome, outcome.state);
      if (outcome.state !== "sent" && outcome.state !== "part") failSpan(span, outcome.state);
      return outcome;
    });
  }

  /** Sends the message at the row's position. */
  async #send(row: OutboxRow): Promise<PartOutcome> {
    const prepared = await this.#prepare(row);
    if ("state" in prepared) return prepared;
    const { next, ...content } = prepared;
    const { actions } = row;
    if (next === null && actions !== undefined && this.#adapter.capabilities.actions) content.actions = actions;
    const outcome = row.interrupted === true ? interrupted : await this.#sendPart(row, content);
    if (next === null) return outcome;
    if (outcome.state === "sent") return { ...outcome, state: "part", position: next };
    return outcome.state === "unknown" ? { ...outcome, state: "doubtful", position: next } : outcome;
  }

  async #sendPart(row: OutboxRow, content: Omit<PreparedPart, "next">): Promise<SendOutcome> {
    const { sendTimeoutMs = defaultSendTimeoutMs } = this.#adapter.capabilities;
    const withinMs = Math.min(row.attachment === null ? sendTimeoutMs : sendFileTimeoutMs, sendFileTimeoutMs);
    const timeout = AbortSignal.timeout(withinMs);
    const late = Promise.withResolvers<SendOutcome>();
    timeout.addEventListener("abort", () =>
      late.resolve({ state: "unknown", reason: `no answer within ${withinMs / 1_000} s` }),
    );
    const { replyToId: _, ...conversation } = row.address;
    const part = {
      address: (row.position ?? 0) === 0 ? row.address : conversation,
      ...content,
      idempotencyKey: row.idempotencyKey,
      attempts: row.attempts,
    };
    try {
      return await Promise.race([this.#adapter.send(part, timeout), late.promise]);
    } catch (error) {
      const { channel, account } = this.#adapter;
      this.#deps.log.error({ err: error, channel, account, outboxId: row.outboxId }, "send failed: the adapter threw");
      return { state: "unknown", reason: "the adapter threw while sending" };
    }
  }

  /** Returns the message for the adapter and the position of the next one, or an outcome when the content is not available. */
  async #prepare(row: OutboxRow): Promise<PreparedPart | SendOutcome> {
    const { attachment } = row;
    // A text with actions is Parley's own and names commands.
    const prefix = row.actions === undefined ? undefined : this.#adapter.capabilities.commandPrefix;
    if (attachment === null) return this.#textAt(row, typedCommands(row.text, prefix));
    const { name, mediaType, bytes, sha256 } = attachment;
    if (!this.#adapter.capabilities.files) {
      return this.#textAt(row, `[file: ${name}, ${sizeText(bytes)}; this channel cannot send files]`);
    }
    try {
      const file = { name, mediaType, content: await fetchBlob(this.#deps.bus, sha256) };
      return { text: null, file, next: null };
    } catch (error) {
      if (WireError.is(error, "NOT_FOUND", "INTERNAL")) return { state: "dropped", reason: error.message };
      const reason = errorMessage(error);
      return {
        state: "retry",
        afterMs: fileRetryMs,
        reason: `the file could not be fetched from the store: ${reason}`,
      };
    }
  }

  #textAt({ outboxId, address, position = 0 }: OutboxRow, text: string): PreparedPart | SendOutcome {
    const part = this.#parts.at(outboxId, text, position, this.#adapter.maxLength?.(address));
    if (part !== null) return { text: part.rendered, next: part.next };
    // Nothing is left of a text whose earlier messages were sent, for example after the rendering changed with an upgrade.
    return position === 0 ? { state: "dropped", reason: "empty text" } : { state: "sent", providerMessageId: null };
  }

  /** Retries while the store is unavailable, so that a sent text is not recorded as unsent. */
  async #settle(row: OutboxRow, outcome: PartOutcome): Promise<void> {
    const { bus, owner, log } = this.#deps;
    const opId = randomUUID();
    const deadline = performance.now() + settleForMs;
    for (;;) {
      try {
        await bus.request(store.outboxSettle, { opId, outboxId: row.outboxId, owner, outcome });
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

  /** Keeps only the earliest timer; the periodic poll covers later ones. */
  #wakeIn(ms: number): void {
    const atMs = performance.now() + ms;
    if (this.#closed || ms >= backstopMs || atMs >= this.#timerAtMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = atMs;
    this.#timer = setTimeout(() => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.wake();
    }, ms);
  }
}

/** The rates in the form of the store's request. */
function ratesOf({ account, conversations }: SendRates) {
  return {
    ...(account === undefined ? {} : { account }),
    ...(conversations === undefined ? {} : { conversations: [...conversations] }),
  };
}
