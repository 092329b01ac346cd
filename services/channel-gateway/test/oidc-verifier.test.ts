// Tokens of an identity provider as an attacker would make them: algorithms, embedded keys, times, key rotation, roles and names.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, mock, test } from "node:test";
import { createLogger, parseSettings } from "@parley/chassis";
import { Cleanup } from "@parley/testing";
import {
  exportJWK,
  exportSPKI,
  generateKeyPair,
  SignJWT,
  type CryptoKey,
  type JWK,
  type JWTHeaderParameters,
} from "jose";
import { keysUrlIn, OidcVerifier } from "../src/http/oidc.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

interface Pair {
  privateKey: CryptoKey;
  publicKey: CryptoKey;
  jwk: JWK;
}

let issuer: string;
let published: JWK[] = [];
let keyFetches = 0;
let first: Pair;
const log = createLogger({ service: "test", replica: "test", level: "silent" });
const startMs = Date.parse("2026-01-01T00:00:00Z");

async function newPair(kid: string, alg = "ES256"): Promise<Pair> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, jwk: { ...(await exportJWK(pair.publicKey)), kid, use: "sig" } };
}

before(async () => {
  const server = createServer((request, response) => {
    if (request.url === "/keys") keyFetches += 1;
    const document = request.url === "/keys" ? { keys: published } : { issuer, jwks_uri: `${issuer}/keys` };
    response.setHeader("content-type", "application/json").end(JSON.stringify(document));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  first = await newPair("first");
  mock.timers.enable({ apis: ["Date"], now: startMs });
});
beforeEach(() => {
  mock.timers.setTime(startMs);
  published = [first.jwk];
});

function verifier(settings = ""): OidcVerifier {
  const text = `[oidc]\nissuer = "${issuer}"\naudience = "parley"\n${settings}\n[oidc.scopes]\nread = ["viewer"]\nadmin = ["operator"]\n`;
  const { oidc } = parseSettings(text, "parley.toml");
  assert.ok(oidc !== undefined);
  return new OidcVerifier(oidc, log);
}

const now = (): number => Math.floor(Date.now() / 1_000);
const claims = (given: Record<string, unknown> = {}): Record<string, unknown> => ({
  iss: issuer,
  aud: "parley",
  sub: "4711",
  exp: now() + 300,
  roles: ["operator"],
  ...given,
});
const sign = (
  payload: Record<string, unknown> = claims(),
  { privateKey }: Pick<Pair, "privateKey"> = first,
  header: JWTHeaderParameters = { alg: "ES256", kid: "first" },
): Promise<string> => new SignJWT(payload).setProtectedHeader(header).sign(privateKey);

test("takes no key, address or algorithm from the token", async () => {
  const oidc = verifier();
  const own = await newPair("own");
  const rsa = await newPair("rsa", "RS256");
  published = [first.jwk, rsa.jwk];
  const embedded: Record<string, object> = {
    jwk: { jwk: own.jwk },
    "jwk without kid": { jwk: own.jwk, kid: undefined },
    jku: { jku: `${issuer}/keys` },
    x5u: { x5u: `${issuer}/keys` },
  };
  for (const [what, header] of Object.entries(embedded)) {
    const given = { alg: "ES256", kid: "first", ...header } as JWTHeaderParameters;
    assert.equal(await oidc.find(await sign(claims(), own, given)), null, what);
  }
  const symmetric = async (secret: Uint8Array, kid: string) =>
    new SignJWT(claims()).setProtectedHeader({ alg: "HS256", kid }).sign(secret);
  for (const pair of [first, rsa]) {
    const secrets = [await exportSPKI(pair.publicKey), JSON.stringify(pair.jwk), pair.jwk.n ?? pair.jwk.x ?? ""];
    for (const secret of secrets)
      assert.equal(
        await oidc.find(await symmetric(Buffer.from(secret), pair.jwk.kid ?? "")),
        null,
        secret.slice(0, 20),
      );
  }
  const [, payload = ""] = (await sign()).split(".");
  for (const alg of ["none", "None", "NONE", "HS256", "ES256"]) {
    const header = Buffer.from(JSON.stringify({ alg, kid: "first" })).toString("base64url");
    for (const signature of ["", "AA", "A".repeat(86)])
      assert.equal(await oidc.find(`${header}.${payload}.${signature}`), null, `${alg} ${signature.length}`);
  }
  // The key of one algorithm for another one.
  assert.equal(await oidc.find(await sign(claims(), rsa, { alg: "RS256", kid: "first" })), null);
  const critical = { alg: "ES256", kid: "first", crit: ["b64"], b64: true } as JWTHeaderParameters;
  const unknown = Buffer.from(JSON.stringify({ ...critical, crit: ["exempt"], exempt: true })).toString("base64url");
  assert.equal(await oidc.find([unknown, ...(await sign()).split(".").slice(1)].join(".")), null);
  assert.deepEqual((await oidc.find(await sign()))?.access.scopes, ["admin"]);
});

test("requires expiry, subject, issuer and audience, and accepts clocks that differ by 30 s", async () => {
  const oidc = verifier();
  const accepted = async (given: Record<string, unknown>) => (await oidc.find(await sign(claims(given)))) !== null;
  for (const [given, wanted] of [
    [{ exp: now() - 29 }, true],
    [{ exp: now() - 31 }, false],
    [{ nbf: now() + 29 }, true],
    [{ nbf: now() + 31 }, false],
    [{ exp: undefined }, false],
    [{ exp: `${now() + 300}` }, false],
    [{ sub: undefined }, false],
    [{ iss: undefined }, false],
    [{ iss: `${issuer}/` }, false],
    [{ aud: undefined }, false],
    [{ aud: ["other", "parley"] }, true],
    [{ aud: ["other"] }, false],
    [{ aud: "PARLEY" }, false],
  ] as const)
    assert.equal(await accepted(given), wanted, JSON.stringify(given));
});

test("follows the provider's keys: a new one immediately, a removed one within ten minutes, and no fetch per forged token", async () => {
  const oidc = verifier();
  assert.ok((await oidc.find(await sign())) !== null);
  const second = await newPair("second");
  published = [second.jwk];
  mock.timers.tick(31_000);
  const bySecond = () => sign(claims(), second, { alg: "ES256", kid: "second" });
  assert.ok((await oidc.find(await bySecond())) !== null);
  // The fetch for the second key also removed the first one.
  assert.equal(await oidc.find(await sign()), null);

  const fetched = keyFetches;
  for (let number = 0; number < 20; number += 1)
    assert.equal(await oidc.find(await sign(claims(), first, { alg: "ES256", kid: `forged-${number}` })), null);
  assert.ok(keyFetches - fetched <= 1, `${keyFetches - fetched} fetches`);

  published = [first.jwk];
  mock.timers.tick(601_000);
  assert.equal(await oidc.find(await bySecond()), null);
});

test("gives scopes only for exact values of the claim, by default of `roles`", async () => {
  const oidc = verifier();
  const scopesOf = async (given: Record<string, unknown>) =>
    (await oidc.find(await sign(claims(given))))?.access.scopes;
  assert.deepEqual(await scopesOf({ roles: ["viewer", 7, null] }), ["read"]);
  assert.deepEqual(await scopesOf({ roles: "viewer operator" }), ["read", "admin"]);
  for (const roles of [
    undefined,
    null,
    true,
    1,
    "",
    [],
    ["Operator"],
    ["operator "],
    ["oper", "ator"],
    { operator: true },
    [["operator"]],
  ])
    assert.deepEqual(await scopesOf({ roles }), [], JSON.stringify(roles));
  assert.deepEqual(await scopesOf({ roles: undefined, role: ["operator"], groups: ["operator"], scope: "admin" }), []);
  const nested = verifier('claim = "a.constructor.name"');
  assert.deepEqual((await nested.find(await sign(claims({ a: {} }))))?.access.scopes, []);
});

test("names the subject first, and what its holder may choose after it, in one line", async () => {
  const nameOf = async (settings: string, given: Record<string, unknown>) =>
    (await verifier(settings).find(await sign(claims(given))))?.access.name;
  assert.equal(await nameOf("", {}), "oidc 4711");
  assert.equal(await nameOf('name_claim = "name"', { name: "Ann Smith" }), "oidc 4711 (Ann Smith)");
  const posing = { name: "x\n2026-01-01 owner (API)\u202e\u2028", email: "a" };
  assert.equal(await nameOf('name_claim = "name"', posing), "oidc 4711 (x 2026-01-01 owner (API)  )");
  for (const name of [undefined, "", 7, ["Ann"]])
    assert.equal(await nameOf('name_claim = "name"', { name }), "oidc 4711", JSON.stringify(name));
});

test("takes keys only from the provider itself, and not with less protection than its own", () => {
  const document = (jwksUri: string, from = "https://id.example") => ({ issuer: from, jwks_uri: jwksUri });
  assert.equal(keysUrlIn(document("https://keys.example/1"), "https://id.example").href, "https://keys.example/1");
  assert.throws(() => keysUrlIn(document("http://id.example/1"), "https://id.example"), /not https/);
  assert.throws(() => keysUrlIn(document("file:///etc/keys"), "https://id.example"), /not https/);
  assert.throws(() => keysUrlIn(document("https://keys.example/1"), "https://id.example/other"), /issuer/);
  assert.throws(() => keysUrlIn(document("keys"), "https://id.example"));
  assert.equal(keysUrlIn(document("http://id/1", "http://id"), "http://id").href, "http://id/1");
});
