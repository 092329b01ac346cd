// Requests to the messages API. The SDK provides the address, the headers and the errors. The request does not pass through it: its copies
// of the body and its streams are a large part of the processor time of a turn (docs/performance.md).
import type Anthropic from "@anthropic-ai/sdk";
import { APIConnectionError, APIError } from "@anthropic-ai/sdk";
import { currentValue, type Secret } from "@parley/chassis";
import { parseJson } from "@parley/kit";
import { httpFetch } from "../http-fetch.ts";
import { ModelError } from "../provider.ts";
import { SseParser, type SseEvent } from "../sse.ts";

type StreamEvent = Anthropic.Beta.BetaRawMessageStreamEvent;

interface Target {
  url: string;
  headers: Record<string, string>;
}

export class MessagesEndpoint {
  readonly #client: Anthropic;
  readonly #apiKey: Secret;
  /** Of the last request; it depends only on the key and the betas. */
  #target: { of: string; target: Target } | undefined;

  constructor(client: Anthropic, apiKey: Secret) {
    this.#client = client;
    this.#apiKey = apiKey;
  }

  /**
   * Sends a request with this JSON text and returns the events of its reply, as many at once as arrive together. Throws APIError if the API
   * refuses it or reports an error in the stream, APIConnectionError if it cannot be reached, and ModelError if an event is cut off.
   */
  async open(body: string, betas: readonly string[], signal: AbortSignal): Promise<AsyncIterable<StreamEvent[]>> {
    const { url, headers } = await this.#targetFor(betas);
    const response = await httpFetch(url, { method: "POST", headers, body, signal }).catch((cause: unknown) => {
      throw new APIConnectionError({ cause: cause as Error });
    });
    if (response.ok) return eventsOf(response);
    const text = await response.text();
    const refusal = parseJson(text) as object | undefined;
    throw APIError.generate(response.status, refusal, refusal === undefined ? text : undefined, response.headers);
  }

  async #targetFor(betas: readonly string[]): Promise<Target> {
    const of = JSON.stringify([currentValue(this.#apiKey), betas]);
    if (this.#target?.of === of) return this.#target.target;
    const { url, req } = await this.#client.buildRequest({
      method: "post",
      path: "/v1/messages",
      body: {},
      headers: betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") },
    });
    const target = { url, headers: Object.fromEntries(req.headers) };
    this.#target = { of, target };
    return target;
  }
}

async function* eventsOf(response: Response): AsyncGenerator<StreamEvent[]> {
  const parser = new SseParser();
  if (response.body === null) return;
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) yield read(parser.push(bytes), response);
  yield read(parser.end(), response);
}

function read(events: readonly SseEvent[], response: Response): StreamEvent[] {
  return events.flatMap(({ name, data }) => {
    if (name === "error") {
      const body = parseJson(data) as { error?: { type?: Anthropic.ErrorType } } | undefined;
      throw new APIError(undefined, body ?? {}, undefined, response.headers, body?.error?.type);
    }
    if (name === "" || name === "ping" || data === "") return [];
    const event = parseJson(data);
    if (event === undefined) throw new ModelError("connection", "the model's stream ended inside an event");
    return [event as StreamEvent];
  });
}
