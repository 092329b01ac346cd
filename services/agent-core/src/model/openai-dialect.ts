// What a server of OpenAI's format takes beyond the plain minimum. Servers disagree, and say so only by refusing; a refusal is
// learned from once and for all. Pure.
import type { Effort } from "@parley/contracts";
import { efforts } from "./effort.ts";
import { isOpenAi } from "./openai-limit.ts";

export interface Dialect {
  /** The levels of `reasoning_effort`. Empty: the field is not sent. */
  efforts: readonly Effort[];
  /** Images as parts of a message. */
  images: boolean;
  /** Documents as parts of a message; only OpenAI itself has them. */
  pdfs: boolean;
  stream: boolean;
  /** `stream_options`, without which OpenAI tells no usage. */
  streamUsage: boolean;
  /** `stop`. */
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

/** What a request held that may have been refused. */
export interface Sent {
  effort: Effort | undefined;
  images: boolean;
  pdfs: boolean;
  stream: boolean;
  stops: boolean;
}

/** The dialect after a refusal; undefined when it teaches nothing about it. */
export function learnDialect(refusal: string, dialect: Dialect, sent: Sent): Dialect | undefined {
  if (sent.effort !== undefined && /reasoning.?effort|think value|does not support think/i.test(refusal)) {
    // The levels beyond `high` are the youngest.
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
