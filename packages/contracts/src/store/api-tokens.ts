// Named tokens of the API, and the record of what was changed by whom. The store holds only hashes of tokens.
import { z } from "zod";
import { ApiScopeSchema } from "../principals.ts";
import { Empty, optionalOpId, storeRequest } from "./shared.ts";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const ApiTokenSchema = z.object({
  name: z.string(),
  scopes: z.array(ApiScopeSchema),
  createdAt: z.string(),
  /** Who created it. */
  createdBy: z.string(),
  /** Null: it does not expire. */
  expiresAt: z.string().nullable(),
  /** With a resolution of a minute; null: never. */
  usedAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
});
export type ApiToken = z.infer<typeof ApiTokenSchema>;

export const tokenCreate = storeRequest({
  subject: "store.token.create",
  clients: ["channel-gateway"],
  doc: "Store a new token of the API by its hash. CONFLICT: a valid token has this name.",
  input: z.object({
    name: z.string().min(1).max(64),
    sha256,
    scopes: z.array(ApiScopeSchema).min(1),
    /** Null: it does not expire. */
    ttlMs: z.number().int().positive().nullable(),
    by: z.string(),
  }),
  output: z.object({ token: ApiTokenSchema }),
});

export const tokenList = storeRequest({
  subject: "store.token.list",
  clients: ["channel-gateway"],
  doc: "List the tokens of the API, newest first, including revoked and expired ones.",
  input: Empty,
  output: z.object({ tokens: z.array(ApiTokenSchema) }),
});

export const tokenRevoke = storeRequest({
  subject: "store.token.revoke",
  clients: ["channel-gateway"],
  doc: "Revoke the valid token with this name.",
  input: z.object({ opId: optionalOpId, name: z.string() }),
  output: z.object({ revoked: z.boolean() }),
});

export const tokenFind = storeRequest({
  subject: "store.token.find",
  clients: ["channel-gateway"],
  doc: "Get the valid token with this hash, and note its use. Null: unknown, expired or revoked.",
  input: z.object({ sha256 }),
  output: z.object({ token: ApiTokenSchema.nullable() }),
});

export const AuditEntrySchema = z.object({
  /** Grows with each entry. */
  n: z.number().int(),
  at: z.string(),
  /** Who did it: a person with their channel, or a token. */
  actor: z.string(),
  /** The name of the operation, for example `approvals.decide`, or `login.refused`. */
  action: z.string(),
  /** What it was done to, as fields of the operation's input; texts and secrets are not among them. */
  target: z.record(z.string(), z.unknown()),
  /** `requested`: written before it was done. `failed`: an earlier request had no effect. */
  outcome: z.enum(["requested", "failed", "refused"]),
});
export type AuditEntry = z.infer<typeof AuditEntrySchema>;

export const auditAppend = storeRequest({
  subject: "store.audit.append",
  clients: ["channel-gateway"],
  doc: "Append an entry to the audit log. Entries are never changed or deleted.",
  input: AuditEntrySchema.omit({ n: true, at: true }).extend({
    opId: optionalOpId,
  }),
  output: Empty,
});

export const auditList = storeRequest({
  subject: "store.audit.list",
  clients: ["channel-gateway"],
  doc: "List entries of the audit log, newest first.",
  input: z.object({
    /** Only entries before this one. */
    before: z.number().int().optional(),
    /** Only actions that begin with this. */
    action: z.string().max(64).optional(),
    limit: z.number().int().min(1).max(1_000),
  }),
  output: z.object({ entries: z.array(AuditEntrySchema) }),
});
