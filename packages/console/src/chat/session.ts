// One open session: its state from the events, the messages that wait, and what the person can do with it.
import { batch, signal, type Signal } from "@preact/signals";
import type { Attachment, Message, QueueMode } from "@parley/contracts";
import { ApiError, call, messageOf, request, type Result } from "../api/http.ts";
import { live } from "../api/socket.ts";
import { recentChanged } from "./recent-state.ts";
import { prepend, reduce } from "./reduce.ts";
import { deltasOf } from "./stream.ts";
import { emptyChat, type ChatState } from "./state.ts";

/** A message of this page that is not in the session's log yet. */
export interface Outgoing {
  /** The idempotency key: a repeated request is the same message. */
  key: string;
  text: string;
  files: readonly Attachment[];
  state: "sending" | "queued" | "failed";
  problem?: string;
}

type Summary = Result<"sessionsGet">["session"];
type Children = Result<"sessionsList">;
export type Queued = Result<"queueList">["rows"][number];

/** How many events are read when a session is opened, and messages when the person scrolls back. */
const firstEvents = 300;
const olderMessages = 200;
const retryMs = 1_000;
const maxSendAttempts = 30;
/** How often the sub-agents are read while one of them works. */
const childrenMs = 2_000;

export class OpenSession {
  readonly id: string;
  readonly chat: Signal<ChatState> = signal(emptyChat);
  readonly summary = signal<Summary | undefined>(undefined);
  readonly outgoing = signal<readonly Outgoing[]>([]);
  readonly queue = signal<readonly Queued[]>([]);
  readonly problem = signal<Error | undefined>(undefined);
  readonly hasOlder = signal(false);
  /** The sub-agents, and the calls that gave them their tasks. */
  readonly children = signal<Children>({ sessions: [] });
  /** Answers of slash commands, in the order they were given. */
  readonly answers = signal<readonly { key: string; command: string; text: string }[]>([]);
  #leave: (() => void) | undefined;
  #closed = false;
  #firstSeq = 0;
  #pendingEvents: Parameters<typeof reduce>[1][] = [];
  #frame = 0;
  #catchingUp = false;
  #older: Promise<void> | undefined;
  #childrenTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Reads the session and follows it. */
  async open(): Promise<void> {
    try {
      const { session } = await this.#load();
      if (this.#closed) return;
      this.#firstSeq = Math.max(0, session.seq - firstEvents);
      batch(() => {
        this.problem.value = undefined;
        this.chat.value = { ...emptyChat, seq: this.#firstSeq };
        this.hasOlder.value = this.#firstSeq > 0;
      });
      this.#leave = live.follow(this.id, {
        seq: () => this.chat.value.seq,
        event: (event) => this.#receive(event),
        resumed: () => {
          this.#flush();
          void this.#catchUp();
        },
      });
      void this.#catchUp();
      void this.#refreshChildren();
      await this.refreshQueue();
    } catch (error) {
      this.problem.value = error instanceof Error ? error : new Error(messageOf(error));
    }
  }

  close(): void {
    this.#closed = true;
    this.#leave?.();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#childrenTimer);
  }

