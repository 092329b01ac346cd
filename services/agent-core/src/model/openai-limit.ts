// How long an answer may be, and how a server wants to be told. Servers disagree on the field's name, and some refuse a limit
// that does not fit beside the prompt instead of cutting it; their refusals say what would do. Pure.

export interface OutputLimit {
  field: "max_tokens" | "max_completion_tokens";
  atMostTokens: number;
}

export interface BetterLimit extends OutputLimit {
  /** True for this server and model whatever is sent, false for this prompt only. */
  lasting: boolean;
}

/** With less room than this the conversation is too long, not the answer. */
const leastUsefulTokens = 1_024;

/** OpenAI's newer models refuse `max_tokens`; `max_completion_tokens` is what many others do not know. */
export function initialLimit(baseUrl: string): OutputLimit {
  return { field: isOpenAi(baseUrl) ? "max_completion_tokens" : "max_tokens", atMostTokens: Number.POSITIVE_INFINITY };
}

/** Whether OpenAI itself, or its double at Azure, answers at an address. */
export function isOpenAi(baseUrl: string): boolean {
  return /(^|\.)openai(\.azure)?\.com$/.test(new URL(baseUrl).hostname);
}

/** What a refusal teaches; undefined when the request is refused for another reason, or no useful room is left. */
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

/** Tokens that are left for the answer, from the words of vLLM and OpenAI. */
function roomFor(refusal: string, sentTokens: number): number | undefined {
  const window = numberIn(refusal, /maximum context length (?:is|of) (\d+)/i);
  if (window === undefined) return undefined;
  const input = numberIn(refusal, /\((\d+) in the messages|(?:request has|prompt contains) (\d+) input tokens/i);
  if (input !== undefined) return window - input;
  // Counted only as far as it had to be: the true length is not known.
  return /at least \d+ input tokens/i.test(refusal) ? Math.floor(sentTokens / 2) : undefined;
}

function numberIn(text: string, pattern: RegExp): number | undefined {
  const digits = pattern
    .exec(text)
    ?.slice(1)
    .find((group) => group !== undefined);
  return digits === undefined ? undefined : Number(digits);
}
