// Sign-in to the HTTP API by tokens of an identity provider (OpenID Connect).
import { z } from "zod";
import { apiScopes } from "../principals.ts";

/** Values of the claim that give a scope, for example names of groups. */
const values = z.array(z.string().min(1).max(256)).max(100).default([]);

/** Undefined: only tokens of Parley. */
export const OidcSettings = z
  .strictObject({
    /** The issuer's URL, exactly as in the claim `iss`. Its keys are found by OpenID Connect Discovery. */
    issuer: z.url({ protocol: /^https?$/ }),
    /** The claim `aud` that a token must contain. */
    audience: z.string().min(1).max(256),
    /** The claim with the roles or groups of the caller: a text with spaces, or a list. Dots lead into objects: `realm_access.roles`. */
    claim: z.string().min(1).max(128).default("roles"),
    /** The claim that names the caller in the audit log. */
    name_claim: z.string().min(1).max(128).default("sub"),
    /** The values of `claim` that give each scope. A caller without any of them is refused. */
    scopes: z.strictObject({ talk: values, read: values, approve: values, admin: values }),
  })
  .refine(({ scopes }) => apiScopes.some((scope) => scopes[scope].length > 0), {
    path: ["scopes"],
    error: "must give at least one scope to a value of the claim",
  })
  .optional();
export type OidcSettings = z.infer<typeof OidcSettings>;
