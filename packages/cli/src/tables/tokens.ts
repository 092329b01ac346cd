// Formats tokens of the API and the audit log for people. Pure.

import { asTyped } from "../io/command-name.ts";
import type { Answer, api } from "../cluster/api.ts";
import type { Paint } from "../io/io.ts";
import { duration, listing, localTime, oneLine } from "./format.ts";

type Token = Answer<typeof api.tokens>["tokens"][number];
type Entry = Answer<typeof api.audit>["entries"][number];

function stateOf({ revokedAt, expiresAt }: Token, now: number): string {
  if (revokedAt !== null) return "revoked";
  if (expiresAt === null) return "valid";
  return Date.parse(expiresAt) <= now ? "expired" : "valid";
}

export function tokensTable(tokens: readonly Token[], paint: Paint, now: number): string {
  if (tokens.length === 0)
    return asTyped("There is no named token. Create one: parley tokens create <name> --scope talk");
  return listing(
    tokens,
    {
      NAME: ({ name }) => name,
      STATE: (each) => stateOf(each, now),
      SCOPES: ({ scopes }) => scopes.join(" "),
      CREATED: ({ createdAt }) => localTime(createdAt),
      BY: ({ createdBy }) => oneLine(createdBy, 40),
      EXPIRES: ({ expiresAt }) => (expiresAt === null ? "never" : localTime(expiresAt)),
      "LAST USED": ({ usedAt }) => (usedAt === null ? "never" : `${duration((now - Date.parse(usedAt)) / 1_000)} ago`),
    },
    paint,
  );
}

export function auditTable(entries: readonly Entry[], paint: Paint): string {
  if (entries.length === 0) return "The audit log has no such entry.";
  return listing(
    entries,
    {
      TIME: ({ at }) => localTime(at),
      WHO: ({ actor }) => oneLine(actor, 40),
      ACTION: ({ action, outcome }) => (outcome === "requested" ? action : `${action} ${outcome.toUpperCase()}`),
      TARGET: ({ target }) => oneLine(JSON.stringify(target), 120),
    },
    paint,
  );
}
