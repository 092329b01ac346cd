// The way in: who sends, which thread, is it a command; then the message is kept by the store, and only then may the
// platform be acknowledged. Knows no platform and no HTTP.
import type { Bus } from "@parley/bus";
import { faultPoint, inSpan, parleyAttribute } from "@parley/chassis";
import {
  controlCancel,
  controlModels,
  maxInboundBytes,
  store,
  type InboundMessage,
  type InputOf,
  type ParleySettings,
  type ReplyAddress,
} from "@parley/contracts";
import { admit, dependsOnPairing, type PeoplePolicy } from "./admit.ts";
import { followTurn, type AwaitDeps, type KeptMessage, type PendingTurn, type TurnListener } from "./await-turn.ts";
import type { AcceptResult, HeldLease, InboundDraft } from "./channel.ts";
import { helpText, readCommand, statusText, stopText, unknownCommandText, type Command } from "./commands.ts";
import { uuidOf } from "./digest.ts";
import type { GatewayEvents } from "./events.ts";
import { newPairingCode, pairingCodeHash, pairingText, pairingTtlMs } from "./pairing-code.ts";
import { sessionKeyOf } from "./route.ts";
import type { Typing } from "./typing.ts";
import { version } from "./version.ts";

export interface InboundDeps extends AwaitDeps {
  policy: ParleySettings["session"]["policy"];
  events: GatewayEvents;
}

/** An account as far as letting people in is concerned. */
export interface Doorway {
  channel: string;
  account: string;
  people: PeoplePolicy;
  /** For platforms that show that an answer is being written. */
  typing?: Typing;
}

/** A text from somebody who is known: the API's token holder, a webhook. */
export interface KnownInput {
  channel: string;
  account: string;
  conversation: string;
  externalId: string;
  text: string;
  contact: InboundMessage["contact"];
  role: InboundMessage["role"];
  origin: InboundMessage["origin"];
  replyTo: ReplyAddress | null;
  /** The sender chose the id as a key: with another text it is refused. Else the first text counts, and that is logged. */
  keyed: boolean;
}

/** Thrown when a key comes again with another text; the first one is kept. */
export class KeyReused extends Error {
  override readonly name = "KeyReused";

  constructor() {
    super("this key was given to another text already; a new text needs a new key");
  }
}

/** Thrown for a message above the cap; nothing was kept. */
export class MessageTooLarge extends Error {
  override readonly name = "MessageTooLarge";
  readonly bytes: number;

  constructor(bytes: number) {
    super(`the message has ${bytes} bytes as JSON; ${maxInboundBytes} are the most one message may have`);
    this.bytes = bytes;
  }
}

/** How long an answer to a command is worth sending. */
const commandAnswerExpiresMs = 10 * 60 * 1_000;
/** How long a message may wait for the store; a restart of it takes less. Then the sender has to come again. */
const putTimeoutMs = 5_000;
/** How long the leader may take to confirm a cancellation; the store remembers it anyway. */
const controlTimeoutMs = 1_000;

export class Inbound {
  readonly #deps: InboundDeps;
  readonly #bus: Bus;

  constructor(deps: InboundDeps) {
    this.#deps = deps;
    this.#bus = deps.bus;
  }

