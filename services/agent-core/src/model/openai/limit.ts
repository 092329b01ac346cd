// The output limit of an answer and its request field. Servers differ in the field's name, and some refuse a limit that
// does not fit in the window instead of reducing it; their errors name a value that would fit. Pure.

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
