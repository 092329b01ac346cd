// Parses server-sent events from bytes, independent of how they are split; pure. Comments are skipped. An `error:`
// field, which older llama.cpp servers send in place of an event, is parsed as an event of that name.

export interface SseEvent {
  /** Empty when the server sends none. */
  name: string;
  data: string;
}

export class SseParser {
  readonly #decoder = new TextDecoder();
  /** The start of an incomplete line. */
  #rest = "";
  #name = "";
  #data: string[] = [];

  /** The events that these bytes complete. */
  push(bytes: Uint8Array): SseEvent[] {
    return this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  /** The rest after the end of the stream: an event without its blank line, possibly incomplete. */
  end(): SseEvent[] {
    return this.#read(`${this.#decoder.decode()}\n\n`);
  }

  #read(text: string): SseEvent[] {
    // A `\r` at the very end may be half of a `\r\n`.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#readLine(line));
  }

  #readLine(line: string): SseEvent[] {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    if (field === "error") this.#name = "error";
    if (field === "data" || field === "error") this.#data.push(value);
    return [];
  }

  #dispatch(): SseEvent[] {
    const event = { name: this.#name, data: this.#data.join("\n") };
    const empty = this.#data.length === 0;
    this.#name = "";
    this.#data = [];
    return empty ? [] : [event];
  }
}
