// Handles the events of one connection in order, one at a time, and advances the cursor only past events that are stored. When one cannot
// be stored the connection ends, and Discord replays it and all later ones after the RESUME.
import { setTimeout as delay } from "node:timers/promises";
import type { ChannelHost, LeaseRef } from "../channel.ts";
import { skipUnstorable, store } from "../parsed.ts";
import type { Call } from "./api.ts";
import { formatCursor, withMessage, withStart, type Cursor } from "./cursor.ts";
import { acknowledge, showAction, showCommand } from "./interactions.ts";
import { parseDeletion, parseEdit, parseInteraction, parseMessage, parseReaction, type Parsed } from "./parse.ts";
import { Interaction, Place, Ready, type User } from "./schema.ts";
import type { GatewayEvent } from "./socket.ts";
import type { Threads } from "./threads.ts";

/** An event; an interaction is already being acknowledged. */
interface QueuedEvent extends GatewayEvent {
  interaction?: Interaction;
  acknowledged?: Promise<void>;
}

export interface QueueDeps {
  account: string;
  call: Call;
  host: ChannelHost;
  lease: LeaseRef;
  me: Pick<User, "id">;
  /** The channels whose missed messages are read in any case. */
  groups: readonly string[];
  threads: Threads;
  /** The messages that a new session has missed since the cursor, oldest first. */
  missed: (cursor: Cursor) => AsyncIterable<unknown>;
}

/** Events that need no commit advance the cursor in the store at most this often. */
const saveEveryMs = 5_000;
const lastSaveWithinMs = 1_000;

export class EventQueue {
  /** Rejects when an event could not be stored. */
  readonly failed: Promise<never>;
  readonly #deps: QueueDeps;
  readonly #failed = Promise.withResolvers<never>();
  #cursor: Cursor;
  #tail: Promise<void> = Promise.resolve();
  #stopped = false;
  readonly #startedAtMs = Date.now();
  #savedSeq: number | null;
  #savedAtMs = 0;

  constructor(deps: QueueDeps, cursor: Cursor) {
    this.#deps = deps;
    this.#cursor = cursor;
    this.#savedSeq = cursor.session?.seq ?? null;
    this.failed = this.#failed.promise;
    this.failed.catch(() => {});
  }

  /** The number of the last stored event; null before the session has one. */
  get storedSeq(): number | null {
    return this.#cursor.session?.seq ?? null;
  }

  push(event: GatewayEvent): void {
    const { call } = this.#deps;
    const interaction = event.type === "INTERACTION_CREATE" ? Interaction.safeParse(event.data).data : undefined;
    // Before anything else in the queue: it is due within 3 s.
    const queued =
      interaction === undefined ? event : { ...event, interaction, acknowledged: acknowledge(call, interaction) };
    this.#tail = this.#after(this.#tail, queued);
  }

  /** Ends the queue after the event that is being handled, and saves the cursor if it is ahead. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#tail;
    if (this.storedSeq === this.#savedSeq) return;
    await Promise.race([this.#save().catch(() => {}), delay(lastSaveWithinMs, undefined, { ref: false })]);
  }

  async #after(before: Promise<void>, event: QueuedEvent): Promise<void> {
    await before;
    if (this.#stopped) return;
    try {
      if (event.type === "READY") await this.#begin(event);
      else await this.#handle(event);
    } catch (error) {
      this.#stopped = true;
      this.#failed.reject(error);
    }
  }

  /** A new session: what was missed since the last one is read first, under the cursor of the last one. */
  async #begin({ seq, data }: GatewayEvent): Promise<void> {
    const ready = Ready.parse(data);
    if (this.#cursor.message !== null) {
      for await (const data of this.#deps.missed(this.#cursor)) {
        await this.#handle({ type: "MESSAGE_CREATE", seq: this.storedSeq ?? 0, data });
      }
    }
    const { session_id: id, resume_gateway_url: url } = ready;
    this.#cursor = { ...withStart(this.#cursor, this.#startedAtMs), session: { id, url, seq } };
    await this.#save();
  }

  async #handle(event: QueuedEvent): Promise<void> {
    const parsed = await this.#parse(event);
    const session = this.#cursor.session === null ? null : { ...this.#cursor.session, seq: event.seq };
    let next: Cursor = { ...this.#cursor, session };
    if (parsed?.kind === "message" && parsed.messageId !== null) {
      const { conversation } = parsed.draft;
      next = withMessage(next, parsed.messageId, this.#deps.groups.includes(conversation) ? null : conversation);
    }
    const stored = parsed !== null && (await this.#store(parsed, formatCursor(next), event));
    this.#cursor = next;
    if (stored) {
      this.#savedSeq = event.seq;
      this.#savedAtMs = performance.now();
    } else if (performance.now() - this.#savedAtMs > saveEveryMs) await this.#save();
  }

  /** Null for events that are no input. */
  async #parse({ type, seq, data, interaction }: QueuedEvent): Promise<Parsed | null> {
    const { account, me, threads } = this.#deps;
    if (type.startsWith("THREAD_") || type.startsWith("CHANNEL_")) threads.learn(data);
    const eventContext = async (place: unknown) => {
      const eventId = `${this.#cursor.session?.id ?? ""}:${seq}`;
      const { data: known } = Place.safeParse(place);
      return { account, me, eventId, parentId: known === undefined ? null : await threads.parent(known) };
    };
    if (interaction !== undefined) {
      if (interaction.channel !== undefined) threads.learn(interaction.channel);
      return parseInteraction(interaction, await eventContext(interaction));
    }
    switch (type) {
      case "MESSAGE_CREATE":
        return parseMessage(data, await eventContext(data));
      case "MESSAGE_UPDATE":
        return parseEdit(data, await eventContext(data));
      case "MESSAGE_DELETE":
        return parseDeletion(data, await eventContext(data));
      case "MESSAGE_REACTION_ADD":
      case "MESSAGE_REACTION_REMOVE":
        return parseReaction(data, type.endsWith("REMOVE"), await eventContext(data));
      default:
        return null;
    }
  }

  /** Returns whether the cursor was saved, or is being saved, with the input. Rejects when it must be passed again. */
  async #store(parsed: Parsed, cursor: string, { interaction, acknowledged }: QueuedEvent): Promise<boolean> {
    const { host, lease, call } = this.#deps;
    if (parsed.kind === "skipped") host.log.info({ reason: parsed.reason }, "event skipped");
    if (parsed.kind === "skipped" || parsed.kind === "ignored") return false;
    const position = { lease, cursor };
    const show = (response: (to: Interaction) => Promise<void>): void => {
      if (interaction !== undefined) void acknowledged?.then(() => response(interaction));
    };
    const done = await skipUnstorable(host.log, {}, async () => {
      if (parsed.kind === "action") {
        const { name, id } = parsed.action.contact;
        const result = await host.act(parsed.action, position);
        show((to) => showAction(call, to, name ?? id, result));
      } else {
        const result = await store(host, parsed, position);
        if (parsed.kind === "message") show((to) => showCommand(call, to, parsed.draft.text, result === "ignored"));
      }
      return true;
    });
    return done === true;
  }

  async #save(): Promise<void> {
    const cursor = this.#cursor;
    await this.#deps.host.checkpoint({ lease: this.#deps.lease, cursor: formatCursor(cursor) });
    this.#savedSeq = cursor.session?.seq ?? null;
    this.#savedAtMs = performance.now();
  }
}
