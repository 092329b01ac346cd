// Results of the fake's methods, and parameters that are JSON in a form.
import { z } from "zod";

export type MethodResult =
  | { status: 200; result: unknown }
  | { status: number; description: string; parameters?: Record<string, unknown> };

export const json = <Schema extends z.ZodType>(schema: Schema): z.ZodType<z.infer<Schema>> =>
  z.preprocess((value) => (typeof value === "string" ? parseJson(value) : value), schema) as z.ZodType<z.infer<Schema>>;

export function done(result: unknown): MethodResult {
  return { status: 200, result };
}

export function badRequest(problem: string): MethodResult {
  return { status: 400, description: `Bad Request: ${problem}` };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
