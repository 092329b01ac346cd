// What a server of the Responses API supports; learned from its refusals. Pure.
import * as chat from "../openai/dialect.ts";
import type { InputItem, ResponsesRequest } from "./wire.ts";

export interface Dialect extends Pick<chat.Dialect, "efforts" | "images" | "pdfs"> {
  /** Supports summaries of reasoning; OpenAI requires a verified organisation for some models. */
  summaries: boolean;
  /** Returns encrypted reasoning; models without reasoning refuse it. */
  encrypted: boolean;
}

export function initialDialect(baseUrl: string): Dialect {
  const { efforts, images, pdfs } = chat.initialDialect(baseUrl);
  return { efforts, images, pdfs, summaries: true, encrypted: true };
}

/** The dialect after a refusal; undefined when the refusal has another cause. */
export function learnDialect(
  refusal: string,
  dialect: Dialect,
  sent: ResponsesRequest,
  shown: chat.ShownKinds,
): Dialect | undefined {
  if (sent.reasoning?.summary !== undefined && /summar(y|ies)/i.test(refusal)) return { ...dialect, summaries: false };
  if (sent.include !== undefined && /encrypted.?content|\binclude\b/i.test(refusal)) {
    return { ...dialect, encrypted: false };
  }
  const learned = chat.learnDialect(
    refusal,
    { ...chat.initialDialect("http://none"), ...dialect },
    { effort: sent.reasoning?.effort, ...shown.without(kindsIn(sent)), stream: false, stops: false },
  );
  return learned === undefined
    ? undefined
    : { ...dialect, efforts: learned.efforts, images: learned.images, pdfs: learned.pdfs };
}

/** The kinds of content of a request that a server may not support. */
export function kindsIn({ input }: ResponsesRequest): Pick<chat.Sent, "images" | "pdfs"> {
  const types = new Set(input.flatMap(contentTypes));
  return { images: types.has("input_image"), pdfs: types.has("input_file") };
}

/** Whether the server could not read the reasoning that was sent, for example because the key belongs to another organisation. */
export function isReasoningUnreadable(refusal: string, sent: ResponsesRequest): boolean {
  const isSent = sent.input.some((item) => item.type === "reasoning");
  return isSent && /encrypted.?content|'reasoning'|\brs_\w+/i.test(refusal);
}

/** The types of the parts of a message. */
function contentTypes(item: InputItem): unknown[] {
  const content = "content" in item ? item.content : [];
  return Array.isArray(content) ? content.map((part: { type?: unknown }) => part.type) : [];
}
