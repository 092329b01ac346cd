// Shows the typing indicator of the platform from the time a message is stored until its turn ends. Best effort: nothing depends on it.
import type { ReplyAddress } from "@parley/contracts";
import type { ChannelAdapter } from "../channels/channel.ts";

/** Most platforms hide the indicator after 5 s or more. */
const defaultEveryMs = 4_500;
/** The indicator ends after this time even if the turn continues. */
const longestMs = 15 * 60_000;

type TypingAdapter = Pick<ChannelAdapter, "typing" | "stopTyping" | "capabilities">;

export class Typing {
  readonly #adapter: TypingAdapter;
  /** By conversation: the number of awaited turns, and the timer that repeats the indicator. */
  readonly #shown = new Map<string, { turns: number; timer: NodeJS.Timeout }>();
  readonly #following = new Set<AbortController>();
  #closed = false;

  constructor(adapter: TypingAdapter) {
    this.#adapter = adapter;
  }

  /** Returns a controller that bounds how long a turn is followed for the indicator. */
  bound(): AbortController {
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

  /** Shows the indicator in a conversation until `end` settles. */
  async until(end: Promise<unknown>, address: ReplyAddress, bound: AbortController): Promise<void> {
    const shown = this.#shown.get(address.conversation) ?? this.#begin(address);
    shown.turns++;
    await end.catch(() => undefined);
    bound.abort(new Error("ended"));
    if (--shown.turns > 0) return;
    clearInterval(shown.timer);
    this.#shown.delete(address.conversation);
    await this.#adapter.stopTyping?.(address).catch(() => undefined);
  }

  close(): void {
    this.#closed = true;
    for (const controller of this.#following) controller.abort(new Error("draining"));
  }

  #begin(address: ReplyAddress): { turns: number; timer: NodeJS.Timeout } {
    const show = () => void this.#adapter.typing?.(address).catch(() => undefined);
    show();
    const shown = { turns: 0, timer: setInterval(show, this.#adapter.capabilities.typingEveryMs ?? defaultEveryMs) };
    this.#shown.set(address.conversation, shown);
    return shown;
  }
}
