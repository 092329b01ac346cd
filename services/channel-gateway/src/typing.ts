// Shows on the platform that an answer is being written, from the moment a message is kept until its turn has ended. Only ever
// an attempt: nothing depends on it.
import type { ReplyAddress } from "@parley/contracts";
import type { ChannelAdapter } from "./channel.ts";

/** Platforms forget it after five seconds or more. */
const repeatMs = 4_500;
/** A turn that takes longer is not announced any further. */
const longestMs = 15 * 60_000;

export class Typing {
  readonly #adapter: Pick<ChannelAdapter, "typing">;
  /** By conversation: how many turns are awaited there, and what repeats the sign. */
  readonly #shown = new Map<string, { turns: number; timer: NodeJS.Timeout }>();
  readonly #following = new Set<AbortController>();
  #closed = false;

  constructor(adapter: Pick<ChannelAdapter, "typing">) {
    this.#adapter = adapter;
  }

  /** The signal that bounds how long a turn is followed for this. */
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

  /** Shows the sign in a conversation until `end` settles. */
  async until(end: Promise<unknown>, address: ReplyAddress, bound: AbortController): Promise<void> {
    const shown = this.#shown.get(address.conversation) ?? this.#begin(address);
    shown.turns++;
    await end.catch(() => undefined);
    bound.abort(new Error("ended"));
    if (--shown.turns > 0) return;
    clearInterval(shown.timer);
    this.#shown.delete(address.conversation);
  }

  close(): void {
    this.#closed = true;
    for (const controller of this.#following) controller.abort(new Error("draining"));
  }

  #begin(address: ReplyAddress): { turns: number; timer: NodeJS.Timeout } {
    const show = () => void this.#adapter.typing?.(address).catch(() => undefined);
    show();
    const shown = { turns: 0, timer: setInterval(show, repeatMs) };
    this.#shown.set(address.conversation, shown);
    return shown;
  }
}
