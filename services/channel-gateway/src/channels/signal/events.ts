// The event stream of a signal-cli daemon (Server-Sent Events). Events are handled one at a time: while one is being stored, the stream is
// not read, and the daemon then receives no further messages from Signal.
import { createParser } from "eventsource-parser";
import { AccountRejectedError } from "../channel.ts";
import { requestFailure } from "../transport.ts";
import { endpoint } from "./rpc.ts";

/** The daemon sends a comment every 15 s; when three are missing, the connection is considered lost. */
const defaultSilenceMs = 45_000;
/** Longer than the largest envelope: a text of 64 KiB with its mentions, previews and quotes. */
const maxEventChars = 4 * 1024 * 1024;

export interface DaemonEvent {
  /** The position in the daemon's buffer; undefined for daemons that do not number events. */
  id: string | undefined;
  data: string;
}

export interface EventStreamOptions {
  daemonUrl: string;
  number: string;
  /** Sent as `Last-Event-ID`: a daemon that numbers events sends the later ones again. */
  lastEventId: string | undefined;
  signal: AbortSignal;
  silenceMs?: number | undefined;
}

class EventStreamError extends Error {
  override readonly name = "EventStreamError";
}

/**
 * Reads events until the stream ends or `signal` aborts, then resolves. Rejects with an EventStreamError when the connection
 * fails or receives nothing for `silenceMs`, with AccountRejectedError when the daemon does not have the number, and with the error of `onOpen` or `onEvent`.
 */
export async function readEvents(
  { daemonUrl, number, lastEventId, signal, silenceMs = defaultSilenceMs }: EventStreamOptions,
  onOpen: () => Promise<void>,
  onEvent: (event: DaemonEvent) => Promise<void>,
): Promise<void> {
  const silence = new AbortController();
  const ended = AbortSignal.any([signal, silence.signal]);
  let timer: NodeJS.Timeout | undefined;
  const restartSilenceTimer = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), silenceMs);
  };
  const connect = async (): Promise<AsyncIterable<Uint8Array>> => {
    const response = await fetch(`${endpoint(daemonUrl, "events")}?account=${encodeURIComponent(number)}`, {
      headers: { accept: "text/event-stream", ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }) },
      redirect: "error",
      signal: ended,
    });
    if (response.status === 200 && response.body !== null) return response.body;
    await response.body?.cancel();
    if (response.status === 400) throw new AccountRejectedError(`the daemon has no account ${number}`);
    throw new EventStreamError(`HTTP ${response.status} for the event stream`);
  };
  try {
    restartSilenceTimer();
    const body = await connect().catch((error: unknown) => throwStreamError(error, ended));
    clearTimeout(timer);
    await onOpen();
    restartSilenceTimer();
    const bytes = body[Symbol.asyncIterator]();
    try {
      for await (const events of parseEvents(bytes, ended)) {
        clearTimeout(timer);
        for (const event of events) {
          if (signal.aborted) return;
          await onEvent(event);
        }
        restartSilenceTimer();
      }
    } finally {
      await bytes.return?.().catch(() => undefined);
    }
  } catch (error) {
    if (signal.aborted) return;
    if (silence.signal.aborted) throw new EventStreamError(`nothing received for ${silenceMs / 1_000} s`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Yields the events of each chunk, an empty list for a chunk that completes none. */
async function* parseEvents(bytes: AsyncIterator<Uint8Array>, ended: AbortSignal): AsyncGenerator<DaemonEvent[]> {
  const events: DaemonEvent[] = [];
  const parser = createParser({ onEvent: ({ id, data }) => events.push({ id, data }) });
  const decoder = new TextDecoder();
  let unfinishedChars = 0;
  for (;;) {
    const next = await bytes.next().catch((error: unknown) => throwStreamError(error, ended));
    if (next.done === true) return;
    const text = decoder.decode(next.value, { stream: true });
    parser.feed(text);
    unfinishedChars = events.length > 0 ? 0 : unfinishedChars + text.length;
    if (unfinishedChars > maxEventChars) throw new EventStreamError("an event is too large");
    yield events.splice(0);
  }
}

function throwStreamError(error: unknown, ended: AbortSignal): never {
  if (error instanceof AccountRejectedError || error instanceof EventStreamError) throw error;
  throw new EventStreamError(requestFailure(error, ended).reason);
}
