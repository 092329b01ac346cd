// What a request of an OpenAI client requires of its answer: its format, its length, and where it stops. Pure.
import { answerInstructions, errorMessage, readAnswerSchema, type AnswerRequirements } from "@parley/contracts";
import { z } from "zod";
import { unsupported } from "./openai-input.ts";

/** Limit of OpenAI's API. */
const maxStops = 4;
const Stops = z.array(z.string().min(1).max(1_000)).max(maxStops);

export interface AnswerFormat {
  /** Instructions for the agent. */
  instructions: string;
  /** JSON text. */
  jsonSchema: string;
}

const Format = z.looseObject({ type: z.string(), schema: z.record(z.string(), z.unknown()).optional() });

/** A format as `text.format` of the Responses API has it; undefined: text. Throws HttpError 400. */
export function readFormat(format: unknown, param: string): AnswerFormat | undefined {
  if (format === undefined || format === null) return undefined;
  const { type, schema } = Format.safeParse(format).data ?? { type: "?" };
  if (type === "text") return undefined;
  if (type === "json_object") return { instructions: answerInstructions({ text: anyObject }), jsonSchema: anyObject };
  if (type !== "json_schema" || schema === undefined)
    throw unsupported(param, "use `text`, `json_object`, or `json_schema` with a schema");
  try {
    // Expressions of a caller would run in the agent's process, and some take for ever: the model reads them, nothing checks them.
    const { text } = readAnswerSchema(schema);
    return { instructions: answerInstructions({ text }), jsonSchema: readAnswerSchema(withoutPatterns(schema)).text };
  } catch (error) {
    throw unsupported(param, errorMessage(error));
  }
}

const anyObject = JSON.stringify({ type: "object" });

/** Throws Error for `patternProperties`, which cannot be left out. */
function withoutPatterns(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copied = JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => {
      if (key === "patternProperties") throw new Error("`patternProperties` is not supported");
      return key === "pattern" && typeof value === "string" ? undefined : value;
    }),
  ) as unknown;
  return copied as Record<string, unknown>;
}

/** The texts of `stop`. Throws HttpError 400. */
export function readStop(stop: string | readonly string[] | null | undefined): string[] {
  const parsed = Stops.safeParse(typeof stop === "string" ? [stop] : (stop ?? []));
  if (parsed.success) return parsed.data;
  throw unsupported("stop", `up to ${maxStops} texts that are not empty`);
}

/** Undefined when nothing is required. */
export function requirementsOf(
  maxOutputTokens: number | null | undefined,
  format: AnswerFormat | undefined,
  stop: readonly string[] = [],
): AnswerRequirements | undefined {
  if (maxOutputTokens == null && format === undefined && stop.length === 0) return undefined;
  return {
    ...(maxOutputTokens == null ? {} : { maxOutputTokens }),
    ...(format === undefined ? {} : { jsonSchema: format.jsonSchema }),
    ...(stop.length === 0 ? {} : { stop: [...stop] }),
  };
}
