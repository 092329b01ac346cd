// The way in: who sends, which thread, is it a command; then the message is kept by the store, and only then may the
// platform be acknowledged. Knows no platform and no HTTP.
import type { Bus } from "@parley/bus";
import { faultPoint, inSpan, parleyAttribute, type Logger } from "@parley/chassis";
import {
  controlCancel,
  maxInboundBytes,
  store,
  trustOf,
  type Attachment,
  type InboundMessage,
  type InputOf,
  type OutputOf,
  type ParleySettings,
  type QueueMode,
  type ReplyAddress,
} from "@parley/contracts";
import { admit, dependsOnPairing, type PeoplePolicy } from "./admit.ts";
import { followTurn, type AwaitDeps, type KeptMessage, type PendingTurn, type TurnListener } from "./await-turn.ts";
import type { AcceptResult, HeldLease, InboundDraft } from "./channel.ts";
import { Refusal, type Speaker } from "./commands/command.ts";
import { carryOut } from "./commands/run.ts";
import { readSpoken, type CommandLine } from "./commands/spoken.ts";
import { uuidOf } from "./digest.ts";
import type { GatewayEvents } from "./events.ts";
import { takeFiles } from "./files-in.ts";
import { newPairingCode, pairingCodeHash, pairingText, pairingTtlMs } from "./pairing-code.ts";
import { busyWith, SessionBusy } from "./busy.ts";
import { queueModeOf } from "./queue-mode.ts";
import { sessionKeyOf } from "./route.ts";
import { SessionActs } from "./session-acts.ts";
import type { Typing } from "./typing.ts";

export interface InboundDeps extends AwaitDeps {
  log: Logger;
  settings: ParleySettings;
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
  /** What is done with it while the session is busy; left out: as the session or the settings have it. */
  mode?: QueueMode | undefined;
  /** Content the store has. */
  attachments?: readonly Attachment[];
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
  /** What people do with sessions, by whichever way. */
  readonly acts: SessionActs;
  readonly #deps: InboundDeps;
  readonly #bus: Bus;

