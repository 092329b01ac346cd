// Tokens of an identity provider as callers of the API: signature, issuer, audience and expiry are verified, and a claim gives the scopes.
import { apiScopes, type OidcSettings } from "@parley/contracts";
import type { JWTPayload, JWTVerifyGetKey } from "jose";
import { z } from "zod";
import type { Logger } from "@parley/chassis";
import type { ApiAccess } from "../operations/operation.ts";
import { HttpError } from "./errors.ts";

type Provider = NonNullable<OidcSettings>;

/** Three parts in base64url: only such tokens are verified. */
const jwtPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** Only asymmetric signatures: the provider's public keys cannot sign. */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** Difference that the clocks of the provider and of this machine may have. */
const clockToleranceSeconds = 30;
const discoveryTimeoutMs = 5_000;

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url() });

/** Who presented a valid token. */
interface OidcCaller {
  access: ApiAccess;
  /** The same for all tokens of one person or program, however often they get a new one. */
  identity: string;
}

/** Verifies tokens of one provider. Its keys are fetched when they are first needed, and again when a token names an unknown one. */
export class OidcVerifier {
  readonly #provider: Provider;
  readonly #log: Logger;
  #keys: Promise<JWTVerifyGetKey> | undefined;

  constructor(provider: Provider, log: Logger) {
    this.#provider = provider;
    this.#log = log;
  }

  /**
   * The rights of the holder; null: it is no token of this provider, or not valid. A valid token without a value that gives a scope has
   * none. Throws HttpError 503 when the provider's keys cannot be fetched.
   */
  async find(token: string): Promise<OidcCaller | null> {
    if (!jwtPattern.test(token)) return null;
    const { issuer, audience } = this.#provider;
    const keys = await this.#keysOf();
    const { jwtVerify } = await import("jose");
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms,
        clockTolerance: clockToleranceSeconds,
        requiredClaims: ["exp", "sub"],
      });
      return callerIn(payload, this.#provider);
    } catch (error) {
      if (isUnreachable(error)) throw this.#unavailable(error);
      // The message names the failed check, never the token.
      this.#log.debug({ err: error }, "token of the identity provider refused");
      return null;
    }
  }

  async #keysOf(): Promise<JWTVerifyGetKey> {
    this.#keys ??= discover(this.#provider.issuer);
    try {
      return await this.#keys;
    } catch (error) {
      // The next request tries again.
      this.#keys = undefined;
      throw this.#unavailable(error);
    }
  }

  #unavailable(error: unknown): HttpError {
    this.#log.warn({ err: error, issuer: this.#provider.issuer }, "keys of the identity provider not available");
    return new HttpError(503, "unavailable", "the keys of the identity provider cannot be fetched; try again");
  }
}

async function discover(issuer: string): Promise<JWTVerifyGetKey> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(url, { signal: AbortSignal.timeout(discoveryTimeoutMs), redirect: "error" });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  const keysUrl = keysUrlIn(await response.json(), issuer);
  // Loaded only where a provider is configured.
  const { createRemoteJWKSet } = await import("jose");
  return createRemoteJWKSet(keysUrl, { timeoutDuration: discoveryTimeoutMs });
}

/** The address of the keys in a discovery document. Throws when the document is of another issuer, or its keys have less protection. Pure. */
export function keysUrlIn(document: unknown, issuer: string): URL {
  const found = Discovery.parse(document);
  if (found.issuer !== issuer) throw new Error(`the discovery document is of the issuer ${found.issuer}`);
  const url = new URL(found.jwks_uri);
  if (url.protocol !== "https:" && new URL(issuer).protocol !== url.protocol)
    throw new Error(`the keys at ${found.jwks_uri} can be replaced on their way: not https`);
  return url;
}

/** The key set could not be fetched, as opposed to a token that fails a check. */
function isUnreachable(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return (
    code === "ERR_JWKS_TIMEOUT" ||
    code === "ERR_JOSE_GENERIC" ||
    (error instanceof TypeError && error.message === "fetch failed")
  );
}

/** The rights that the claims give. Their holder chooses some names, so the audit log has the subject first, which only the provider sets. */
function callerIn(payload: JWTPayload, { issuer, claim, name_claim: nameClaim, scopes }: Provider): OidcCaller {
  const roles = new Set(textsIn(claimAt(payload, claim)));
  const { sub = "" } = payload;
  const name = nameClaim === "sub" ? undefined : claimAt(payload, nameClaim);
  const named = typeof name === "string" && name !== "" ? ` (${printable(name)})` : "";
  return {
    identity: JSON.stringify([issuer, sub]),
    access: {
      name: `oidc ${printable(sub)}${named}`,
      scopes: apiScopes.filter((scope) => scopes[scope].some((value) => roles.has(value))),
    },
  };
}

function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ").slice(0, 100);
}

/** The claim itself, or a claim inside of objects. */
function claimAt(payload: JWTPayload, path: string): unknown {
  if (Object.hasOwn(payload, path)) return payload[path];
  let at: unknown = payload;
  for (const part of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<string, unknown>)[part];
  }
  return at;
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return value.split(" ").filter((each) => each !== "");
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}
