// One watcher of one session: first what it has missed, from the store, then the shared stream; no gap, nothing twice.
import type { Bus } from "@parley/bus";
import { EventFrame } from "./event-frame.ts";
import { readEvents, type SessionStreams } from "./session-stream.ts";

export interface FollowDeps {
  bus: Pick<Bus, "request">;
  streams: SessionStreams;
}

/** Events that may wait while a watcher is still being told what it missed. */
const maxWaiting = 2_000;

export interface Watcher {
  /** Comes first: what is up to `from` the watcher has seen, or did not ask for. */
  begin(from: number): void;
  /** Every durable event once and in order, live events in between. */
  send(frame: EventFrame): void;
  /** What was missed cannot be read: the watcher has to come again. Nothing comes afterwards. */
  fail(error: unknown): void;
}

export interface Following {
  close(): void;
}

/** Follows a session after `after` (undefined: from now on). Rejects when there is no such session or the store is away. */
export async function follow(
  deps: FollowDeps,
  sessionId: string,
  after: number | undefined,
  watcher: Watcher,
): Promise<Following> {
  const { stream, leave } = await deps.streams.join(sessionId);
  const target = stream.position;
  let last = Math.min(after ?? target, target);
  let waiting: EventFrame[] | undefined = [];
  let closed = false;

  const pass = (frame: EventFrame) => {
    if (frame.seq !== undefined) {
      if (frame.seq <= last) return;
      last = frame.seq;
    }
    watcher.send(frame);
  };
  const listening = stream.listen((frame) => {
    if (waiting === undefined) pass(frame);
    else if (waiting.length < maxWaiting) waiting.push(frame);
    else fail(new Error("too much happened while the watcher was told what it had missed"));
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
        pass(new EventFrame(sessionId, event));
        if (last >= target) break;
      }
      if (!closed) release();
    })().catch(fail);
  }
  return { close };
}
