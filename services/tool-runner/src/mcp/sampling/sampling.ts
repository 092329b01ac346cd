// Sampling for an MCP server during one tool call: enforces the limit, obtains the person's consent, and returns the model's answer.
// Off by default; each server's settings enable it.
import {
  ProtocolError,
  ProtocolErrorCode,
  type CreateMessageRequestParams,
  type CreateMessageResult,
} from "@modelcontextprotocol/client";
import type { SampleMessage } from "@parley/contracts";
import { ContentRejectedError, type AttachmentStore } from "../../tool/attachments.ts";
import type { PersonPrompt, SamplingClient } from "../../tool/requests.ts";
import { elicit } from "../interaction/elicit.ts";
import { readRequest, wordsOf, type ReadMessage, type ReadRequest } from "./read-request.ts";

export interface SamplingPlan {
  /** Maximum number of answers per call. */
  maxRequests: number;
  /** Whether a person must consent before the first answer. */
  ask: boolean;
}

/** The parts of a call's context that sampling uses. */
export interface SamplingContext {
  person?: PersonPrompt | undefined;
  sampler?: SamplingClient | undefined;
  contents?: AttachmentStore | undefined;
}

/** The request is refused. In the protocol's newer era this also ends the call. */
export class SamplingRefused extends ProtocolError {
  readonly reason: string;

  constructor(reason: string, code: number = ProtocolErrorCode.InvalidRequest) {
    super(code, `Parley: ${reason}`);
    this.reason = reason;
  }
}

/** The protocol's error code for a denial by a person. */
const userRejected = -1;
/** Maximum characters of the server's text that a person is shown. */
const shownCharacters = 600;

export class Sampling {
  readonly #server: string;
  readonly #plan: SamplingPlan;
  readonly #context: SamplingContext;
  #requests = 0;
  /** The consent for the whole call: null if given, otherwise the reason for the denial. */
  #consent: Promise<string | null> | undefined;

  constructor(server: string, plan: SamplingPlan, context: SamplingContext) {
    this.#server = server;
    this.#plan = plan;
    this.#context = context;
  }

  /** Answers one request. Throws SamplingRefused, or the signal's reason. */
  async answer(params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> {
    const { sampler } = this.#context;
    if (sampler === undefined)
      throw new SamplingRefused("sampling is possible only during a call of a tool of this server");
    const read = readRequest(params);
    if ("problem" in read) throw new SamplingRefused(read.problem, ProtocolErrorCode.InvalidParams);
    const { maxRequests, ask } = this.#plan;
    this.#requests += 1;
    if (this.#requests > maxRequests) {
      throw new SamplingRefused(
        `the limit is ${maxRequests} model ${maxRequests === 1 ? "answer" : "answers"} per call (mcp.servers.${this.#server}.sampling.max_requests)`,
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

  /** Null if the person of the turn consents, for the whole call; concurrent requests wait for the same answer. */
  async #consented(read: ReadRequest, signal: AbortSignal): Promise<string | null> {
    while (this.#consent !== undefined) {
      const asked = this.#consent;
      try {
        return await asked;
      } catch {
        // The request that asked was aborted or failed: this request asks for consent itself.
        signal.throwIfAborted();
        if (this.#consent === asked) this.#consent = undefined;
      }
    }
    this.#consent = this.#ask(read, signal);
    return this.#consent;
  }

  async #ask(read: ReadRequest, signal: AbortSignal): Promise<string | null> {
    const { person } = this.#context;
    if (person === undefined) return "no person can consent to sampling (question_seconds is 0)";
    const words = wordsOf(read);
    const shown = words.length > shownCharacters ? `${words.slice(0, shownCharacters)} […]` : words;
    const many = this.#plan.maxRequests === 1 ? "once" : `up to ${this.#plan.maxRequests} times`;
    const message = `May it request answers from a model at your cost (${many} in this call)? Its request:\n${shown}`;
    const question = {
      mode: "form" as const,
      message,
      requestedSchema: { type: "object" as const, properties: {} },
    };
    const { result, outcome } = await elicit(this.#server, question, person, signal);
    return result.action === "accept" ? null : `no consent to sampling: ${outcome}`;
  }

  /** Stores pictures; the request to the model refers to them by hash. */
  async #keep(messages: readonly ReadMessage[]): Promise<SampleMessage[]> {
    const { contents } = this.#context;
    const kept: SampleMessage[] = [];
    for (const { role, blocks } of messages) {
      const parts: SampleMessage["parts"] = [];
      for (const block of blocks) {
        if (typeof block === "string") parts.push({ type: "text", text: block });
        else if (contents === undefined) throw new SamplingRefused("pictures are not supported here");
        else parts.push({ type: "blob", ...(await keepPicture(contents, block.data)), name: "picture" });
      }
      kept.push({ role, parts });
    }
    return kept;
  }
}

async function keepPicture(contents: AttachmentStore, data: string) {
  try {
    return await contents.keep(Buffer.from(data, "base64"));
  } catch (error) {
    if (!(error instanceof ContentRejectedError)) throw error;
    throw new SamplingRefused(`a picture was rejected: ${error.message}`);
  }
}
