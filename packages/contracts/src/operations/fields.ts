// Fields that several operations share.
import { z } from "zod";

/** A session, by id or key. */
export const SessionRef = z.string().min(1).max(600);

/** A whole number that HTTP queries and slash commands send as text. */
export const count = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

/** A switch in an HTTP query. */
export const QuerySwitch = z.enum(["true", "false"]);

/** Hints for MCP clients: the tool only reads. */
export const readOnly = { readOnlyHint: true, openWorldHint: false };

/** What a repeated Idempotency-Key means. */
export const sameOperation = "A repeated key is the same operation and returns the same result.";
export const sameChange = "A repeated key is the same change.";
