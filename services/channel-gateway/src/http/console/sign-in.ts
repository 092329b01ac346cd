// Sign-in to the web console: a token or a one-time code is exchanged for a cookie. The store holds the hash of the cookie's secret, so
// that a sign-in is valid at every replica and ends with the token that it came from.
import { randomBytes } from "node:crypto";
import { store } from "@parley/contracts";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { sha256Hex } from "../../channels/digest.ts";
import { ownerAccess } from "../api-access.ts";
import { tokenAccepted } from "../access.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoints } from "../endpoint.ts";
import { HttpError, invalid } from "../errors.ts";
import { cookieCounts, cookieHeader, cookieSecret } from "./cookie.ts";

const codeTtlMs = 15 * 60_000;
const sessionTtlMs = 30 * 24 * 60 * 60_000;
/** How long a replica trusts a session without asking the store: a sign-out takes effect everywhere within this time. */
const cacheMs = 30_000;
/** Sign-in attempts per minute from one address. */
const attemptsPerMinute = 20;
/** Lookups of unknown cookies per minute in this process; further ones count as no cookie. */
const lookupsPerMinute = 1_200;

type Session = { holder: string; expiresAt: string };

/** Finds the sessions of cookies, with a cache in this process. */
export class ConsoleSessions {
  readonly #deps: Pick<HttpDeps, "bus" | "http">;
  readonly #known = new LRUCache<string, Session>({ max: 1_000, ttl: cacheMs });
  #lookups = { count: 0, sinceMs: 0 };

  constructor(deps: Pick<HttpDeps, "bus" | "http">) {
    this.#deps = deps;
  }

  /** The session of a cookie's secret; null: unknown, expired, or its token is no longer accepted. Rejects when the store is unavailable. */
  async find(secret: string): Promise<Session | null> {
    const sha256 = sha256Hex(secret);
    const session = this.#known.get(sha256) ?? (await this.#ask(sha256));
    if (session === null || Date.parse(session.expiresAt) <= Date.now()) return null;
    return this.#deps.http.tokenHashes.some((hash) => hash.startsWith(session.holder)) ? session : null;
  }

  forget(secret: string): void {
    this.#known.delete(sha256Hex(secret));
  }

  async #ask(sha256: string): Promise<Session | null> {
    const now = performance.now();
    if (now - this.#lookups.sinceMs > 60_000) this.#lookups = { count: 0, sinceMs: now };
    if (++this.#lookups.count > lookupsPerMinute) return null;
    const { session } = await this.#deps.bus.request(store.consoleSessionGet, { sha256 });
    if (session !== null) this.#known.set(sha256, session);
    return session;
  }
}

/** The holder of the token that the request's cookie came from; null: none, or it does not count for this request. */
export async function cookieHolder(request: FastifyRequest, sessions: ConsoleSessions): Promise<string | null> {
  const secret = usableSecret(request);
  return secret === null ? null : ((await sessions.find(secret))?.holder ?? null);
}

function usableSecret({ method, headers }: FastifyRequest): string | null {
  if (headers.authorization !== undefined || !cookieCounts(method, headers)) return null;
  return cookieSecret(headers);
}

const SignIn = z.union([
  z.strictObject({ token: z.string().min(1).max(1_000) }),
  z.strictObject({ code: z.string().min(1).max(200) }),
]);
const Opened = z.object({ expiresAt: z.string() });

export function signInRoutes(
  app: FastifyInstance,
  endpoints: Endpoints,
  deps: HttpDeps,
  sessions: ConsoleSessions,
): void {
  endpoints.add(
    {
      method: "POST",
      url: "/api/console/codes",
      summary: "Create a one-time code that signs a browser in to the console",
      description: "Open `/#code=<code>` in the browser. The code is valid for 15 minutes and for one sign-in.",
      answers: { 200: { description: "The code", schema: z.object({ code: z.string(), expiresAt: z.string() }) } },
    },
    async ({ request }) => {
      if (request.access !== ownerAccess)
        throw new HttpError(403, "forbidden", "only the token of the configuration signs a browser in");
      const code = randomBytes(32).toString("base64url");
      const expiresAt = new Date(Date.now() + codeTtlMs).toISOString();
      const holder = holderOf(request);
      await deps.bus.request(store.consoleCodePut, { sha256: sha256Hex(code), holder, ttlMs: codeTtlMs });
      return { code, expiresAt };
    },
  );

  endpoints.document({
    method: "POST",
    url: "/api/console/session",
    summary: "Sign a browser in: exchange the token or a one-time code for a cookie",
    open: true,
    body: SignIn,
    answers: {
      200: { description: "Signed in; the cookie is HttpOnly and SameSite=Strict", schema: Opened },
      401: { description: "invalid_token, invalid_code" },
      429: { description: "rate_limited: too many attempts from this address" },
    },
  });
  const hashes = deps.http.tokenHashes.map((hash) => Buffer.from(hash, "hex"));
  app.post(
    "/api/console/session",
    { config: { open: true, rateLimit: { max: attemptsPerMinute, timeWindow: 60_000 } } },
    async (request, reply) => {
      const input = SignIn.safeParse(request.body);
      if (!input.success) throw invalid(input.error);
      const from = credentialOf(input.data, hashes);
      const secret = randomBytes(32).toString("base64url");
      const opened = await deps.bus.request(store.consoleSessionOpen, {
        sha256: sha256Hex(secret),
        ttlMs: sessionTtlMs,
        from,
      });
      if (opened.session === null) {
        throw new HttpError(
          401,
          "invalid_code",
          "this sign-in link was used already or has expired; `npx parley console` prints a new one",
        );
      }
      setCookie(request, reply, secret, sessionTtlMs / 1_000);
      return { expiresAt: opened.session.expiresAt };
    },
  );

  endpoints.add(
    {
      method: "DELETE",
      url: "/api/console/session",
      scope: null,
      summary: "Sign this browser out",
      answers: { 204: { description: "Signed out" } },
    },
    async ({ request, reply }) => {
      const secret = cookieSecret(request.headers);
      if (secret !== null) {
        await deps.bus.request(store.consoleSessionClose, { sha256: sha256Hex(secret) });
        sessions.forget(secret);
      }
      setCookie(request, reply, "", 0);
      return reply.code(204).send();
    },
  );
}

function credentialOf(input: z.infer<typeof SignIn>, hashes: readonly Buffer[]) {
  if ("code" in input) return { codeSha256: sha256Hex(input.code) };
  if (tokenAccepted(input.token, hashes)) return { holder: sha256Hex(input.token).slice(0, 16) };
  throw new HttpError(401, "invalid_token", "this token is not accepted; `npm start` prints in which file it is");
}

function setCookie({ headers }: FastifyRequest, reply: FastifyReply, secret: string, maxAgeSeconds: number): void {
  const { host, origin } = headers;
  reply.header("set-cookie", cookieHeader(secret, { host, origin, maxAgeSeconds }));
  reply.header("cache-control", "no-store");
}

function holderOf({ holder }: FastifyRequest): string {
  if (holder === null) throw new HttpError(401, "unauthorized", "a valid token is required");
  return holder;
}
