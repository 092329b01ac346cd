// Named tokens of the API, and the audit log.
import { randomBytes } from "node:crypto";
import { operations, store } from "@parley/contracts";
import { sha256Hex } from "../channels/digest.ts";
import { implement } from "./operation.ts";

const dayMs = 24 * 60 * 60_000;

/** The form of a named token: nothing else is looked up in the store. The prefix lets scanners of leaked secrets find it. */
export const namedTokenPattern = /^parley_[A-Za-z0-9_-]{43}$/;

export const tokenOperations = [
  implement(operations.tokensCreate, async ({ name, scopes, expiresInDays }, { deps, actor }) => {
    const token = `parley_${randomBytes(32).toString("base64url")}`;
    const { token: stored } = await deps.bus.request(store.tokenCreate, {
      name,
      sha256: sha256Hex(token),
      scopes: [...new Set(scopes)],
      ttlMs: expiresInDays === undefined ? null : expiresInDays * dayMs,
      by: actor,
    });
    return { ...stored, token };
  }),

  implement(operations.tokensList, (_input, { deps }) => deps.bus.request(store.tokenList, {})),

  implement(operations.tokensRevoke, ({ name }, call) =>
    call.deps.bus.request(store.tokenRevoke, { opId: call.operationId(`token:revoke:${name}`), name }),
  ),

  implement(operations.auditEntries, (input, { deps }) => deps.bus.request(store.auditList, input)),
];
