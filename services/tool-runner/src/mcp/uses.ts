// The uses that one MCP server is being made of at the moment, and whose question a question of the server is. Over HTTP the answer's own
// stream tells; a program has one stream for everything, and its question is somebody's only where no second call could be meant.
import { AsyncLocalStorage } from "node:async_hooks";
import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  ElicitRequestParams,
  ElicitResult,
} from "@modelcontextprotocol/client";
import type { Person } from "../serving/person.ts";
import { elicit } from "./elicitation/elicit.ts";
import { SamplingRefused, type Sampling } from "./sampling/sampling.ts";

/** One use of a server. */
export interface Use {
  /** For the model, beside the answer. */
  notes: string[];
  /** Undefined: nobody can be asked. */
  person: Person | undefined;
  /** How the server may ask a model; undefined: it may not. */
  sampling?: Sampling | undefined;
  signal: AbortSignal;
}

export class Uses {
  readonly #server: string;
  readonly #running = new Set<Use>();
  readonly #own = new AsyncLocalStorage<Use>();

  constructor(server: string) {
    this.#server = server;
  }

  async during<T>(use: Use, act: () => Promise<T>): Promise<T> {
    this.#running.add(use);
    try {
      return await this.#own.run(use, act);
    } finally {
      this.#running.delete(use);
    }
  }

  /** Puts a question of the server to the person of the call it belongs to. `signal`: the server waits no longer. */
  async answer(params: ElicitRequestParams, signal: AbortSignal): Promise<ElicitResult> {
    const use = this.#useOf();
    const question = JSON.stringify(params.message.slice(0, 1_000).toWellFormed());
    if (use === undefined) {
      const note = `[The server asked the user: ${question}. This was declined: several calls run, and it is not known which one asks.]`;
      for (const { notes } of this.#running) notes.push(note);
      return { action: "decline" };
    }
    const { person, notes } = use;
    if (person === undefined) {
      notes.push(`[The server asked the user: ${question}. This was declined: it may not ask.]`);
      return { action: "decline" };
    }
    const over = AbortSignal.any([use.signal, signal]);
    try {
      const { result, outcome } = await elicit(this.#server, params, person, over);
      notes.push(`[The server asked the user: ${question}. What came of it: ${outcome}.]`);
      return result;
    } catch (error) {
      const why = over.aborted
        ? "the server or the call did not wait for the answer"
        : "the question could not be asked";
      notes.push(`[The server asked the user: ${question}. There is no answer: ${why}.]`);
      if (!over.aborted) throw error;
      return { action: "cancel" };
    }
  }

  /** Has a model answer the server, for the call it belongs to. Throws SamplingRefused. */
  async sample(params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> {
    const use = this.#useOf();
    const concerned = use === undefined ? [...this.#running] : [use];
    const note = (text: string) => {
      for (const { notes } of concerned) notes.push(`[The server asked a model something. ${text}]`);
    };
    try {
      if (use?.sampling === undefined) {
        const many = this.#running.size > 1 && use === undefined;
        const why = many ? "several calls run, and it is not known which one asks" : "no tool of this server is called";
        throw new SamplingRefused(why);
      }
      const result = await use.sampling.answer(params, AbortSignal.any([use.signal, signal]));
      note(`${result.model} has answered.`);
      return result;
    } catch (error) {
      note(error instanceof SamplingRefused ? `It got no answer: ${error.reason}.` : "It got no answer.");
      throw error;
    }
  }

  #useOf(): Use | undefined {
    const own = this.#own.getStore();
    if (own !== undefined && this.#running.has(own)) return own;
    const [only, second] = this.#running;
    return second === undefined ? only : undefined;
  }
}
