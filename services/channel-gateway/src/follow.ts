// One watcher of one session: first what it has missed, from the store, then the shared stream; no gap, nothing twice.
import type { Bus } from "@parley/bus";
import { EventFrame } from "./event-frame.ts";
import { readEvents, type SessionStreams } from "./session-stream.ts";

export interface FollowDeps {
  bus: Bus;
  streams: SessionStreams;
}

/** Events that may wait while a watcher is still being told what it missed. */
const maxWaiting = 2_000;

export interface Following {
  /** Where the watcher began: it has seen or was not interested in what is before. */
  readonly from: number;
  close(): void;
}

/**
 * Follows a session after `after` (undefined: from now on). `send` gets every durable event once and in order. `onFailure`
 * is told when the missed part cannot be read: the watcher has to come again.
 */
export async function follow(
  deps: FollowDeps,
  sessionId: string,
  after: number | undefined,
  send: (frame: EventFrame) => void,
  onFailure: (error: unknown) => void,
): Promise<Following> {
  const { stream, leave } = await deps.streams.join(sessionId);
  const target = stream.position;
  let last = Math.min(after ?? target, target);
  const from = last;
  let waiting: EventFrame[] | undefined = [];
  let closed = false;

  const pass = (frame: EventFrame) => {
    if (frame.seq !== undefined) {
      if (frame.seq <= last) return;
      last = frame.seq;
    }
    send(frame);
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
    onFailure(error);
  };
  const release = () => {
    const late = waiting ?? [];
    waiting = undefined;
    for (const frame of late) pass(frame);
  };

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
  return { from, close };
}