  /** Takes what an adapter made of an update. Rejects when nothing was kept. */
  async accept(
    doorway: Doorway,
    draft: InboundDraft,
    position?: { lease: HeldLease; cursor: string },
  ): Promise<AcceptResult> {
    const { channel, account, people } = doorway;
    const sender = {
      contactId: draft.contact.id,
      conversation: draft.conversation,
      group: draft.group,
      direct: draft.direct,
      addressed: draft.addressed,
    };
    const paired = dependsOnPairing(people, sender) ? await this.#paired(doorway, draft) : null;
    const admission = admit(people, sender, paired);
    if (admission.verdict === "ignore") {
      this.#deps.events.inbound(channel, "ignored", admission.reason);
      return "ignored";
    }
    if (admission.verdict === "pair") {
      await this.#offerPairing(doorway, draft);
      return "ignored";
    }

    const sessionKey = sessionKeyOf(this.#deps.policy, { channel, account, ...draft, role: admission.role });
    const answer = (text: string) => this.#answer(`${channel}:${account}:${draft.externalId}`, draft.replyTo, text);
    const command = readCommand(draft.text);
    if (command !== null) {
      await answer(await this.carryOut(command, sessionKey));
      this.#deps.events.inbound(channel, "command");
      return "ignored";
    }
    const message: InboundMessage = {
      channel,
      account,
      externalId: draft.externalId,
      conversation: draft.conversation,
      contact: draft.contact,
      role: admission.role,
      origin: "user",
      parts: [{ type: "text", text: draft.text }],
      replyTo: draft.replyTo,
    };
    try {
      const lease =
        position === undefined
          ? {}
          : { lease: { name: position.lease.name, fence: position.lease.fence, cursor: position.cursor } };
      const put = () => this.#put({ message, sessionKey, ...lease });
      const { duplicate } = await this.#putAndShow(doorway.typing, draft.replyTo, sessionKey, put);
      return duplicate ? "duplicate" : "stored";
    } catch (error) {
      if (!(error instanceof MessageTooLarge)) throw error;
      this.#deps.events.inbound(channel, "refused", "too_large");
      await answer(`I could not take that: ${error.message}.`);
      return "ignored";
    }
  }

  /** The thread that this input belongs to. */
  sessionKeyOf(input: Pick<KnownInput, "channel" | "account" | "conversation" | "role">): string {
    return sessionKeyOf(this.#deps.policy, { ...input, direct: true });
  }

  /** Keeps a message. Throws KeyReused, MessageTooLarge, or the store's WireError: then nothing was kept. */
  async keep(input: KnownInput): Promise<KeptMessage> {
    return this.#put({ message: messageOf(input), sessionKey: this.sessionKeyOf(input) }, input.keyed);
  }

  /** Keeps a message and follows the turn that answers it. */
  async keepAndFollow(input: KnownInput, signal: AbortSignal, listener?: TurnListener): Promise<PendingTurn> {
    const message = messageOf(input);
    const sessionKey = this.sessionKeyOf(input);
    return followTurn(this.#deps, sessionKey, () => this.#put({ message, sessionKey }, input.keyed), signal, listener);
  }

  /** Carries a command out in a session and words the answer. */
  async carryOut(command: Command, sessionKey: string): Promise<string> {
    if (command.kind === "unknown") return unknownCommandText(command.name);
    switch (command.name) {
      case "/stop": {
        const session = await this.#deps.sessions.find(sessionKey);
        return stopText(session === null ? null : await this.cancel({ sessionId: session.sessionId, queued: true }));
      }
      case "/status": {
        const [session, model] = await Promise.all([
          this.#deps.sessions.find(sessionKey),
          this.#bus.request(controlModels, {}, { timeoutMs: controlTimeoutMs }).catch(() => null),
        ]);
        return statusText(session, model, version);
      }
      default:
        return helpText();
    }
  }

  /** Stops a session's turn: remembered by the store first, then said to the leader, who acts at once. */
  async cancel(what: InputOf<typeof store.turnCancel>): Promise<{ turnId: string | null; cancelledQueued: number }> {
    const outcome = await this.#bus.request(store.turnCancel, what);
    if (outcome.cancelledQueued > 0) this.#deps.live.look();
    if (outcome.turnId !== null) {
      const order = { sessionId: what.sessionId, turnId: outcome.turnId };
      // Without a leader the next one finds it in the store.
      await this.#bus.request(controlCancel, order, { timeoutMs: controlTimeoutMs }).catch(() => undefined);
    }
    return outcome;
  }

  /** Keeps a message in a span of its own, with which the trace of all that it leads to begins. */
  #put(request: InputOf<typeof store.inboxPut>, keyed = false): Promise<KeptMessage> {
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

  async #keep(request: InputOf<typeof store.inboxPut>, keyed: boolean): Promise<KeptMessage> {
    const { channel } = request.message;
    refuseTooLarge(request.message);
    faultPoint("inbox.before_put");
    const kept = await this.#bus.request(store.inboxPut, request, { timeoutMs: putTimeoutMs });
    faultPoint("inbox.after_put");
    this.#deps.sessions.learn(request.sessionKey, kept.sessionId);
    if (!kept.same) {
      if (keyed) {
        this.#deps.events.inbound(channel, "refused", "key_reused");
        throw new KeyReused();
      }
      this.#deps.events.idReused(channel, kept.inboxId);
    }
    this.#deps.events.inbound(channel, kept.duplicate ? "duplicate" : "stored");
    return kept;
  }

  async #putAndShow(
    typing: Typing | undefined,
    address: ReplyAddress,
    sessionKey: string,
    put: () => Promise<KeptMessage>,
  ): Promise<KeptMessage> {
    if (typing === undefined) return put();
    const bound = typing.bound();
    try {
      const { kept, end } = await followTurn(this.#deps, sessionKey, put, bound.signal);
      void typing.until(end, address, bound);
      return kept;
    } catch (error) {
      bound.abort();
      throw error;
    }
  }

  async #paired({ channel, account }: Doorway, draft: InboundDraft) {
    const { contact } = await this.#bus.request(store.contactGet, { channel, account, contactId: draft.contact.id });
    return contact?.role ?? null;
  }

  async #offerPairing({ channel, account }: Doorway, draft: InboundDraft): Promise<void> {
    const code = newPairingCode();
    const { status } = await this.#bus.request(store.pairingRequest, {
      channel,
      account,
      contactId: draft.contact.id,
      name: draft.contact.name ?? null,
      codeSha256: pairingCodeHash(code),
      ttlMs: pairingTtlMs,
      // In one commit: a request whose code nobody was shown would shut the stranger out for an hour.
      outgoing: { address: draft.replyTo, text: pairingText(code), expiresInMs: pairingTtlMs },
    });
    this.#deps.events.inbound(channel, "ignored", `pairing_${status}`);
  }

  /** Sends an answer that belongs to no turn, once for each message that is answered. */
  async #answer(messageRef: string, address: ReplyAddress, text: string): Promise<void> {
    await this.#bus.request(store.outboxPut, {
      opId: uuidOf(`answer:${messageRef}`),
      outgoing: { address, text, expiresInMs: commandAnswerExpiresMs },
    });
  }
}

function messageOf(input: KnownInput): InboundMessage {
  const { text, keyed: _, ...rest } = input;
  return { ...rest, parts: [{ type: "text", text }] };
}

/** One UTF-16 unit takes at most six bytes as JSON (`\u0000`). */
const maxBytesPerUnit = 6;
const roomForTheRest = 16 * 1024;

function refuseTooLarge(message: InboundMessage): void {
  let units = 0;
  for (const part of message.parts) units += part.type === "text" ? part.text.length : part.data.length;
  if (units * maxBytesPerUnit + roomForTheRest <= maxInboundBytes) return;
  const bytes = Buffer.byteLength(JSON.stringify(message));
  if (bytes > maxInboundBytes) throw new MessageTooLarge(bytes);
}
