// Answers that must match a JSON schema (`outputFormat` of the SDK). Pure.

import { type AnswerSchema, errorMessage, readAnswerSchema as readSchema } from "@parley/contracts";

/** Throws Error for what is not a JSON schema, or one that cannot be checked. */
export function readAnswerSchema(value: unknown): AnswerSchema {
  try {
    return readSchema(value);
  } catch (error) {
    throw new Error(`outputFormat: ${errorMessage(error)}`, { cause: error });
  }
}

/** The message that requests the answer again. */
export function retryText({ text }: AnswerSchema, problem: string): string {
  return `Your answer does not match: ${problem}. Answer again with one JSON value that matches this JSON schema:\n${text}`;
}
