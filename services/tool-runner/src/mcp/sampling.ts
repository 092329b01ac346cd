// Sampling for an MCP server during one tool call: parses the request, enforces the limit, obtains the person's consent, and returns the
// leader's answer. Off by default; each server's settings enable it.
//
// A generation belongs to the leader that began it: when that leader is gone the request fails and is not repeated, because it may have
// been paid for. A request that no leader has accepted waits for one.
import { setTimeout as delay } from "node:timers/promises";
import {
  ProtocolError,
  ProtocolErrorCode,
  type CreateMessageRequestParams,
  type CreateMessageResult,
} from "@modelcontextprotocol/client";
import type { Bus } from "@parley/bus";
import { faultPoint } from "@parley/chassis";
import {
  agentSample,
  agentSampleCancel,
  leaderChanged,
  maxSampleCharacters,
  maxSampleMessages,
  newId,
  WireError,
  type InputOf,
  type SampleMessage,
  type ToolCallRequest,
} from "@parley/contracts";
import { ContentRejectedError, type AttachmentStore } from "../tool/attachments.ts";
import type { PersonPrompt, SampleResult, SamplingClient } from "../tool/requests.ts";
import { elicit } from "./interaction/elicit.ts";

export interface SamplingPlan {
  /** Maximum number of answers per call. */
  maxRequests: number;
  /** Whether a person must consent before the first answer. */
  ask: boolean;
}

/** The parts of a call's context that sampling uses. */
export interface SamplingContext {
  askPerson?: PersonPrompt | undefined;
  sampler?: SamplingClient | undefined;
  attachmentStore?: AttachmentStore | undefined;
}

/** The request is refused. In the protocol's newer era this also ends the call. */
export class SamplingRefusedError extends ProtocolError {
  override readonly name = "SamplingRefusedError";
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

