// What the holder of an API token may do.
import { z } from "zod";

/**
 * `talk`: send messages, and stop them. `read`: read sessions, documents, settings and the state. `approve`: decide approvals. `admin`:
 * everything, including the other three.
 */
export const apiScopes = ["talk", "read", "approve", "admin"] as const;
export const ApiScopeSchema = z.enum(apiScopes);
export type ApiScope = z.infer<typeof ApiScopeSchema>;

/** Whether the scopes include the right to do what requires `wanted`. */
export function includesScope(scopes: readonly ApiScope[], wanted: ApiScope): boolean {
  return scopes.includes("admin") || scopes.includes(wanted);
}
