// The rights of one tool call, signed by the leader that requests it. A tool-runner passes the grant on to the store and cannot make
// or change one: the store derives author, audience and session from it, never from a payload.
//
// Text form: base64url(JSON) "." base64url(HMAC-SHA-256 of the first part). Only the leader and the store have the key, which is new in
// each epoch. A public-key signature takes 0.3 ms a call, 4 % of a tool round, and the only verifier is the store, which is trusted anyway.
import { z } from "zod";
import { toolClasses } from "./turns.ts";

/** Access of a call to documents (MEMORY.md, skills/ …). */
const documentRights = ["none", "read", "write"] as const;
export type DocumentRights = (typeof documentRights)[number];

export const GrantSchema = z.object({
  v: z.literal(1),
  /** The epoch whose key signed the grant. */
  epoch: z.number().int(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  /** The step of the turn. */
  n: z.number().int(),
  /** The user's turn that a sub-agent works for, or this turn. File checkpoints belong to it. */
  rootTurnId: z.uuid(),
  tool: z.string(),
  class: z.enum(toolClasses),
  /** `others`: private documents are not readable, and no document is writable. */
  audience: z.enum(["owner", "others"]),
  /** The turn has read untrusted content: what the call writes is marked with the author `untrusted`. */
  tainted: z.boolean(),
  documents: z.enum(documentRights),
  /** Milliseconds since 1970, by the leader's clock. */
  expiresAt: z.number().int(),
});
export type Grant = z.infer<typeof GrantSchema>;

/** A grant in its text form. Only the store verifies the signature. */
export const GrantToken = z
  .string()
  .max(2_000)
  .regex(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/);

/** The part of a token that is signed. */
export function encodeGrant(grant: Grant): string {
  return Buffer.from(JSON.stringify(grant)).toString("base64url");
}

export function joinGrant(signed: string, signature: Uint8Array): string {
  return `${signed}.${Buffer.from(signature).toString("base64url")}`;
}

export interface GrantParts {
  grant: Grant;
  /** What the signature covers. */
  signed: string;
  signature: Buffer;
}

/** Null for a text that is not a grant. Only the canonical base64url form is accepted, so each grant has exactly one text. */
export function splitGrant(token: string): GrantParts | null {
  const [signed = "", encoded = "", ...more] = token.split(".");
  const signature = Buffer.from(encoded, "base64url");
  if (more.length > 0 || signature.toString("base64url") !== encoded) return null;
  try {
    const { data: grant } = GrantSchema.safeParse(JSON.parse(Buffer.from(signed, "base64url").toString()));
    return grant === undefined ? null : { grant, signed, signature };
  } catch {
    return null;
  }
}
