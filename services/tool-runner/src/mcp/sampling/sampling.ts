// A model's answers for an MCP server, in the course of one call of a tool: how many there may be, whether the person wants it, and what
// server and agent are told. Off unless the settings of that server say otherwise.
import {
  ProtocolError,
  ProtocolErrorCode,
  type CreateMessageRequestParams,
  type CreateMessageResult,
} from "@modelcontextprotocol/client";
import type { SampleMessage } from "@parley/contracts";
import { ContentRefused, type KeptContents } from "../../attachments.ts";
import type { Person } from "../../serving/person.ts";
import type { Sampler } from "../../serving/sampler.ts";
import { elicit } from "../elicitation/elicit.ts";
import { readRequest, wordsOf, type ReadMessage, type ReadRequest } from "./read-request.ts";

export interface SamplingPlan {
  /** Answers for one call. */
  maxRequests: number;
  /** A person is asked before the first of them. */
  ask: boolean;
}

/** What a call has, for its server to ask a model by. */
export interface SamplingContext {
  person?: Person | undefined;
  sampler?: Sampler | undefined;
  contents?: KeptContents | undefined;
}

/** The server gets no answer. In the protocol's newer era this ends the call as well. */
export class SamplingRefused extends ProtocolError {
  readonly reason: string;

  constructor(reason: string, code: number = ProtocolErrorCode.InvalidRequest) {
    super(code, `Parley: ${reason}`);
    this.reason = reason;
  }
}

/** As the protocol says it of a person's no. */
const userRejected = -1;
/** Of the server's words that a person is shown. */
const shownCharacters = 600;

export class Sampling {
  readonly #server: string;
  readonly #plan: SamplingPlan;
  readonly #context: SamplingContext;
  #requests = 0;
  /** Settled once for the call: null is a yes, a text says why not. */
  #consent: Promise<string | null> | undefined;

  constructor(server: string, plan: SamplingPlan, context: SamplingContext) {
    this.#server = server;
    this.#plan = plan;
    this.#context = context;
  }

  /** Answers one request. Throws SamplingRefused, or the signal's reason. */
  async answer(params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> {
    const { sampler } = this.#context;
    if (sampler === undefined) throw new SamplingRefused("a model answers only while a tool of this server is called");
    const read = readRequest(params);
    if ("problem" in read) throw new SamplingRefused(read.problem, ProtocolErrorCode.InvalidParams);
    const { maxRequests, ask } = this.#plan;
    this.#requests += 1;
    if (this.#requests > maxRequests) {
      throw new SamplingRefused(
        `one call may have ${maxRequests} ${maxRequests === 1 ? "answer" : "answers"} of a model (mcp.servers.${this.#server}.sampling.max_requests)`,
      );
    }
    const no = ask ? await this.#consented(read, signal) : null;
    if (no !== null) throw new SamplingRefused(no, userRejected);
    const messages = await this.#keep(read.messages);
    const { system, maxTokens, stopSequences } = read;
    const sampled = await sampler.sample({ server: this.#server, system, messages, maxTokens, stopSequences }, signal);
    if (sampled.status === "refused") throw new SamplingRefused(sampled.reason);
    const { text, model, stopReason } = sampled;
    return { role: "assistant", content: { type: "text", text }, model, stopReason };
  }

  /** Null where the person of the turn says yes, for all of the call: requests that come meanwhile wait for the same answer. */
  async #consented(read: ReadRequest, signal: AbortSignal): Promise<string | null> {
    while (this.#consent !== undefined) {
      const asked = this.#consent;
      try {
        return await asked;
      } catch {
        // Whoever asked waits no longer, or could not ask: this request asks by itself.
        signal.throwIfAborted();
        if (this.#consent === asked) this.#consent = undefined;
      }
    }
    this.#consent = this.#ask(read, signal);
    return this.#consent;
  }

  async #ask(read: ReadRequest, signal: AbortSignal): Promise<string | null> {
    const { person } = this.#context;
    if (person === undefined) return "nobody can be asked whether a model may answer (question_seconds is 0)";
    const words = wordsOf(read);
    const shown = words.length > shownCharacters ? `${words.slice(0, shownCharacters)} […]` : words;
    const many = this.#plan.maxRequests === 1 ? "once" : `up to ${this.#plan.maxRequests} times`;
    const message = `May it have a model answer something for it, at your cost (${many} in this call)? It wants to say:\n${shown}`;
    const question = {
      mode: "form" as const,
      message,
      requestedSchema: { type: "object" as const, properties: {} },
    };
    const { result, outcome } = await elicit(this.#server, question, person, signal);
    return result.action === "accept" ? null : `no model answers: ${outcome}`;
  }

  /** Pictures go by their hash. */
  async #keep(messages: readonly ReadMessage[]): Promise<SampleMessage[]> {
    const { contents } = this.#context;
    const kept: SampleMessage[] = [];
    for (const { role, blocks } of messages) {
      const parts: SampleMessage["parts"] = [];
      for (const block of blocks) {
        if (typeof block === "string") parts.push({ type: "text", text: block });
        else if (contents === undefined) throw new SamplingRefused("pictures are not taken here");
        else parts.push({ type: "blob", ...(await keepPicture(contents, block.data)), name: "picture" });
      }
      kept.push({ role, parts });
    }
    return kept;
  }
}

async function keepPicture(contents: KeptContents, data: string) {
  try {
    return await contents.keep(Buffer.from(data, "base64"));
  } catch (error) {
    if (!(error instanceof ContentRefused)) throw error;
    throw new SamplingRefused(`a picture is not taken: ${error.message}`);
  }
}
