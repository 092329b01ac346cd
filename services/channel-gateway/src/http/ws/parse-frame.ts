// Parses a WebSocket frame from a client. Pure.
import type { z } from "zod";
import { HttpError, invalid } from "../errors.ts";

/** Throws HttpError for an invalid frame. */
export function parseFrame<S extends z.ZodType>(data: string, schema: S): z.output<S> {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw new HttpError(400, "invalid_json", "the frame is not valid JSON");
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw invalid(parsed.error, "frame");
  return parsed.data;
}
