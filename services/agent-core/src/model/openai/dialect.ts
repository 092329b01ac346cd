// Optional request fields that a server of OpenAI's format supports. Servers differ and report that only by refusing;
// each refusal is learned from permanently. Pure.
import type { Effort } from "@parley/contracts";
import { efforts } from "../effort.ts";
import { isOpenAi } from "./limit.ts";

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
  if (sent.images && /image|multi-?modal|vision|mmproj/i.test(refusal)) return { ...dialect, images: false };
  if (dialect.streamUsage && sent.stream && /stream_options|include_usage/i.test(refusal)) {
    return { ...dialect, streamUsage: false };
  }
  if (sent.stream && /stream(ing)?\b.*\b(not|n't|un|only)/i.test(refusal)) return { ...dialect, stream: false };
  if (sent.stops && /['"`]?\bstop\b['"`]?.*\b(not|un)/i.test(refusal)) return { ...dialect, stops: false };
  return undefined;
}
