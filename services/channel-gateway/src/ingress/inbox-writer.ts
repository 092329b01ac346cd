// Stores inbound messages with their queue mode, and cancels turns.
import type { Bus } from "@parley/bus";
import { faultPoint, inSpan, parleyAttribute } from "@parley/chassis";
import {
  controlCancel,
  newId,
  personLimitsOf,
  store,
  type InboundMessage,
  type InputOf,
  type OutputOf,
  type ParleySettings,
} from "@parley/contracts";
import type { AwaitDeps, StoredMessage } from "../live/follow-turn.ts";
import { busyText, SessionBusyError } from "../operations/session-busy.ts";
import type { GatewayEvents } from "../events.ts";
import type { ApiAccess } from "../operations/operation.ts";
import { assertMessageSize } from "./authorized-input.ts";
import type { Position } from "../channels/channel.ts";
import { OverLimitError } from "./over-limit.ts";
import { joinsOthers, queueModeOf } from "./route.ts";
import { startedByOf } from "../operations/started-by.ts";

export interface InboxWriterDeps extends AwaitDeps {
  settings: ParleySettings;
  events: GatewayEvents;
}

/** Thrown when an idempotency key is reused with a different text; the first text stays stored. */
export class IdempotencyKeyReusedError extends Error {
  override readonly name = "IdempotencyKeyReusedError";

  constructor() {
    super("this idempotency key was already used with a different text; use a new key");
  }
}

/**
 * How long a message waits for the store. After that the sender has to retry, which not every sender does: longer than a restart of the
 * store, and than a network failure of 10 s after which the bus connects again.
 */
const putTimeoutMs = 15_000;
/** Where the store may refuse the message, an overlapping attempt could store what the other one has refused. */
const refusableAttemptMs = 2_500;
/** How long the leader may take to confirm a cancellation; the store has recorded it in any case. */
const controlTimeoutMs = 1_000;

export class InboxWriter {
  readonly #deps: InboxWriterDeps;
  readonly #bus: Bus;

  constructor(deps: InboxWriterDeps) {
    this.#deps = deps;
    this.#bus = deps.bus;
  }

  /**
   * Stores a message in a root span, which starts the trace of its turn. With `keyed` a different text under the same id is refused.
   * Throws SessionBusyError, OverLimitError, IdempotencyKeyReusedError, MessageTooLargeError or the store's WireError; then nothing was stored.
   */
  put(request: InputOf<typeof store.inboxPut>, keyed = false): Promise<StoredMessage> {
    const { channel, account } = request.message;
    const attributes = { [parleyAttribute.channel]: channel, [parleyAttribute.account]: account };
    return inSpan(`receive ${channel}`, { kind: "consumer", parent: null, attributes }, async (span) => {
      const kept = await this.#keep(request, keyed);
      span.setAttributes({
        [parleyAttribute.inboxId]: kept.inboxId,
        [parleyAttribute.sessionId]: kept.sessionId,
        [parleyAttribute.outcome]: kept.duplicate ? "duplicate" : "stored",
      });
      return kept;
    });
  }

