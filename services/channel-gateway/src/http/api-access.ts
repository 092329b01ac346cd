// Who calls the API: the holder of the token of the configuration, who may do everything, or of a named token, which has scopes. Named
// tokens are in the store, by their hashes.
import { includesScope, newId, store, type ApiScope } from "@parley/contracts";
import type { FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { sha256Hex } from "../channels/digest.ts";
import type { ApiAccess } from "../operations/operation.ts";
import { missingScope } from "../operations/registry.ts";
import { namedTokenPattern } from "../operations/tokens.ts";
import type { HttpDeps } from "./deps.ts";
import { HttpError } from "./errors.ts";

/** The holder of the token of the configuration, and a browser that signed in with it. */
export const ownerAccess: ApiAccess = { name: "owner", scopes: ["admin"] };

/** How long a replica trusts a token without asking the store: a revocation takes effect everywhere within this time. */
const cacheMs = 10_000;
/** Lookups per minute in this process; further ones count as unknown tokens, so that guessing does not load the store. */
const lookupsPerMinute = 1_200;

/** The caller of a request that has passed the listener's checks. */
export function accessOf({ access }: FastifyRequest): ApiAccess {
  if (access === null) throw new HttpError(401, "unauthorized", "a valid token is required");
  return access;
}

/** Finds named tokens, with a cache in this process. */
export class NamedTokens {
  readonly #bus: HttpDeps["bus"];
  readonly #known = new LRUCache<string, { access: ApiAccess | null }>({ max: 10_000, ttl: cacheMs });
  #lookups = { count: 0, sinceMs: 0 };

  constructor({ bus }: Pick<HttpDeps, "bus">) {
    this.#bus = bus;
  }

  /** The rights of a token; null: it is unknown, expired or revoked. Rejects when the store is unavailable. */
  async find(token: string): Promise<ApiAccess | null> {
    if (!namedTokenPattern.test(token)) return null;
    const sha256 = sha256Hex(token);
    const known = this.#known.get(sha256);
    if (known !== undefined) return known.access;
    const now = performance.now();
    if (now - this.#lookups.sinceMs > 60_000) this.#lookups = { count: 0, sinceMs: now };
    if (++this.#lookups.count > lookupsPerMinute) return null;
    const { token: found } = await this.#bus.request(store.tokenFind, { sha256 });
    const access = found === null ? null : { name: `token ${found.name}`, scopes: found.scopes };
    // A token never outlives its expiry in the cache.
    const ttl = Math.min(cacheMs, found?.expiresAt == null ? cacheMs : Date.parse(found.expiresAt) - Date.now());
    if (ttl > 0) this.#known.set(sha256, { access }, { ttl });
    return access;
  }
}

/** The scope that a route requires; null: any valid token, because the route checks for itself. */
function routeScope({ method, routeOptions }: FastifyRequest): ApiScope | null {
  const { scope } = routeOptions.config;
  if (scope !== undefined) return scope;
  return method === "GET" ? "read" : "admin";
}

/** Throws HttpError when the caller's token lacks the scope of the route. */
export function checkRouteScope(request: FastifyRequest): void {
  const wanted = routeScope(request);
  if (wanted === null || includesScope(accessOf(request).scopes, wanted)) return;
  const what = `${request.method} ${request.routeOptions.url ?? ""}`;
  throw new HttpError(403, "scope_missing", missingScope(what, wanted));
}

/** The audit log gets at most this many refused requests a minute; the metric `parley_http_refused_total` counts all. */
const recordedPerMinute = 300;

/** Records refused logins and missing scopes in the audit log: each caller, address and route once a minute. */
export class RefusalRecord {
  readonly #deps: Pick<HttpDeps, "bus" | "log">;
  readonly #written = new LRUCache<string, true>({ max: recordedPerMinute, ttl: 60_000 });

  constructor(deps: Pick<HttpDeps, "bus" | "log">) {
    this.#deps = deps;
  }

  /** Never rejects, and does not delay the response. `actor`: who it was, as far as that is known. */
  refused(request: FastifyRequest, action: "login.refused" | "scope.refused"): void {
    const { method, ip, access, routeOptions } = request;
    const target = { method, route: routeOptions.url ?? "none", address: ip };
    const entry = { actor: access?.name ?? "unknown", action, target, outcome: "refused" as const };
    const key = JSON.stringify(entry);
    this.#written.purgeStale();
    if (this.#written.has(key) || this.#written.size >= recordedPerMinute) return;
    this.#written.set(key, true);
    this.#deps.bus
      .request(store.auditAppend, { opId: newId(), ...entry })
      .catch((error: unknown) => this.#deps.log.warn({ err: error, action }, "audit entry not written"));
  }
}
