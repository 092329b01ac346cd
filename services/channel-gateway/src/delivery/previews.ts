// Previews of one account: while a turn runs, its answer is shown as one message that is edited. The replica that follows the turn sends and
// edits it; the store keeps its id, so that any replica replaces it with the answer. docs/architecture.md describes the protocol.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { faultPoint, type Logger } from "@parley/chassis";
import { store, WireError, type InputOf, type OutputOf, type ReplyAddress, type SessionEvent } from "@parley/contracts";
import type { SendingAdapter, LeaseRef, SendOutcome } from "../channels/channel.ts";
import type { RenderedText } from "../channels/text/render.ts";
import { AnswerParts } from "../channels/text/parts.ts";
import { ratesOf } from "./rates.ts";
import { StreamedText } from "./streamed-text.ts";

export interface PreviewDeps {
  bus: Bus;
  log: Logger;
  owner: { replica: string; incarnation: string };
  adapter: SendingAdapter;
  /** The lease that sends need; null: not held; undefined: sends need none. */
  lease: () => LeaseRef | null | undefined;
  /** Called when texts of a conversation may be sent. */
  wake: () => void;
}

/** An answer that is complete within this time after its first token is only sent whole. */
const firstAfterMs = 700;
/** How long this replica alone may edit a preview; the answer waits for no longer than that after a crash. */
const claimMs = 15_000;
/** How long one send or edit may take; less than `claimMs`. */
const sendTimeoutMs = 8_000;
/** Timeout for a response of the store to a request for an edit. */
const answerMs = 3_000;
/** How long a settlement is retried while the store is unavailable. */
const settleForMs = 25_000;
const settlePauseMs = 500;
/** Marks an answer that is not complete. */
const continues = " …";

type Settlement = InputOf<typeof store.previewSettle>["outcome"];

export class Previews {
  readonly #deps: PreviewDeps;
  /** By turn and conversation. */
  readonly #previews = new Map<string, Preview>();

  constructor(deps: PreviewDeps) {
    this.#deps = deps;
  }

