// The pauses that a platform demanded of one account. The store keeps them for claims; this keeps them on every replica, for what is claimed
// already and for everything else that calls the platform in order to show something.
import type { Bus, Served } from "@parley/bus";
import { sendPaused } from "@parley/contracts";
import { RateLimitedError, type SendingAdapter, type SendOutcome } from "../channels/channel.ts";

type Scope = "conversation" | "account";

const unsupported: SendOutcome = { state: "dropped", reason: "the adapter cannot do this" };

export class SendPauses {
  readonly #bus: Bus;
  readonly #channel: string;
  readonly #account: string;
  /** When pauses end (performance.now()), by conversation; "": that of the account. */
  readonly #endsAtMs = new Map<string, number>();
  readonly #hint: Served;

  constructor(bus: Bus, { channel, account }: Pick<SendingAdapter, "channel" | "account">) {
    this.#bus = bus;
    this.#channel = channel;
    this.#account = account;
    this.#hint = bus.subscribe(sendPaused, {}, ({ conversation, scope, forMs, ...of }) => {
      if (of.channel === channel && of.account === account) this.#begin(conversation, scope, forMs);
    });
  }

  /** How long nothing may be sent to the conversation, in milliseconds. */
  waitMs(conversation: string): number {
    return Math.ceil(Math.max(this.#leftMs(conversation), this.#leftMs("")));
  }

  /** Holds the adapter's calls during pauses, and begins the pauses that their outcomes demand. */
  guard(adapter: SendingAdapter): SendingAdapter {
    const { channel, account, capabilities } = adapter;
    const unlessPaused = async (conversation: string, call: () => Promise<SendOutcome> | undefined) => {
      const afterMs = this.waitMs(conversation);
      if (afterMs > 0) return { state: "retry", afterMs, reason: "waits because of a rate limit", held: true } as const;
      const outcome = (await call()) ?? unsupported;
      if (outcome.state !== "retry") return outcome;
      // Some platforms demand fractions of a millisecond.
      const demanded = { ...outcome, afterMs: Math.ceil(outcome.afterMs) };
      if (demanded.scope !== undefined) this.#demand(conversation, demanded);
      return demanded;
    };
    return {
      channel,
      account,
      capabilities,
      maxLength: (address) => adapter.maxLength?.(address) ?? capabilities.text.maxLength,
      send: (part, signal) => unlessPaused(part.address.conversation, () => adapter.send(part, signal)),
      edit: (to, id, text, signal) => unlessPaused(to.conversation, () => adapter.edit?.(to, id, text, signal)),
      remove: (to, id, signal) => unlessPaused(to.conversation, () => adapter.remove?.(to, id, signal)),
      react: (to, id, reaction, signal) =>
        unlessPaused(to.conversation, () => adapter.react?.(to, id, reaction, signal)),
      typing: async (to) => {
        if (this.waitMs(to.conversation) > 0) return;
        await adapter.typing?.(to).catch((error: unknown) => {
          if (error instanceof RateLimitedError)
            this.#demand(to.conversation, { scope: "account", afterMs: Math.ceil(error.afterMs) });
          throw error;
        });
      },
      stopTyping: async (to) => (this.waitMs(to.conversation) > 0 ? undefined : adapter.stopTyping?.(to)),
    };
  }

  close(): void {
    this.#hint.close();
  }

  /** Here immediately; on the other replicas when the message arrives. */
  #demand(conversation: string, { scope = "conversation", afterMs: forMs }: { scope?: Scope; afterMs: number }): void {
    this.#begin(conversation, scope, forMs);
    this.#bus.publish(sendPaused, { channel: this.#channel, account: this.#account, conversation, scope, forMs });
  }

  /** A pause is never shortened. Two paused conversations pause the account, as in the store. */
  #begin(conversation: string, scope: Scope, forMs: number): void {
    const nowMs = performance.now();
    for (const [paused, endsAtMs] of this.#endsAtMs) if (endsAtMs <= nowMs) this.#endsAtMs.delete(paused);
    const others = [...this.#endsAtMs.keys()].some((paused) => paused !== "" && paused !== conversation);
    for (const paused of scope === "account" || others ? [conversation, ""] : [conversation])
      this.#endsAtMs.set(paused, Math.max(this.#endsAtMs.get(paused) ?? 0, nowMs + forMs));
  }

  #leftMs(conversation: string): number {
    return Math.max(0, (this.#endsAtMs.get(conversation) ?? 0) - performance.now());
  }
}
