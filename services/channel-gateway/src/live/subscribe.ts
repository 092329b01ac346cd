// One watcher of one session: first the missed events from the store, then the shared stream, without gaps or duplicates.
import type { Bus } from "@parley/bus";
import { EncodedEvent } from "./encoded-event.ts";
import { readEvents, type SessionStreams } from "./session-stream.ts";

export interface SubscribeDeps {
  bus: Pick<Bus, "request">;
  streams: SessionStreams;
}

/** Events that may be buffered while a watcher receives the missed ones. */
const maxWaiting = 2_000;

export interface Subscriber {
  /** Called first; the watcher has seen, or did not request, the events up to `from`. */
  begin(from: number): void;
  /** Every durable event once and in order, live events in between. */
  send(frame: EncodedEvent): void;
  /** The missed events cannot be read; the watcher has to reconnect. No calls follow. */
  fail(error: unknown): void;
}

export interface Subscription {
  close(): void;
}

/** Follows a session after `after` (undefined: from now on). Rejects when the session does not exist or the store is unavailable. */
export async function subscribe(
  deps: SubscribeDeps,
  sessionId: string,
  after: number | undefined,
  watcher: Subscriber,
): Promise<Subscription> {
  const { stream, leave } = await deps.streams.join(sessionId, after === 0);
  const target = stream.position;
  let last = Math.min(after ?? target, target);
  let waiting: EncodedEvent[] | undefined = [];
  let closed = false;

  const pass = (frame: EncodedEvent) => {
    if (frame.seq !== undefined) {
      if (frame.seq <= last) return;
      last = frame.seq;
    }
    watcher.send(frame);
  };
  const listening = stream.listen((frame) => {
    if (waiting === undefined) pass(frame);
    else if (waiting.length < maxWaiting) waiting.push(frame);
    else fail(new Error("too many new events while the watcher received the missed ones"));
  });
  const close = () => {
    closed = true;
    listening.close();
    leave();
  };
  const fail = (error: unknown) => {
    if (closed) return;
    close();
    watcher.fail(error);
  };
  const release = () => {
    const late = waiting ?? [];
    waiting = undefined;
    for (const frame of late) pass(frame);
  };

  watcher.begin(last);
  if (last === target) release();
  else {
    void (async () => {
      for await (const event of readEvents(deps.bus, sessionId, last)) {
        if (closed) return;
        pass(new EncodedEvent(sessionId, event));
        if (last >= target) break;
      }
      if (!closed) release();
    })().catch(fail);
  }
  return { close };
}
