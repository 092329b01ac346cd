// Converts the deltas of one turn to stream events: a message starts with the first delta of a model call attempt, and the committed
// message completes it with its tool calls and with the text whose deltas were lost. Pure.
import { positionAfter } from "./answer-text.ts";
import type { ContentBlock, SdkUsage, StreamEvent } from "./sdk-types.ts";

type Kind = "text" | "thinking";
type Block = Extract<StreamEvent, { type: "content_block_start" }>["content_block"];

const unknownUsage: SdkUsage = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
};

/** A committed model reply. */
export interface CommittedReply {
  id: string;
  model: string | null;
  content: readonly ContentBlock[];
  stop: Stop;
  usage: SdkUsage;
}

type Stop = Extract<StreamEvent, { type: "message_delta" }>["delta"];
const noStop: Stop = { stop_reason: null, stop_sequence: null };

export class PartialMessages {
  #step = -1;
  #attempt = 0;
  /** Deltas up to this step are late, because its message is committed. */
  #doneStep = -1;
  /** The text that the message's deltas contained. */
  #text = "";
  /** The text of a committed reply whose deltas were not received: they are late. Its step is unknown. */
  #unseen = "";
  /** The open block; undefined before the first block of a message. */
  #kind: Kind | undefined;
  #index = -1;
  #open = false;

  /** `id` identifies the message; all attempts of a call share it. `model`: the expected model. */
  delta(
    id: string,
    kind: Kind,
    at: { step: number; attempt: number; text: string },
    model: string | null,
  ): StreamEvent[] {
    const { step, attempt, text } = at;
    if (step <= this.#doneStep || step < this.#step || (step === this.#step && attempt < this.#attempt)) return [];
    if (this.#open && step === this.#step && attempt === this.#attempt) return this.#piece(kind, text);
    if (step !== this.#step && kind === "text" && text !== "" && this.#unseen.startsWith(text)) {
      this.#doneStep = step;
      return [];
    }
    this.#step = step;
    this.#attempt = attempt;
    return [this.#start(id, model), ...this.#piece(kind, text)];
  }

  /** The turn was claimed again, so attempts are counted from the beginning. */
  restart(): void {
    this.#attempt = 0;
    this.#open = false;
  }

  /**
   * Completes the message of a committed reply, or restarts it if its deltas have gaps. Each of its tool calls is one delta, because live
   * events do not contain the arguments.
   */
  commit({ id, model, content, stop, usage }: CommittedReply): StreamEvent[] {
    this.#doneStep = this.#step;
    const written = content.flatMap((block): [Kind, string][] => {
      if (block.type === "text") return [["text", block.text]];
      return block.type === "thinking" && block.thinking !== "" ? [["thinking", block.thinking]] : [];
    });
    const text = written.flatMap(([kind, piece]) => (kind === "text" ? [piece] : [])).join("");
    const unseen = this.#open ? "" : text;
    const calls = content.filter((block) => block.type === "tool_use");
    if (!this.#open && calls.length === 0 && written.length === 0) return [];
    const events: StreamEvent[] = [];
    const from = this.#open ? positionAfter(text, this.#text) : null;
    if (from === null) {
      events.push(this.#start(id, model), ...written.flatMap(([kind, piece]) => this.#piece(kind, piece)));
    } else if (text.slice(from).trim() !== "") events.push(...this.#piece("text", text.slice(from)));
    events.push(...this.#closeBlock());
    for (const { id: callId, name, input } of calls) {
      events.push(this.#openBlock({ type: "tool_use", id: callId, name, input: {} }));
      const json = typeof input === "string" ? input : JSON.stringify(input);
      const delta = { type: "input_json_delta", partial_json: json } as const;
      events.push({ type: "content_block_delta", index: this.#index, delta }, this.#stopBlock());
    }
    this.#unseen = unseen;
    return [...events, ...this.#end(stop, usage)];
  }

  /** Closes a message that will never be committed. */
  stop(): StreamEvent[] {
    this.#doneStep = this.#step;
    if (!this.#open) return [];
    return [...this.#closeBlock(), ...this.#end(noStop)];
  }

  #start(id: string, model: string | null): StreamEvent {
    this.#open = true;
    this.#text = "";
    this.#unseen = "";
    this.#kind = undefined;
    this.#index = -1;
    const empty = { content: [], stop_reason: null, stop_sequence: null, usage: unknownUsage } as const;
    return { type: "message_start", message: { id, type: "message", role: "assistant", model, ...empty } };
  }

  /** Continues the block of a kind, or starts one. */
  #piece(kind: Kind, text: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    if (this.#kind !== kind) {
      events.push(...this.#closeBlock());
      this.#kind = kind;
      const block: Block =
        kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" };
      events.push(this.#openBlock(block));
    }
    if (kind === "text") this.#text += text;
    const delta =
      kind === "text" ? ({ type: "text_delta", text } as const) : ({ type: "thinking_delta", thinking: text } as const);
    events.push({ type: "content_block_delta", index: this.#index, delta });
    return events;
  }

  #openBlock(block: Block): StreamEvent {
    this.#index += 1;
    return { type: "content_block_start", index: this.#index, content_block: block };
  }

  #stopBlock(): StreamEvent {
    return { type: "content_block_stop", index: this.#index };
  }

  #closeBlock(): StreamEvent[] {
    if (this.#kind === undefined) return [];
    this.#kind = undefined;
    return [this.#stopBlock()];
  }

  #end(delta: Stop, usage = unknownUsage): StreamEvent[] {
    this.#open = false;
    return [{ type: "message_delta", delta, usage }, { type: "message_stop" }];
  }
}
