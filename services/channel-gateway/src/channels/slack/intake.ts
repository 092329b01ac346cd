// Passes deliveries of Slack to the gateway, for socket mode and for the Events API, and decides when one may be acknowledged. Deliveries of
// one conversation are processed in order.
import { setTimeout as delay } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { ChannelHost } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { skipUnstorable, store, type Parsed } from "../parsed.ts";
import { showResult } from "./actions.ts";
import type { Call, Me } from "./api.ts";
import { parseAction, parseCommand, parseEvent, type ParseContext } from "./parse.ts";
import type { People } from "./people.ts";
import { BlockActions, EventCallback, SlashCommand } from "./schema.ts";
import { mentionedIds } from "./text.ts";

export interface SlackApp {
  account: string;
  replyInThread: boolean;
  call: Call;
  people: People;
  /** The app's identity, looked up once. */
  identify: (signal: AbortSignal) => Promise<Answer<Me>>;
}

/** Slack waits 3 s for an acknowledgement and then delivers again: retries keep the order of a conversation until then. */
const retryForMs = 2_000;
const retryPauseMs = 200;
const identifyTimeoutMs = 2_500;
/** Interactions that were processed: Slack may deliver one again, and a command must not run twice. */
const maxRemembered = 10_000;
const rememberedMs = 10 * 60_000;

/** Slack did not answer who the app is, so its own messages cannot be told from others. */
class UnidentifiedError extends Error {
  override readonly name = "UnidentifiedError";
}

export class Intake {
  readonly #app: SlackApp;
  readonly #host: ChannelHost;
  readonly #tails = new Map<string, Promise<void>>();
  readonly #processed = new LRUCache<string, true>({ max: maxRemembered, ttl: rememberedMs });

  constructor(app: SlackApp, host: ChannelHost) {
    this.#app = app;
    this.#host = host;
  }

  /** Resolves when the delivery may be acknowledged: it was stored or is ignored. Rejects when Slack must deliver it again. */
  async take(type: string, payload: unknown): Promise<void> {
    if (type === "events_api") return this.#event(payload);
    if (type === "interactive") return this.#action(payload);
    if (type === "slash_commands") return this.#command(payload);
    return this.#skip(`unsupported delivery: ${type.slice(0, 50)}`);
  }

  async #event(payload: unknown): Promise<void> {
    const parsed = EventCallback.safeParse(payload);
    if (!parsed.success) return this.#skip("invalid event");
    const { event, event_id: eventId } = parsed.data;
    const { channel, user, text } = event;
    return this.#inOrder(typeof channel === "string" ? channel : "", async () => {
      const ids = typeof text === "string" ? mentionedIds(text) : [];
      const context = await this.#context(typeof user === "string" ? [user, ...ids] : ids);
      await this.#deliver(parseEvent(event, eventId, context), eventId);
    });
  }

  async #action(payload: unknown): Promise<void> {
    const parsed = BlockActions.safeParse(payload);
    if (!parsed.success) return this.#skip("invalid or unsupported interaction");
    const press = parsed.data;
    return this.#inOrder(press.channel.id, async () => {
      if (this.#processed.has(press.trigger_id)) return;
      const action = parseAction(press, await this.#context([press.user.id]));
      const result = await this.#host.act(action);
      this.#processed.set(press.trigger_id, true);
      // Best effort, after the acknowledgement: the decision is stored.
      void showResult(this.#app.call, press, action.contact, result);
    });
  }

  async #command(payload: unknown): Promise<void> {
    const parsed = SlashCommand.safeParse(payload);
    if (!parsed.success) return this.#skip("invalid command");
    const given = parsed.data;
    return this.#inOrder(given.channel_id, async () => {
      if (this.#processed.has(given.trigger_id)) return;
      const names = new Set(this.#host.commands.map(({ name }) => name));
      const draft = parseCommand(given, names, await this.#context([given.user_id]));
      await this.#deliver({ kind: "message", draft }, given.trigger_id);
      this.#processed.set(given.trigger_id, true);
    });
  }

  async #deliver(parsed: Parsed, id: string): Promise<void> {
    if (parsed.kind === "skipped") return this.#skip(parsed.reason, id);
    const untilMs = performance.now() + retryForMs;
    for (;;) {
      try {
        await skipUnstorable(this.#host.log, { eventId: id }, async () => store(this.#host, parsed));
        return;
      } catch (error) {
        if (performance.now() >= untilMs) throw error;
        await delay(retryPauseMs);
      }
    }
  }

  async #context(ids: readonly string[]): Promise<ParseContext> {
    const { account, replyInThread, people, identify } = this.#app;
    const [me] = await Promise.all([identify(AbortSignal.timeout(identifyTimeoutMs)), people.load(ids)]);
    if (me.kind !== "ok") {
      throw new UnidentifiedError(`auth.test failed: ${me.reason}`);
    }
    return { account, replyInThread, me: me.result, nameOf: people.nameOf };
  }

  /** Runs the work after all earlier work with the same key. */
  async #inOrder(key: string, work: () => Promise<void>): Promise<void> {
    const mine = (this.#tails.get(key) ?? Promise.resolve()).then(work);
    const tail = mine.catch(() => undefined);
    this.#tails.set(key, tail);
    try {
      await mine;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }

  #skip(reason: string, eventId?: string): void {
    this.#host.log.info({ eventId, reason }, "event skipped");
  }
}
