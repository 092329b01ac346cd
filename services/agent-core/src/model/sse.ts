// Reads the response of a server of one of OpenAI's formats: server-sent events, or one JSON object from servers that do not stream.
import { parseJson } from "@parley/kit";
import { createParser } from "eventsource-parser";
import { errorIn, rejectedRequest } from "./openai/errors.ts";
import { ModelError, type ModelDelta } from "./provider.ts";

export interface SseEvent {
  /** Empty when the server sends none. */
  name: string;
  data: string;
}

/** What collects a reply from events. */
export interface EventSink {
  /** The stream is finished. */
  done: boolean;
  /** Throws ModelError when the event is an error or invalid. */
  add(event: SseEvent): ModelDelta[];
}

/** How long to wait for the end of a complete stream, so that its connection can be reused. */
const lingerMs = 1_000;

/** Parses server-sent events from bytes, independent of how they are split. */
export class SseParser {
  readonly #decoder = new TextDecoder();
  #events: SseEvent[] = [];
  readonly #parser = createParser({
    onEvent: ({ event = "", data }) => this.#events.push({ name: event, data }),
    // Older llama.cpp servers send an `error:` field in place of an event.
    onError: ({ field, value = "" }) => {
      if (field === "error") this.#events.push({ name: "error", data: value });
    },
  });

  /** The events that these bytes complete. */
  push(bytes: Uint8Array): SseEvent[] {
    return this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  /** The rest after the end of the stream: an event without its blank line, possibly incomplete. */
  end(): SseEvent[] {
    return this.#read(`${this.#decoder.decode()}\n\n`);
  }

  #read(text: string): SseEvent[] {
    this.#events = [];
    this.#parser.feed(text);
    return this.#events;
  }
}

/** Reads the whole response into the builder. */
export async function receive(
  response: Response,
  builder: EventSink,
  on: { delta(delta: ModelDelta): void; alive(): void },
  addressSetting: string,
): Promise<void> {
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || type.includes("text/html")) {
    await response.body?.cancel();
    throw new ModelError("invalid", `the address in ${addressSetting} is not a model server (is /v1 missing?)`);
  }
  if (type.includes("application/json")) return receiveWhole(response, builder, on, addressSetting);
  const parser = new SseParser();
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (!done) on.alive();
      for (const event of done ? parser.end() : parser.push(value)) {
        for (const delta of builder.add(event)) on.delta(delta);
      }
      if (done || builder.done) return;
    }
  } finally {
    void releaseReader(reader, builder.done);
  }
}

/** Handles servers that do not stream, or that return an error with a success status. */
async function receiveWhole(
  response: Response,
  builder: EventSink,
  on: { delta(delta: ModelDelta): void; alive(): void },
  addressSetting: string,
): Promise<void> {
  const body = await response.text();
  on.alive();
  const data = parseJson(body);
  if (data === undefined) throw new ModelError("connection", "the model's answer was cut off");
  if (errorIn(data) !== undefined) throw rejectedRequest(response, body, addressSetting);
  for (const delta of builder.add({ name: "", data: body })) on.delta(delta);
  builder.done = true;
}

/** Reading a stream to its end makes its connection reusable; after the last event that may take only briefly. */
async function releaseReader(reader: ReadableStreamDefaultReader<Uint8Array>, finished: boolean): Promise<void> {
  // If cancelling fails, the stream is closed already.
  const cancel = () => void reader.cancel().catch(() => undefined);
  if (!finished) {
    cancel();
    return;
  }
  const timer = setTimeout(cancel, lingerMs).unref();
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is complete; the connection was lost.
  } finally {
    clearTimeout(timer);
  }
}