  /** Follows a turn whose answer goes to this address. */
  follow(address: ReplyAddress): Preview {
    return new Preview(this.#deps, address, this.#previews);
  }

  /** Ends the edits of a turn's preview; resolves when none is in flight. */
  async settled(turnId: string, conversation: string): Promise<void> {
    await this.#previews.get(keyOf(turnId, conversation))?.stop();
  }

  /** Leaves all previews to other replicas. */
  async close(): Promise<void> {
    await Promise.all([...this.#previews.values()].map((preview) => preview.end()));
  }
}

class Preview {
  readonly #deps: PreviewDeps;
  readonly #address: ReplyAddress;
  readonly #previews: Map<string, Preview>;
  readonly #streamed = new StreamedText();
  readonly #everyMs: number;
  #turnId: string | undefined;
  /** The operation of an opening whose response has not arrived. */
  #openId: string | undefined;
  #messageId: string | undefined;
  #shown = "";
  #dueAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #update: Promise<void> | undefined;
  #stopped = false;
  #finished = false;

  constructor(deps: PreviewDeps, address: ReplyAddress, previews: Map<string, Preview>) {
    this.#deps = deps;
    this.#address = address;
    this.#previews = previews;
    const { preview, rates } = deps.adapter.capabilities;
    const rate = rates?.conversations?.find(({ pattern }) => new RegExp(pattern).test(address.conversation));
    this.#everyMs = Math.max(preview?.everyMs ?? 0, rate?.everyMs ?? 0);
  }

  event(event: SessionEvent): void {
    if (event.type === "turn.finished") {
      this.#finished = true;
      void this.stop();
      return;
    }
    if (event.type !== "text.delta" || this.#stopped) return;
    if (this.#turnId === undefined) {
      const key = keyOf(event.turnId, this.#address.conversation);
      // Another message of the conversation joined this turn and is followed already.
      if (this.#previews.has(key)) {
        this.#stopped = true;
        return;
      }
      this.#turnId = event.turnId;
      this.#previews.set(key, this);
      this.#dueAtMs = performance.now() + firstAfterMs;
    }
    this.#streamed.add(event);
    this.#schedule();
  }

  /** Ends the edits; resolves when none is in flight. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#update;
  }

  /** Ends the preview: the turn has ended, or this replica follows it no longer. */
  async end(): Promise<void> {
    await this.stop();
    if (this.#turnId === undefined) return;
    await this.#cancelOpening(this.#turnId);
    if (this.#messageId !== undefined && !this.#finished) await this.#settle({ state: "released" });
    this.#previews.delete(keyOf(this.#turnId, this.#address.conversation));
    this.#deps.wake();
  }

  #schedule(): void {
    if (this.#stopped || this.#timer !== undefined || this.#update !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#update = this.#show().finally(() => {
          this.#update = undefined;
          if (this.#rendered() !== undefined) this.#schedule();
        });
      },
      Math.max(0, this.#dueAtMs - performance.now()),
    );
  }

  /** The text to show; undefined when it is shown already. */
  #rendered(): RenderedText | undefined {
    const { text } = this.#streamed;
    if (text === null || text.trim() === "") return undefined;
    const { adapter } = this.#deps;
    const { capabilities } = adapter;
    const most = adapter.maxLength?.(this.#address) ?? capabilities.text.maxLength;
    // Only the first message of the answer is shown; a longer text need not be parsed.
    const shown = `${text.slice(0, 2 * most)}${continues}`;
    const rendered = new AnswerParts(capabilities.text).at("preview", shown, 0, most)?.rendered;
    return rendered === undefined || rendered.text === this.#shown ? undefined : rendered;
  }

  async #show(): Promise<void> {
    const rendered = this.#rendered();
    const turnId = this.#turnId;
    const lease = this.#deps.lease();
    this.#dueAtMs = performance.now() + this.#everyMs;
    if (rendered === undefined || turnId === undefined || lease === null || this.#stopped) return;
    try {
      if (this.#messageId === undefined) await this.#send(turnId, rendered, lease);
      else await this.#edit(turnId, this.#messageId, rendered);
    } catch (error) {
      const { channel, account } = this.#address;
      // The preview is tried again with the next text; the answer does not depend on it.
      this.#deps.log.debug({ err: error, channel, account }, "preview failed");
    }
    this.#dueAtMs = performance.now() + this.#everyMs;
  }

  async #send(turnId: string, text: RenderedText, lease: LeaseRef | undefined): Promise<void> {
    const { adapter } = this.#deps;
    const verdict = await this.#open(turnId, lease);
    if (verdict === "never") this.#stopped = true;
    if (verdict !== "open") return;
    faultPoint("preview.after_open");
    const part = { address: this.#address, text, idempotencyKey: `${turnId}-preview`, attempts: 0 };
    // The turn may have ended meanwhile: its answer needs no preview.
    const outcome: SendOutcome | null = this.#stopped
      ? null
      : await withTimeout((signal) => adapter.send(part, signal));
    faultPoint("preview.after_send");
    if (outcome?.state === "sent" && outcome.providerMessageId !== null) {
      this.#messageId = outcome.providerMessageId;
      this.#shown = text.text;
    } else if (outcome !== null && outcome.state !== "retry") this.#stopped = true;
    await this.#settle(settlementOf(outcome));
    faultPoint("preview.after_settle");
    // Other texts of the conversation waited for the send.
    this.#deps.wake();
  }

  async #open(turnId: string, lease: LeaseRef | undefined): Promise<OutputOf<typeof store.previewOpen>["verdict"]> {
    const ref = lease === undefined ? {} : { lease: { name: lease.name, fence: lease.fence } };
    // A repetition after a lost response is the same operation: a second opening would be refused, and the preview never shown.
    const opId = (this.#openId ??= randomUUID());
    const { verdict } = await this.#deps.bus.request(
      store.previewOpen,
      { opId, ...this.#key(turnId), address: this.#address, claimMs, ...ref, ...this.#rates() },
      { timeoutMs: answerMs },
    );
    this.#openId = undefined;
    return verdict;
  }

  /** A preview whose opening got no response holds back the answer until its claim ends: also when this gets no response either. */
  async #cancelOpening(turnId: string): Promise<void> {
    // The opening is repeated, because one that is still in flight could open the preview afterwards.
    const verdict = this.#openId === undefined ? null : await this.#open(turnId, undefined).catch(() => null);
    if (verdict === "open") await this.#settle({ state: "failed" });
  }

  async #edit(turnId: string, messageId: string, text: RenderedText): Promise<void> {
    const { bus, adapter } = this.#deps;
    const { verdict } = await bus.request(
      store.previewEdit,
      { ...this.#key(turnId), claimMs, ...this.#rates() },
      { timeoutMs: answerMs },
    );
    if (verdict === "never") this.#stopped = true;
    if (verdict !== "edit" || this.#isStopped()) return;
    const outcome = await withTimeout(
      async (signal) => adapter.edit?.(this.#address, messageId, text, signal) ?? cannotEdit,
    );
    if (outcome.state === "sent") this.#shown = text.text;
    if (outcome.state === "dropped") this.#stopped = true;
    if (outcome.state === "retry" && outcome.scope !== undefined) await this.#settle(settlementOf(outcome));
  }

  /** `stop` may have been called while a request was awaited. */
  #isStopped(): boolean {
    return this.#stopped;
  }

  /** Retries while the store is unavailable: the answer replaces the message only if its id is stored. */
  async #settle(outcome: Settlement): Promise<void> {
    const { bus, log } = this.#deps;
    const opId = randomUUID();
    const deadline = performance.now() + settleForMs;
    const input = { opId, ...this.#key(this.#turnId ?? ""), address: this.#address, outcome };
    for (;;) {
      try {
        await bus.request(store.previewSettle, input);
        return;
      } catch (error) {
        if (performance.now() >= deadline || WireError.is(error, "INVALID_INPUT")) {
          log.error({ err: error, state: outcome.state }, "preview not stored: the answer is sent next to it");
          return;
        }
        await delay(settlePauseMs);
      }
    }
  }

  #key(turnId: string) {
    const { channel, account, conversation } = this.#address;
    return { turnId, channel, account, conversation, owner: this.#deps.owner };
  }

  #rates() {
    const { rates } = this.#deps.adapter.capabilities;
    return rates === undefined ? {} : { rates: ratesOf(rates) };
  }
}

const cannotEdit: SendOutcome = { state: "dropped", reason: "the adapter does not edit messages" };

/** Null: nothing was sent. */
function settlementOf(outcome: SendOutcome | null): Settlement {
  if (outcome?.state === "sent") {
    const { providerMessageId: messageId } = outcome;
    return messageId === null ? { state: "unknown" } : { state: "sent", messageId };
  }
  if (outcome?.state === "unknown") return { state: "unknown" };
  if (outcome?.state !== "retry" || outcome.scope === undefined) return { state: "failed" };
  return { state: "failed", pause: { afterMs: outcome.afterMs, scope: outcome.scope } };
}

/** An outcome in time, even if the adapter ignores the signal or throws. */
async function withTimeout(send: (signal: AbortSignal) => Promise<SendOutcome>): Promise<SendOutcome> {
  const timeout = AbortSignal.timeout(sendTimeoutMs);
  const late = Promise.withResolvers<SendOutcome>();
  timeout.addEventListener("abort", () => late.resolve({ state: "unknown", reason: "no answer in time" }));
  try {
    return await Promise.race([send(timeout), late.promise]);
  } catch {
    return { state: "unknown", reason: "the adapter threw while sending" };
  }
}

function keyOf(turnId: string, conversation: string): string {
  return `${turnId} ${conversation}`;
}
