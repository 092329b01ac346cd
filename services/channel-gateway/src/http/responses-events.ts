// The events of a streamed response in the format of OpenAI's Responses API. Pure.
import {
  isComplete,
  messageItem,
  responseObject,
  type ResponseEnd,
  type ResponseIdentity,
} from "./responses-format.ts";

/** The events of one streamed response, numbered in order, as server-sent events. */
export class ResponseEvents {
  readonly #identity: ResponseIdentity;
  #number = 0;
  #text = "";

  constructor(identity: ResponseIdentity) {
    this.#identity = identity;
  }

  begin(): string {
    const response = responseObject(this.#identity, null);
    const item = { type: "message", id: this.#itemId, status: "in_progress", role: "assistant", content: [] };
    return [
      this.#event("response.created", { response }),
      this.#event("response.in_progress", { response }),
      this.#event("response.output_item.added", { output_index: 0, item }),
      this.#event("response.content_part.added", {
        ...this.#place,
        part: { type: "output_text", text: "", annotations: [], logprobs: [] },
      }),
    ].join("");
  }

  text(delta: string): string {
    this.#text += delta;
    return this.#event("response.output_text.delta", { ...this.#place, delta, logprobs: [] });
  }

  finish(end: ResponseEnd): string {
    const shown = this.#text;
    const item = messageItem(this.#identity.inboxId, { ...end, text: shown });
    const response = responseObject(this.#identity, { ...end, text: shown });
    return [
      this.#event("response.output_text.done", { ...this.#place, text: shown, logprobs: [] }),
      this.#event("response.content_part.done", { ...this.#place, part: item.content[0] }),
      this.#event("response.output_item.done", { output_index: 0, item }),
      this.#event(isComplete(end) ? "response.completed" : "response.incomplete", { response }),
    ].join("");
  }

  fail(message: string): string {
    return this.#event("response.failed", { response: responseObject(this.#identity, { failure: message }) });
  }

  get #itemId(): string {
    return `msg_${this.#identity.inboxId}`;
  }

  get #place() {
    return { item_id: this.#itemId, output_index: 0, content_index: 0 };
  }

  #event(type: string, fields: object): string {
    const data = { type, sequence_number: this.#number++, ...fields };
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}
