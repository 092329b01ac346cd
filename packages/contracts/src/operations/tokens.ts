// Operations on the tokens of the API, and on the audit log.
import { z } from "zod";
import { ApiScopeSchema } from "../principals.ts";
import { ApiTokenSchema, auditList } from "../store/api-tokens.ts";
import { operation } from "./operation.ts";

export const tokensCreate = operation({
  name: "tokens.create",
  summary: "Create a named token of the API; the answer contains it once",
  role: "owner",
  input: z.strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be a short name of letters, digits, dots and dashes"),
    scopes: z.array(ApiScopeSchema).min(1).max(4),
    /** Omitted: it does not expire. */
    expiresInDays: z.number().int().min(1).max(3_650).optional(),
  }),
  output: ApiTokenSchema.extend({ token: z.string() }),
  audit: ["expiresInDays", "scopes", "name"],
  http: {
    method: "POST",
    path: "/api/tokens",
    answers: { 201: "The token. Only its hash is stored", 409: "conflict: a valid token has this name" },
  },
});

export const tokensList = operation({
  name: "tokens.list",
  summary: "The named tokens of the API, without their secrets",
  role: "owner",
  scope: "admin",
  input: z.strictObject({}),
  output: z.object({ tokens: z.array(ApiTokenSchema) }),
  http: { method: "GET", path: "/api/tokens", answers: { 200: "The tokens, newest first" } },
});

export const tokensRevoke = operation({
  name: "tokens.revoke",
  summary: "Revoke a named token of the API",
  role: "owner",
  input: z.strictObject({ name: z.string().min(1).max(64) }),
  output: z.object({ revoked: z.boolean() }),
  audit: ["name"],
  http: { method: "POST", path: "/api/tokens/revoke", answers: { 200: "Whether a valid token had this name" } },
});

export const auditEntries = operation({
  name: "audit.list",
  summary: "Who changed permissions, people, documents, settings and tokens, decided approvals, or was refused",
  role: "owner",
  scope: "admin",
  input: z.strictObject({
    before: z.coerce.number().int().min(1).optional(),
    action: z.string().min(1).max(64).optional(),
    limit: z.coerce.number().int().min(1).max(1_000).default(100),
  }),
  output: auditList.output,
  http: { method: "GET", path: "/api/audit", answers: { 200: "The entries, newest first" } },
});