  /** Sends a message, or repeats one that failed. A command is answered immediately. */
  async send(
    text: string,
    files: readonly Attachment[],
    mode?: QueueMode,
    key: string = crypto.randomUUID(),
  ): Promise<void> {
    const message: Outgoing = { key, text, files, state: "sending" };
    this.outgoing.value = [...this.outgoing.value.filter((each) => each.key !== key), message];
    const body = {
      session: this.id,
      text,
      ...(files.length === 0 ? {} : { attachments: files.map(({ sha256: id, name }) => ({ id, name })) }),
      ...(mode === undefined ? {} : { mode }),
    };
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = (await request("POST", "/api/messages", { body, key })) as { command?: string; text?: string };
        if (answer.command === undefined) this.#change(key, { state: "queued" });
        else {
          this.#drop(key);
          const { command, text: answered = "" } = answer;
          this.answers.value = [...this.answers.value, { key, command, text: answered }];
        }
        void this.refreshQueue();
        recentChanged();
        return;
      } catch (error) {
        if (error instanceof ApiError && error.isTransient && attempt < maxSendAttempts && !this.#closed) {
          await new Promise((resolve) => setTimeout(resolve, retryMs));
          continue;
        }
        this.#change(key, { state: "failed", problem: messageOf(error) });
        return;
      }
    }
  }

  /** Takes back a message that failed to be sent. */
  discard(key: string): void {
    this.#drop(key);
  }

  async stop(): Promise<void> {
    await call<"sessionsCancel">("POST", `/api/sessions/${this.id}/cancel`, { body: {} });
  }

  async refreshQueue(): Promise<void> {
    try {
      const { rows } = await call<"queueList">("GET", `/api/sessions/${this.id}/queue`);
      this.queue.value = rows;
    } catch {
      // The next event refreshes it.
    }
  }

  /** Reads the sub-agents, and again while one of them works. */
  async #refreshChildren(): Promise<void> {
    clearTimeout(this.#childrenTimer);
    try {
      const query = { parent: this.id, subagents: true, limit: 200 };
      this.children.value = await call<"sessionsList">("GET", "/api/sessions", { query });
    } catch {
      // The next event of a sub-agent refreshes them.
    }
    const isWorking = this.children.value.sessions.some(
      ({ runningTurnId, queued }) => runningTurnId !== null || queued > 0,
    );
    if (isWorking && !this.#closed) this.#childrenTimer = setTimeout(() => void this.#refreshChildren(), childrenMs);
  }

  async #load(): Promise<{ session: Summary }> {
    const found = await call<"sessionsGet">("GET", `/api/sessions/${this.id}`);
    this.summary.value = found.session;
    return found;
  }

  async refresh(): Promise<void> {
    await this.#load().catch(() => undefined);
  }

  /** Reads the messages before the first one; one reading at a time. */
  readOlder(): Promise<void> {
    this.#older ??= this.#readOlder().finally(() => (this.#older = undefined));
    return this.#older;
  }

  async #readOlder(): Promise<void> {
    const before = this.#firstSeq;
    if (before === 0) return;
    const first = Math.max(0, before - olderMessages);
    let after = first;
    const older: Message[] = [];
    for (;;) {
      const query = { after, limit: olderMessages };
      const page = await call<"sessionsMessages">("GET", `/api/sessions/${this.id}/messages`, { query });
      older.push(...page.messages.filter(({ seq }) => seq <= before));
      const last = page.messages.at(-1)?.seq ?? before;
      if (!page.more || last >= before) break;
      after = last;
    }
    this.#firstSeq = first;
    this.#flush();
    batch(() => {
      this.chat.value = prepend(this.chat.value, older);
      this.hasOlder.value = first > 0;
    });
  }

  /** Events are folded once a frame, so that a fast stream does not render more often than the screen shows. */
  #receive(event: Parameters<typeof reduce>[1]): void {
    this.#pendingEvents.push(event);
    if (document.visibilityState === "hidden" || this.#pendingEvents.length > 500) this.#flush();
    else if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const events = this.#pendingEvents;
    if (events.length === 0) return;
    this.#pendingEvents = [];
    const nowMs = Date.now();
    const before = this.chat.value;
    const after = events.reduce((state, event) => reduce(state, event, nowMs), before);
    batch(() => {
      this.chat.value = after;
      for (const item of after.items.slice(before.items.length)) if (item.kind === "user") this.#arrived(item.text);
    });
    if (after.live?.hasGap === true) void this.#catchUp();
    if (events.some(({ type }) => type === "turn.started" || type === "turn.finished" || type === "message")) {
      void this.refreshQueue();
    }
    if (events.some(({ type }) => type === "subagent.started")) void this.#refreshChildren();
    if (events.some(({ type }) => type === "turn.finished" || type === "turn.started")) {
      void this.refresh();
      recentChanged();
    }
  }

  /** Reads what the running model call has written before this page followed it. */
  async #catchUp(): Promise<void> {
    if (this.#catchingUp || this.#closed) return;
    this.#catchingUp = true;
    try {
      const { call: written } = await call<"sessionsStreaming">("GET", `/api/sessions/${this.id}/streaming`);
      for (const delta of written === null ? [] : deltasOf(written)) this.#receive(delta);
    } catch {
      // The committed message has the whole.
    } finally {
      this.#catchingUp = false;
    }
  }

  /** A message of this page is in the log now. */
  #arrived(text: string): void {
    const found = this.outgoing.value.find((each) => each.state !== "failed" && text.includes(each.text));
    if (found !== undefined) this.#drop(found.key);
  }

  #change(key: string, change: Partial<Outgoing>): void {
    this.outgoing.value = this.outgoing.value.map((each) => (each.key === key ? { ...each, ...change } : each));
  }

  #drop(key: string): void {
    this.outgoing.value = this.outgoing.value.filter((each) => each.key !== key);
  }
}
