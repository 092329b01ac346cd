// Follows all sessions but one, for a stream client that shows every conversation. A session is joined with its first event and left
// when it has been quiet, so that only active sessions cost a subscription. Sub-agents are shown by the session that started them.
import type { Bus } from "@parley/bus";
import { sessionEvent } from "@parley/contracts";
import { StreamFrames, type StreamFrame } from "@parley/projections";
import { LRUCache } from "lru-cache";
import type { SessionDirectory } from "../../live/session-directory.ts";
import { subscribe, type SubscribeDeps, type Subscription } from "../../live/subscribe.ts";

export interface OtherSessionsDeps extends SubscribeDeps {
  bus: Bus;
  sessions: Pick<SessionDirectory, "find">;
}

export interface OtherSessionsWatcher {
  /** Whether the client follows the session anyway. `key`: omitted while it is not known. */
  isOwn(session: { sessionId: string; key?: string }): boolean;
  /** Live events are omitted while true. */
  isSlow(): boolean;
  /** `session`: the key of the session that the frame is about. */
  send(frame: StreamFrame, session: { key: string; sessionId: string }): void;
  /** A session cannot be followed: the client has to reconnect. */
  fail(error: unknown): void;
}

/** A session is left when it had no event for this long. */
const quietMs = 60_000;
/** Sessions whose last position is remembered, so that nothing is sent twice when they are joined again. */
const maxRemembered = 10_000;

interface Joined {
  /** The newest durable event that was announced. */
  announcedSeq: number;
  activeAtMs: number;
  following: Subscription | undefined;
}

export class OtherSessions {
  readonly #deps: OtherSessionsDeps;
  readonly #watcher: OtherSessionsWatcher;
  readonly #joined = new Map<string, Joined>();
  /** The newest durable event that was sent, by session; infinite for those that are never sent. */
  readonly #sentSeq = new LRUCache<string, number>({ max: maxRemembered });
  readonly #announcements: { close(): void };
  readonly #sweep: NodeJS.Timeout;
  #closed = false;

  constructor(deps: OtherSessionsDeps, watcher: OtherSessionsWatcher) {
    this.#deps = deps;
    this.#watcher = watcher;
    this.#announcements = deps.bus.subscribe(sessionEvent, {}, (event, { session = "" }) => {
      if ("seq" in event) this.#announce(session, event.seq);
    });
    this.#sweep = setInterval(() => this.#closeIdle(performance.now()), quietMs);
    this.#sweep.unref();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweep);
    this.#announcements.close();
    for (const { following } of this.#joined.values()) following?.close();
    this.#joined.clear();
  }

  #announce(sessionId: string, seq: number): void {
    const joined = this.#joined.get(sessionId);
    if (joined !== undefined) {
      joined.announcedSeq = Math.max(joined.announcedSeq, seq);
      return;
    }
    const sentSeq = this.#sentSeq.get(sessionId) ?? seq - 1;
    if (seq <= sentSeq || this.#watcher.isOwn({ sessionId })) return;
    const each: Joined = { announcedSeq: seq, activeAtMs: performance.now(), following: undefined };
    this.#joined.set(sessionId, each);
    this.#join(sessionId, each, sentSeq).catch((error: unknown) => {
      if (!this.#closed) this.#watcher.fail(error);
    });
  }

  async #join(sessionId: string, joined: Joined, after: number): Promise<void> {
    const session = await this.#deps.sessions.find(sessionId);
    if (session === null || session.parentId !== null || this.#watcher.isOwn(session)) {
      this.#sentSeq.set(sessionId, Infinity);
      this.#joined.delete(sessionId);
      return;
    }
    const view = new StreamFrames();
    const following = await subscribe(this.#deps, sessionId, after, {
      begin: () => undefined,
      send: ({ event, seq }) => {
        if (this.#closed) return;
        joined.activeAtMs = performance.now();
        if (seq !== undefined) this.#sentSeq.set(sessionId, seq);
        else if (this.#watcher.isSlow()) return;
        // The client began to follow it as its own conversation.
        if (this.#watcher.isOwn({ sessionId })) return;
        for (const frame of view.event(event)) this.#watcher.send(frame, session);
      },
      fail: (error) => this.#watcher.fail(error),
    });
    if (this.#closed) following.close();
    else joined.following = following;
  }

  #closeIdle(nowMs: number): void {
    for (const [sessionId, { announcedSeq, activeAtMs, following }] of this.#joined) {
      const hasAll = (this.#sentSeq.get(sessionId) ?? 0) >= announcedSeq;
      if (following === undefined || !hasAll || nowMs - activeAtMs < quietMs) continue;
      following.close();
      this.#joined.delete(sessionId);
    }
  }
}
