// What a server of OpenAI's format supports: optional request fields, and the output limit with its field. Servers differ and
// report that only by refusing; each refusal is learned from. Pure.
import type { Effort } from "@parley/contracts";
import { efforts } from "../effort.ts";

export interface OutputLimit {
  field: "max_tokens" | "max_completion_tokens";
  atMostTokens: number;
}

export interface BetterLimit extends OutputLimit {
  /** True: applies to this server and model; false: to this prompt only. */
  lasting: boolean;
}

/** With fewer tokens left, the conversation is too long, not the answer. */
const leastUsefulTokens = 1_024;

/** OpenAI's newer models refuse `max_tokens`; many other servers do not support `max_completion_tokens`. */
export function initialLimit(baseUrl: string): OutputLimit {
  return { field: isOpenAi(baseUrl) ? "max_completion_tokens" : "max_tokens", atMostTokens: Number.POSITIVE_INFINITY };
}

/** Whether an address belongs to OpenAI itself or to Azure OpenAI. */
export function isOpenAi(baseUrl: string): boolean {
  return /(^|\.)openai(\.azure)?\.com$/.test(new URL(baseUrl).hostname);
}

/** The limit after a refusal; undefined when the refusal has another cause or too few tokens are left. */
export function learnLimit(refusal: string, limit: OutputLimit, sentTokens: number): BetterLimit | undefined {
  if (limit.field === "max_tokens" && /max_completion_tokens\W+instead/.test(refusal)) {
    return { ...limit, field: "max_completion_tokens", lasting: true };
  }
  const most = numberIn(refusal, /at most (\d+) completion tokens/i);
  if (most !== undefined) return most < sentTokens ? { ...limit, atMostTokens: most, lasting: true } : undefined;
  const room = roomFor(refusal, sentTokens);
  if (room === undefined || room < leastUsefulTokens || room >= sentTokens) return undefined;
  return { ...limit, atMostTokens: room, lasting: false };
}

/** Tokens left for the answer, parsed from error messages of vLLM and OpenAI. */
function roomFor(refusal: string, sentTokens: number): number | undefined {
  const window = numberIn(refusal, /maximum context length (?:is|of) (\d+)/i);
  if (window === undefined) return undefined;
  const input = numberIn(refusal, /\((\d+) in the messages|(?:request has|prompt contains) (\d+) input tokens/i);
  if (input !== undefined) return window - input;
  // The server stopped counting at its limit: the true length is not known.
  return /at least \d+ input tokens/i.test(refusal) ? Math.floor(sentTokens / 2) : undefined;
}

function numberIn(text: string, pattern: RegExp): number | undefined {
  const digits = pattern
    .exec(text)
    ?.slice(1)
    .find((group) => group !== undefined);
  return digits === undefined ? undefined : Number(digits);
}

export interface Dialect {
  /** Supported levels of `reasoning_effort`. Empty: the field is not sent. */
  efforts: readonly Effort[];
  /** Supports images as parts of a message. */
  images: boolean;
  /** Supports documents as parts of a message; only OpenAI does. */
  pdfs: boolean;
  stream: boolean;
  /** Supports `stream_options`, without which OpenAI reports no usage. */
  streamUsage: boolean;
  /** Supports `stop`. */
  stops: boolean;
}

export function initialDialect(baseUrl: string): Dialect {
  return {
    efforts,
    images: true,
    pdfs: isOpenAi(baseUrl),
    stream: true,
    streamUsage: true,
    stops: true,
  };
}

/** Fields of a request that a server may have refused. */
export interface Sent {
  effort: Effort | undefined;
  images: boolean;
  pdfs: boolean;
  stream: boolean;
  stops: boolean;
}

/** Kinds of content that the server has answered: a later refusal concerns one content, which `with-attachments.ts` leaves out. */
export class ShownKinds {
  #images = false;
  #pdfs = false;

  add({ images, pdfs }: Pick<Sent, "images" | "pdfs">): void {
    this.#images ||= images;
    this.#pdfs ||= pdfs;
  }

  /** What was sent, without these kinds. */
  without<T extends Pick<Sent, "images" | "pdfs">>(sent: T): T {
    return { ...sent, images: sent.images && !this.#images, pdfs: sent.pdfs && !this.#pdfs };
  }
}

/** Messages of OpenAI and vLLM about a single image. */
const damagedImage = /\b(in)?valid image\b|\bimage data\b|uploaded an unsupported image|identify image/i;

/** The dialect after a refusal; undefined when the refusal has another cause. */
export function learnDialect(refusal: string, dialect: Dialect, sent: Sent): Dialect | undefined {
  if (sent.effort !== undefined && /reasoning.?effort|think value|does not support think/i.test(refusal)) {
    // The levels above `high` are the most recent additions.
    const plain = dialect.efforts.filter((level) => level !== "xhigh" && level !== "max");
    return {
      ...dialect,
      efforts:
        plain.length < dialect.efforts.length && /xhigh|max|unsupported value|invalid value/i.test(refusal)
          ? plain
          : [],
    };
  }
  if (sent.pdfs && /\bfile\b|\bpdf\b|document/i.test(refusal)) return { ...dialect, pdfs: false };
  const isAboutImages = /image|multi-?modal|vision|mmproj/i.test(refusal) && !damagedImage.test(refusal);
  if (sent.images && isAboutImages) return { ...dialect, images: false };
  if (dialect.streamUsage && sent.stream && /stream_options|include_usage/i.test(refusal)) {
    return { ...dialect, streamUsage: false };
  }
  if (sent.stream && /stream(ing)?\b.*\b(not|n't|un|only)/i.test(refusal)) return { ...dialect, stream: false };
  if (sent.stops && /['"`]?\bstop\b['"`]?.*\b(not|un)/i.test(refusal)) return { ...dialect, stops: false };
  return undefined;
}