  constructor(deps: InboundDeps) {
    this.#deps = deps;
    this.#bus = deps.bus;
    this.acts = new SessionActs(deps);
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

    const { role } = admission;
    const sessionKey = sessionKeyOf(this.#deps.settings.session.policy, { channel, account, ...draft, role });
    const ref = `${channel}:${account}:${draft.externalId}`;
    const answer = (text: string) => this.#answer(ref, draft.replyTo, text);
    const spoken = readSpoken(draft.text);
    if (spoken.kind === "command") {
      const { conversation, contact, replyTo, direct } = draft;
      const speaker = { route: sessionKey, role, channel, account, conversation, contact, replyTo, direct, ref };
      await answer(await this.carryOut(spoken.command, speaker));
      this.#deps.events.inbound(channel, "command");
      return "ignored";
    }
    const mode = spoken.mode ?? (draft.album === true ? ("coalesce" as const) : undefined);
    const files = await this.#takeFiles(draft);
    faultPoint("inbox.after_files");
    const message: InboundMessage = {
      channel,
      account,
      externalId: draft.externalId,
      conversation: draft.conversation,
      contact: draft.contact,
      role,
      origin: "user",
      direct: draft.direct,
      parts: [{ type: "text", text: spoken.text }, ...files],
      replyTo: draft.replyTo,
      ...(mode === undefined ? {} : { mode }),
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
      if (error instanceof SessionBusy) {
        await answer(error.message);
        return "ignored";
      }
      if (!(error instanceof MessageTooLarge)) throw error;
      this.#deps.events.inbound(channel, "refused", "too_large");
      await answer(`I could not take that: ${error.message}.`);
      return "ignored";
    }
  }

  /** The thread that this input belongs to. */
  sessionKeyOf(input: Pick<KnownInput, "channel" | "account" | "conversation" | "role">): string {
    return sessionKeyOf(this.#deps.settings.session.policy, { ...input, direct: true });
  }

  /** Whoever gives a command with this input. */
  speakerOf(input: KnownInput): Speaker {
    const { channel, account, conversation, contact, role, replyTo } = input;
    const ref = `${channel}:${account}:${input.externalId}`;
    return {
      route: this.sessionKeyOf(input),
      role,
      channel,
      account,
      conversation,
      contact,
      replyTo,
      direct: true,
      ref,
    };
  }

  /** Keeps a message. Throws SessionBusy, KeyReused, MessageTooLarge, or the store's WireError: then nothing was kept. */
  async keep(input: KnownInput): Promise<KeptMessage> {
    return this.#put({ message: messageOf(input), sessionKey: this.sessionKeyOf(input) }, input.keyed);
  }

  /** Keeps a message and follows the turn that answers it. */
  async keepAndFollow(input: KnownInput, signal: AbortSignal, listener?: TurnListener): Promise<PendingTurn> {
    const message = messageOf(input);
    const sessionKey = this.sessionKeyOf(input);
    return followTurn(this.#deps, sessionKey, () => this.#put({ message, sessionKey }, input.keyed), signal, listener);
  }

  /** Carries a command out and words the answer. Rejects when the store is away. */
  carryOut(command: CommandLine, speaker: Speaker): Promise<string> {
    const { bus, sessions, settings, live } = this.#deps;
    const cancel = this.cancel.bind(this);
    const say = this.#say.bind(this);
    return carryOut(
      { bus, sessions, settings, acts: this.acts, cancel, say, look: () => live.look() },
      command,
      speaker,
    );
  }

  /** Stops a session's turn: remembered by the store first, then said to the leader, who acts at once. */
  async cancel(what: InputOf<typeof store.turnCancel>): Promise<OutputOf<typeof store.turnCancel>> {
    const outcome = await this.#bus.request(store.turnCancel, what);
    if (outcome.cancelledQueued > 0) this.#deps.live.look();
    // Without a leader the next one finds it in the store.
    const say = (order: InputOf<typeof controlCancel>) =>
      this.#bus.request(controlCancel, order, { timeoutMs: controlTimeoutMs }).catch(() => undefined);
    await Promise.all(outcome.turns.map(say));
    return outcome;
  }

  async #say(message: InboundMessage, sessionKey: string): Promise<void> {
    try {
      await this.#put({ message, sessionKey });
    } catch (error) {
      if (error instanceof SessionBusy || error instanceof MessageTooLarge) throw new Refusal(error.message);
      throw error;
    }
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
    refuseTooLarge(request.message);
    const message = await this.#queued(request);
    const { channel } = message;
    faultPoint("inbox.before_put");
    const kept = await this.#bus.request(store.inboxPut, { ...request, message }, { timeoutMs: putTimeoutMs });
    faultPoint("inbox.after_put");
    if (kept.refused) {
      this.#deps.events.inbound(channel, "refused", "busy");
      throw new SessionBusy(await busyWith(this.#bus, kept.sessionId, kept.runningTurnId));
    }
    this.#deps.sessions.learn(request.sessionKey, kept.sessionId);
    if (message.mode === "interrupt" && !kept.duplicate) await this.#interrupt(message, kept);
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

  /** The message with what is done with it while the session is busy. */
  async #queued({ message, sessionKey }: InputOf<typeof store.inboxPut>): Promise<InboundMessage> {
    const { sessions, settings } = this.#deps;
    const { origin, mode: asked } = message;
    const session = asked === undefined && origin === "user" ? await sessions.queueModeOf(sessionKey) : null;
    const mode = queueModeOf({ origin, asked, session, setting: settings.queue.mode });
    return { ...message, mode, ...(mode === "coalesce" ? { windowMs: settings.queue.window_ms } : {}) };
  }

  /** Stops exactly the turn that was found running, where its sender may: an owner any, others one of their own kind. */
  async #interrupt(message: InboundMessage, kept: OutputOf<typeof store.inboxPut>): Promise<void> {
    const { sessionId, runningTurnId: turnId, runningTrust } = kept;
    if (turnId === null || (message.role !== "owner" && trustOf(message) !== runningTrust)) return;
    await this.cancel({ sessionId, turnId, queued: false });
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

  async #takeFiles({ files = [] }: InboundDraft): Promise<InboundMessage["parts"]> {
    if (files.length === 0) return [];
    const { bus, log, settings } = this.#deps;
    return takeFiles({ bus, log, maxBytes: settings.attachments.max_bytes }, files);
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
  const { text, keyed: _, mode, attachments = [], ...rest } = input;
  const files = attachments.map((attachment) => ({ ...attachment, type: "blob" as const }));
  const said = text === "" && files.length > 0 ? [] : [{ type: "text" as const, text }];
  return { ...rest, parts: [...said, ...files], ...(mode === undefined ? {} : { mode }) };
}

/** One UTF-16 unit takes at most six bytes as JSON (`\u0000`). */
const maxBytesPerUnit = 6;
const roomForTheRest = 16 * 1024;

function refuseTooLarge(message: InboundMessage): void {
  let units = 0;
  for (const part of message.parts) {
    if (part.type === "text") units += part.text.length;
    if (part.type === "binary") units += part.data.length;
  }
  if (units * maxBytesPerUnit + roomForTheRest <= maxInboundBytes) return;
  const bytes = Buffer.byteLength(JSON.stringify(message));
  if (bytes > maxInboundBytes) throw new MessageTooLarge(bytes);
}
