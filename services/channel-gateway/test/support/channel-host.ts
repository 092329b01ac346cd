// A minimal ChannelHost for adapter tests: it records accepted messages and the cursor, can refuse messages and can lose its lease.
import { WireError } from "@parley/contracts";
import { untilValue } from "@parley/testing";
import type {
  AcceptResult,
  ActionResult,
  ChannelHost,
  InboundAction,
  InboundChange,
  InboundDraft,
  LeaseRef,
  Position,
} from "../../src/channels/channel.ts";

export class TestHost implements ChannelHost {
  readonly accepted: InboundDraft[] = [];
  readonly logged: { level: string; fields: object; message: string }[] = [];
  cursor: string | null = null;
  /** The number of calls of `accept`, including refused ones. */
  attempts = 0;
  readonly log = {
    info: (fields: object, message: string): void => this.#note("info", fields, message),
    warn: (fields: object, message: string): void => this.#note("warn", fields, message),
    error: (fields: object, message: string): void => this.#note("error", fields, message),
  };
  readonly reported: Parameters<ChannelHost["report"]>[0][] = [];
  readonly #seen = new Set<string>();
  readonly #refusals: Error[] = [];
  readonly #watchers = new Set<() => void>();

  async accept(draft: InboundDraft, position?: { lease: LeaseRef; cursor: string }): Promise<AcceptResult> {
    this.attempts += 1;
    const refusal = this.#refusals.shift();
    if (refusal !== undefined) {
      this.#changed();
      throw refusal;
    }
    if (position?.lease.signal.aborted === true) throw new WireError("FENCED", "the lease is lost");
    if (position !== undefined) this.cursor = position.cursor;
    const known = this.#seen.has(draft.externalId);
    this.#seen.add(draft.externalId);
    if (!known) this.accepted.push(draft);
    this.#changed();
    return known ? "duplicate" : "stored";
  }

  readonly acted: InboundAction[] = [];
  /** What a press of a button results in. */
  actionResult: ActionResult = { text: "Allowed.", done: true };
  /** What `pauseMs` returns. */
  pausedForMs = 0;
  readonly commands = [{ name: "/help", summary: "list the commands" }];

  async act(action: InboundAction, position?: Position): Promise<ActionResult> {
    this.acted.push(action);
    if (position !== undefined) this.cursor = position.cursor;
    this.#changed();
    return this.actionResult;
  }

  pauseMs(): number {
    return this.pausedForMs;
  }

  readonly changed: InboundChange[] = [];

  async change(change: InboundChange, position?: Position): Promise<void> {
    this.changed.push(change);
    if (position !== undefined) this.cursor = position.cursor;
    this.#changed();
  }

  async checkpoint({ cursor }: Position): Promise<void> {
    this.cursor = cursor;
    this.#changed();
  }

  report(state: Parameters<ChannelHost["report"]>[0]): void {
    this.reported.push(state);
    this.#changed();
  }

  /** Makes the next call of `accept` fail. */
  refuseNext(error: Error = new WireError("UNAVAILABLE", "the store is away")): void {
    this.#refusals.push(error);
  }

  lease(name = "test"): { lease: LeaseRef; lose: () => void } {
    const held = new AbortController();
    return { lease: { name, fence: 1, cursor: this.cursor, signal: held.signal }, lose: () => held.abort() };
  }

  get texts(): string[] {
    return this.accepted.map((draft) => draft.text);
  }

  /** All log lines as one text. */
  get logText(): string {
    return JSON.stringify(this.logged);
  }

  async untilAccepted(count: number): Promise<InboundDraft[]> {
    return this.until(`${count} messages`, () => (this.accepted.length >= count ? this.accepted : null));
  }

  async untilLogged(pattern: RegExp): Promise<void> {
    await this.until(`a log line ${pattern}`, () => (pattern.test(this.logText) ? true : null));
  }

  until<Value>(what: string, done: () => Value | null): Promise<Value> {
    const watch = (check: () => void) => {
      this.#watchers.add(check);
      return () => this.#watchers.delete(check);
    };
    return untilValue(done, watch, () => `${what}; log: ${this.logText}`);
  }

  #note(level: string, fields: object, message: string): void {
    this.logged.push({ level, fields, message });
    this.#changed();
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
  }
}
