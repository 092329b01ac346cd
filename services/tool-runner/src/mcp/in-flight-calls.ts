// The running uses of one MCP server, and the use that a request of the server belongs to. Over HTTP the response stream determines
// it; a program has one stream for everything, so its request has an owner only if exactly one use is running.
import { AsyncLocalStorage } from "node:async_hooks";
import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  ElicitRequestParams,
  ElicitResult,
} from "@modelcontextprotocol/client";
import type { PersonPrompt } from "../tool/requests.ts";
import { elicit } from "./interaction/elicit.ts";
import { SamplingRefusedError, type Sampling } from "./sampling.ts";

/** One use of a server. */
export interface InFlightCall {
  /** Remarks for the model, added to the result. */
  notes: string[];
  /** The person for elicitation; undefined: not allowed. */
  askPerson?: PersonPrompt | undefined;
  /** Handles sampling; undefined: not allowed. */
  sampling?: Sampling | undefined;
  signal: AbortSignal;
  /** Text about the progress of a call that failed. */
  soFar?: () => string;
}

export class InFlightCalls {
  readonly #server: string;
  readonly #running = new Set<InFlightCall>();
  readonly #own = new AsyncLocalStorage<InFlightCall>();

  constructor(server: string) {
    this.#server = server;
  }

  async during<T>(use: InFlightCall, act: () => Promise<T>): Promise<T> {
    this.#running.add(use);
    try {
      return await this.#own.run(use, act);
    } finally {
      this.#running.delete(use);
    }
  }

  /** Puts an elicitation to the person of its call. `signal` is aborted when the server no longer waits. */
  async answer(params: ElicitRequestParams, signal: AbortSignal): Promise<ElicitResult> {
    const use = this.#useOf();
    const question = JSON.stringify(params.message.slice(0, 1_000).toWellFormed());
    if (use === undefined) {
      const note = `[The server asked the user: ${question}. This was declined: several calls are running, and the question cannot be assigned to one of them.]`;
      for (const { notes } of this.#running) notes.push(note);
      return { action: "decline" };
    }
    const { askPerson: person, notes } = use;
    if (person === undefined) {
      notes.push(`[The server asked the user: ${question}. This was declined: the server may not ask questions.]`);
      return { action: "decline" };
    }
    const over = AbortSignal.any([use.signal, signal]);
    try {
      const { result, outcome } = await elicit(this.#server, params, person, over);
      notes.push(`[The server asked the user: ${question}. Outcome: ${outcome}.]`);
      return result;
    } catch (error) {
      const why = over.aborted ? "the server or the call stopped waiting" : "the question could not be delivered";
      notes.push(`[The server asked the user: ${question}. No answer: ${why}.]`);
      if (!over.aborted) throw error;
      return { action: "cancel" };
    }
  }

  /** Answers a sampling request for the call it belongs to. Throws SamplingRefusedError. */
  async sample(params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> {
    const use = this.#useOf();
    const concerned = use === undefined ? [...this.#running] : [use];
    const note = (text: string) => {
      for (const { notes } of concerned) notes.push(`[The server requested an answer from a model. ${text}]`);
    };
    try {
      if (use?.sampling === undefined) {
        const many = this.#running.size > 1 && use === undefined;
        const why = many
          ? "several calls are running, and the request cannot be assigned to one of them"
          : "no tool of this server is being called";
        throw new SamplingRefusedError(why);
      }
      const result = await use.sampling.answer(params, AbortSignal.any([use.signal, signal]));
      note(`${result.model} answered.`);
      return result;
    } catch (error) {
      note(
        error instanceof SamplingRefusedError ? `The request was refused: ${error.reason}.` : "There was no answer.",
      );
      throw error;
    }
  }

  #useOf(): InFlightCall | undefined {
    const own = this.#own.getStore();
    if (own !== undefined && this.#running.has(own)) return own;
    const [only, second] = this.#running;
    return second === undefined ? only : undefined;
  }
}
