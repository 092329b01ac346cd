// What a conversation shows while a turn answers it: the typing indicator, a preview of the answer and a reaction to the message. Best
// effort, except that the answer replaces the preview (previews.ts): nothing else depends on it.
import type { ReplyAddress, SessionEvent } from "@parley/contracts";
import type { InboundDraft, SendingAdapter } from "../channels/channel.ts";
import type { Previews } from "./previews.ts";

/** Most platforms hide the typing indicator after 5 s or more. */
const defaultEveryMs = 4_500;
/** The indicators end after this time even if the turn continues. */
const longestMs = 15 * 60_000;
const reactWithinMs = 5_000;

type IndicatingAdapter = Pick<SendingAdapter, "typing" | "stopTyping" | "react" | "capabilities">;

/** The indicators of one message and its turn. */
export interface FollowedTurn {
  /** Aborts when the indicators end early. */
  readonly signal: AbortSignal;
  /** Receives live events of the turn. */
  event(event: SessionEvent): void;
  /** Shows the indicators until `end` settles. */
  until(end: Promise<unknown>): Promise<void>;
  /** Nothing is followed: the message was not stored. */
  cancel(): void;
}

export interface ShownIndicators {
  /** Undefined: answers are only shown whole. */
  previews: Previews | undefined;
  /** Received messages get the channel's reaction while their turn runs. */
  acknowledge: boolean;
}

export class TurnIndicators {
  readonly #adapter: IndicatingAdapter;
  readonly #shows: ShownIndicators;
  /** By conversation: the number of awaited turns, and the timer that repeats the typing indicator. */
  readonly #typing = new Map<string, { turns: number; timer: NodeJS.Timeout }>();
  readonly #following = new Set<AbortController>();
  #closed = false;

  constructor(adapter: IndicatingAdapter, shows: ShownIndicators) {
    this.#adapter = adapter;
    this.#shows = shows;
  }

  /** Begins to follow the turn of a message that is about to be stored. */
  follow({ replyTo, externalId, messageId = externalId }: InboundDraft): FollowedTurn {
    const bound = this.#bound();
    const preview = this.#shows.previews?.follow(replyTo);
    const acknowledgement = this.#acknowledgement(replyTo, messageId);
    return {
      signal: bound.signal,
      event: (event) => {
        acknowledgement?.begin();
        preview?.event(event);
      },
      until: async (end) => {
        const hide = this.#showTyping(replyTo);
        await end.catch(() => undefined);
        bound.abort(new Error("ended"));
        await Promise.all([hide(), preview?.end(), acknowledgement?.end()]);
      },
      cancel: () => bound.abort(new Error("not stored")),
    };
  }

  close(): void {
    this.#closed = true;
    for (const controller of this.#following) controller.abort(new Error("draining"));
  }

  /** Returns a controller that bounds how long a turn is followed. */
  #bound(): AbortController {
    const controller = new AbortController();
    if (this.#closed) controller.abort(new Error("draining"));
    this.#following.add(controller);
    const timer = setTimeout(() => controller.abort(new Error("too long")), longestMs);
    timer.unref();
    const over = () => {
      clearTimeout(timer);
      this.#following.delete(controller);
    };
    controller.signal.addEventListener("abort", over, { once: true });
    if (controller.signal.aborted) over();
    return controller;
  }

  /** Shows the typing indicator until the returned function is called, by every turn of the conversation. */
  #showTyping(address: ReplyAddress): () => Promise<void> {
    const adapter = this.#adapter;
    if (!adapter.capabilities.typing) return async () => undefined;
    const shown = this.#typing.get(address.conversation) ?? this.#beginTyping(address);
    shown.turns++;
    return async () => {
      if (--shown.turns > 0) return;
      clearInterval(shown.timer);
      this.#typing.delete(address.conversation);
      await adapter.stopTyping?.(address).catch(() => undefined);
    };
  }

  #beginTyping(address: ReplyAddress): { turns: number; timer: NodeJS.Timeout } {
    const show = () => void this.#adapter.typing?.(address).catch(() => undefined);
    show();
    const shown = { turns: 0, timer: setInterval(show, this.#adapter.capabilities.typingEveryMs ?? defaultEveryMs) };
    this.#typing.set(address.conversation, shown);
    return shown;
  }

  /** The reaction to one message: set at the first event of its turn, removed at the end. Undefined: there is none. */
  #acknowledgement(address: ReplyAddress, messageId: string): { begin(): void; end(): Promise<void> } | undefined {
    const adapter = this.#adapter;
    const { acknowledgement: reaction } = adapter.capabilities;
    if (!this.#shows.acknowledge || reaction === undefined || adapter.react === undefined) return undefined;
    let set: Promise<unknown> | undefined;
    const react = async (to: string | null) =>
      adapter.react?.(address, messageId, to, AbortSignal.timeout(reactWithinMs)).catch(() => undefined);
    return {
      begin: () => void (set ??= react(reaction)),
      end: async () => {
        if (set === undefined) return;
        await set;
        await react(null);
      },
    };
  }
}