  async #keep(request: InputOf<typeof store.inboxPut>, keyed: boolean): Promise<StoredMessage> {
    assertMessageSize(request.message);
    const message = await this.#queued(request);
    const { channel } = message;
    const kept = await this.#store({ ...request, message });
    if (kept.overLimit !== undefined) {
      this.#deps.events.overLimit(message, kept.overLimit);
      throw new OverLimitError(kept.overLimit);
    }
    if (kept.refused) {
      this.#deps.events.inbound(channel, "refused", "busy");
      throw new SessionBusyError(await busyText(this.#bus, kept.sessionId, kept.runningTurnId));
    }
    this.#deps.sessions.remember(request.sessionKey, kept.sessionId);
    // A caller waits for the answer of an exclusive turn: only a message with an explicit mode may stop it, a setting may not.
    const mayInterrupt = kept.runningExclusive !== true || request.message.mode === "interrupt";
    // A crash can prevent the interruption, so a retry makes it while the message still waits.
    const isWaiting = !kept.duplicate || kept.waits === true;
    if (message.mode === "interrupt" && mayInterrupt && isWaiting) await this.#interrupt(message, kept);
    if (!kept.same) {
      if (keyed) {
        this.#deps.events.inbound(channel, "refused", "key_reused");
        throw new IdempotencyKeyReusedError();
      }
      this.#deps.events.idReused(channel, kept.inboxId);
    }
    this.#deps.events.inbound(channel, kept.duplicate ? "duplicate" : "stored");
    return kept;
  }

  /** Stores the message. The session that it may create is watched from before, so that no event of its first turn is missed. */
  async #store(request: InputOf<typeof store.inboxPut>): Promise<OutputOf<typeof store.inboxPut>> {
    const newSessionId = this.#deps.sessions.remembered(request.sessionKey) === undefined ? newId() : undefined;
    const expected = newSessionId === undefined ? undefined : this.#deps.live.expect(newSessionId);
    let sessionId: string | undefined;
    try {
      faultPoint("inbox.before_put");
      const input = newSessionId === undefined ? request : { ...request, newSessionId };
      const isRefusable = input.message.mode === "reject" || input.limits !== undefined;
      const kept = await this.#bus.request(store.inboxPut, input, {
        timeoutMs: putTimeoutMs,
        ...(isRefusable ? { attemptMs: refusableAttemptMs } : {}),
      });
      faultPoint("inbox.after_put");
      ({ sessionId } = kept);
      return kept;
    } finally {
      if (sessionId === newSessionId) expected?.created();
      else expected?.close();
    }
  }

  /** Returns the message with its queue mode. */
  async #queued({ message, sessionKey }: InputOf<typeof store.inboxPut>): Promise<InboundMessage> {
    const { sessions, settings } = this.#deps;
    const { origin, mode: requested, exclusive = false, ...rest } = message;
    const open = requested === undefined && origin === "user" && !exclusive;
    const session = open ? await sessions.queueModeOf(sessionKey) : null;
    const mode = queueModeOf({ origin, requested, exclusive, session, setting: settings.queue.mode });
    return {
      ...rest,
      origin,
      mode,
      ...(exclusive && !joinsOthers(mode) ? { exclusive } : {}),
      ...(mode === "coalesce" ? { windowMs: message.windowMs ?? settings.queue.window_ms } : {}),
    };
  }

  /** Stops exactly the turn that was running. Owners may stop any turn, others only one that they started. */
  async #interrupt(message: InboundMessage, kept: OutputOf<typeof store.inboxPut>): Promise<void> {
    const { sessionId, runningTurnId: turnId } = kept;
    if (turnId === null) return;
    await this.cancel({ sessionId, turnId, queued: false, ...startedByOf(message) });
  }

  /** Stops a session's turn. The store records the cancellation first, then the leader is notified. */
  async cancel(what: InputOf<typeof store.turnCancel>): Promise<OutputOf<typeof store.turnCancel>> {
    const outcome = await this.#bus.request(store.turnCancel, { opId: newId(), ...what });
    if (outcome.cancelledQueued > 0) this.#deps.live.refresh();
    // Without a leader, the next one reads the cancellation from the store.
    const say = (order: InputOf<typeof controlCancel>) =>
      this.#bus.request(controlCancel, order, { timeoutMs: controlTimeoutMs }).catch(() => undefined);
    await Promise.all(outcome.turns.map(say));
    return outcome;
  }
}

/** Saves the cursor of the connection together with the message. */
export function leaseOf(position: Position | undefined): Pick<InputOf<typeof store.inboxPut>, "lease"> {
  if (position === undefined) return {};
  const { lease, cursor } = position;
  return { lease: { name: lease.name, fence: lease.fence, cursor } };
}

/**
 * Whose limits a message counts toward: its sender's, or the named caller's of the API. Nobody's: input of no person, and of an owner while
 * owners have no limits.
 */
export function limitsOf(
  { people }: Pick<ParleySettings, "people">,
  {
    origin,
    role,
    contact,
    access,
  }: Pick<InboundMessage, "origin" | "role" | "contact"> & { access?: ApiAccess | undefined },
): Pick<InputOf<typeof store.inboxPut>, "limits"> {
  if (origin !== "user") return {};
  const isNamed = access !== undefined && access.name !== "owner";
  const limits = people.limits[isNamed ? "token" : role];
  if (role === "owner" && !isNamed && isUnlimited(limits)) return {};
  return { limits: { personId: isNamed ? access.name : contact.id, defaults: personLimitsOf(limits) } };
}

/** Whether no limit is set. */
function isUnlimited(limits: ParleySettings["people"]["limits"]["owner"]): boolean {
  return Object.values(limits).every((limit) => limit === 0);
}