  /** Answers one request. Throws SamplingRefusedError, or the signal's reason. */
  async answer(params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> {
    const { sampler } = this.#context;
    if (sampler === undefined)
      throw new SamplingRefusedError("sampling is possible only during a call of a tool of this server");
    const read = readRequest(params);
    if ("problem" in read) throw new SamplingRefusedError(read.problem, ProtocolErrorCode.InvalidParams);
    const { maxRequests, ask } = this.#plan;
    this.#requests += 1;
    if (this.#requests > maxRequests) {
      throw new SamplingRefusedError(
        `the limit is ${maxRequests} model ${maxRequests === 1 ? "answer" : "answers"} per call (mcp.servers.${this.#server}.sampling.max_requests)`,
      );
    }
    const no = ask ? await this.#consented(read, signal) : null;
    if (no !== null) throw new SamplingRefusedError(no, userRejected);
    const messages = await this.#keep(read.messages);
    const { system, maxTokens, stopSequences } = read;
    const sampled = await sampler.sample({ server: this.#server, system, messages, maxTokens, stopSequences }, signal);
    if (sampled.status === "refused") throw new SamplingRefusedError(sampled.reason);
    const { text, model, stopReason } = sampled;
    return { role: "assistant", content: { type: "text", text }, model, stopReason };
  }

  /** Null if the person of the turn consents, for the whole call; concurrent requests wait for the same answer. */
  async #consented(read: ReadRequest, signal: AbortSignal): Promise<string | null> {
    while (this.#consent !== undefined) {
      const consent = this.#consent;
      try {
        return await consent;
      } catch {
        // The request that asked was aborted or failed: this request asks for consent itself.
        signal.throwIfAborted();
        if (this.#consent === consent) this.#consent = undefined;
      }
    }
    this.#consent = this.#ask(read, signal);
    return this.#consent;
  }

  async #ask(read: ReadRequest, signal: AbortSignal): Promise<string | null> {
    const { askPerson: person } = this.#context;
    if (person === undefined) return "no person can consent to sampling (question_seconds is 0)";
    const text = lastMessageText(read);
    const shown = text.length > shownCharacters ? `${text.slice(0, shownCharacters)} […]` : text;
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
    const { attachmentStore: contents } = this.#context;
    const kept: SampleMessage[] = [];
    for (const { role, blocks } of messages) {
      const parts: SampleMessage["parts"] = [];
      for (const block of blocks) {
        if (typeof block === "string") parts.push({ type: "text", text: block });
        else if (contents === undefined) throw new SamplingRefusedError("pictures are not supported here");
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
    throw new SamplingRefusedError(`a picture was rejected: ${error.message}`);
  }
}

interface Picture {
  mimeType: string;
  /** Base64. */
  data: string;
}

interface ReadMessage {
  role: "user" | "assistant";
  blocks: (string | Picture)[];
}

interface ReadRequest {
  system: string | null;
  messages: ReadMessage[];
  maxTokens: number;
  stopSequences: string[];
}

const maxPictures = 8;

/** The request, or the reason for refusing it, for the server. */
export function readRequest(params: CreateMessageRequestParams): ReadRequest | { problem: string } {
  if (params.tools !== undefined || params.toolChoice !== undefined) return { problem: "tools are not supported" };
  if (params.maxTokens < 1) return { problem: "maxTokens must be at least 1" };
  const messages: ReadMessage[] = [];
  for (const { role, content } of params.messages) {
    const blocks: ReadMessage["blocks"] = [];
    for (const block of [content].flat()) {
      if (block.type === "text") blocks.push(block.text.toWellFormed());
      else if (block.type === "image" && role === "user") blocks.push({ mimeType: block.mimeType, data: block.data });
      else return { problem: `content of type ${block.type} is not supported from the ${role}` };
    }
    const nonEmptyBlocks = blocks.filter((block) => typeof block !== "string" || block.trim() !== "");
    const last = messages.at(-1);
    if (nonEmptyBlocks.length === 0) continue;
    if (last?.role === role) last.blocks.push(...nonEmptyBlocks);
    else messages.push({ role, blocks: nonEmptyBlocks });
  }
  if (messages.length > maxSampleMessages) return { problem: `there are more than ${maxSampleMessages} messages` };
  if (messages.at(0)?.role !== "user" || messages.at(-1)?.role !== "user") {
    return { problem: "the first and the last message must be user messages with content" };
  }
  const system = params.systemPrompt?.toWellFormed() ?? null;
  const all = messages.flatMap(({ blocks }) => blocks);
  const characters = all.reduce((sum, each) => sum + (typeof each === "string" ? each.length : 0), system?.length ?? 0);
  if (characters > maxSampleCharacters) return { problem: `it has more than ${maxSampleCharacters} characters` };
  if (all.filter((each) => typeof each !== "string").length > maxPictures) {
    return { problem: `it has more than ${maxPictures} pictures` };
  }
  const stopSequences = (params.stopSequences ?? [])
    .filter((each) => /\S/.test(each) && each.length <= 200)
    .slice(0, 4);
  return { system, messages, maxTokens: params.maxTokens, stopSequences };
}

/** The text of the last user message of the request. */
export function lastMessageText({ messages }: ReadRequest): string {
  const texts = messages.at(-1)?.blocks.map((block) => (typeof block === "string" ? block : "[a picture]")) ?? [];
  return texts.join("\n");
}

/** Longer than any call may run, so that the call's own deadline applies first. */
const longestMs = 2 * 60 * 60 * 1_000;
/** How long to wait for a leader that accepts the call. */
const leaderWaitMs = 30_000;
const retryMs = 250;
/** A new leader that received the request refuses it: its reply may follow its announcement. Without a reply, the old leader had it. */
const refusalWaitMs = 1_000;

/** Requests model answers from the leader for one tool call. */
export function createSamplingClient(
  { bus, epoch }: { bus: Bus; epoch: () => number },
  { turnId, n }: Pick<ToolCallRequest, "turnId" | "n">,
): SamplingClient {
  return {
    async sample(sample, signal) {
      faultPoint("tool.before_sample");
      const giveUpAt = performance.now() + leaderWaitMs;
      for (;;) {
        signal.throwIfAborted();
        const sampled = await ask(bus, { ...sample, epoch: epoch(), id: newId(), turnId, n }, signal);
        if (sampled !== "not begun") return sampled;
        if (performance.now() >= giveUpAt) return refused("no leader was available to call the model");
        await delay(retryMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    },
  };
}

/** `not begun`: no model was called, because there is no leader, the epoch is stale, or the leader has not accepted the call yet. */
async function ask(
  bus: Bus,
  input: InputOf<typeof agentSample>,
  signal: AbortSignal,
): Promise<SampleResult | "not begun"> {
  const { id, epoch } = input;
  const superseded = new AbortController();
  let wait: NodeJS.Timeout | undefined;
  const subscription = bus.subscribe(leaderChanged, {}, (leader) => {
    if (leader.epoch > epoch) wait ??= setTimeout(() => superseded.abort(), refusalWaitMs);
  });
  const cancel = () => bus.publish(agentSampleCancel, { id });
  signal.addEventListener("abort", cancel, { once: true });
  try {
    return await bus.request(agentSample, input, {
      timeoutMs: longestMs,
      once: true,
      signal: AbortSignal.any([signal, superseded.signal]),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (WireError.is(error, "STALE_EPOCH", "UNAVAILABLE")) return "not begun";
    if (superseded.signal.aborted) return refused("the leader changed during the model call");
    if (!WireError.is(error)) throw error;
    return refused(`the model could not be called: ${error.message}`);
  } finally {
    clearTimeout(wait);
    signal.removeEventListener("abort", cancel);
    subscription.close();
  }
}

function refused(reason: string): SampleResult {
  return { status: "refused", reason };
}
