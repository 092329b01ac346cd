// What the caller of one message requires of its answer, and the check of an answer that must be JSON.
import { z } from "zod";
import { errorMessage } from "./error-message.ts";

/** Maximum size of a JSON schema as text, in characters. */
const maxSchemaCharacters = 64_000;

export const AnswerRequirementsSchema = z.object({
  /** Tokens that the model calls of the turn may generate together. */
  maxOutputTokens: z.number().int().positive().optional(),
  /** The answer ends before the first of these texts. */
  stop: z.array(z.string().min(1).max(1_000)).min(1).max(4).optional(),
  /** The answer is one JSON value that matches this JSON schema, which is JSON text. */
  jsonSchema: z.string().max(maxSchemaCharacters).optional(),
});
export type AnswerRequirements = z.infer<typeof AnswerRequirementsSchema>;

export interface AnswerSchema {
  /** JSON text. */
  readonly text: string;
  readonly check: z.ZodType;
}

/** How often an answer that does not match is requested again. */
export const maxAnswerRetries = 3;

const JsonSchema = z.record(z.string(), z.unknown());

/** Throws Error for what is not a JSON schema, or one that cannot be checked. */
export function readAnswerSchema(value: unknown): AnswerSchema {
  const parsed = JsonSchema.safeParse(value);
  if (!parsed.success) throw new Error("the schema is not a JSON object");
  const { $schema: _, ...schema } = parsed.data;
  const text = JSON.stringify(schema);
  if (text.length > maxSchemaCharacters) throw new Error(`the schema has more than ${maxSchemaCharacters} characters`);
  try {
    return { text, check: z.fromJSONSchema(schema) };
  } catch (error) {
    throw new Error(`the schema cannot be checked: ${errorMessage(error)}`, { cause: error });
  }
}

/** Instructions for the agent. */
export function answerInstructions({ text }: Pick<AnswerSchema, "text">): string {
  return `Answer every message with one JSON value that matches this JSON schema, without any other text:\n${text}`;
}

/** The value of an answer and its JSON text, or why it does not match. A code fence around the value is ignored. */
export function readAnswer(
  { check }: AnswerSchema,
  answer: string,
): { value: unknown; json: string } | { problem: string } {
  const json = /^```(?:json)?\s*\n(.*)\n```$/s.exec(answer.trim())?.[1] ?? answer;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { problem: "it is not valid JSON" };
  }
  const checked = check.safeParse(value);
  if (checked.success) return { value, json: json.trim() };
  const issue = checked.error.issues[0];
  return { problem: `${["answer", ...(issue?.path ?? [])].join(".")}: ${issue?.message ?? "does not match"}` };
}
