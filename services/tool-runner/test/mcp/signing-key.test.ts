// Private keys from environment variables, and assertions signed with them, verified with Node's cryptography.
import assert from "node:assert/strict";
import { constants, generateKeyPairSync, verify, type KeyObject } from "node:crypto";
import { describe, test } from "node:test";
import { ParleySettingsSchema, type SigningAlgorithm } from "@parley/contracts";
import { z } from "zod";
import { providersOf } from "../../src/mcp/oauth/providers.ts";
import { signingKey } from "../../src/mcp/oauth/signing-key.ts";
import { mcpConfig } from "../../src/mcp/server-config.ts";

const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const ed25519 = generateKeyPairSync("ed25519");
const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();

function configOf(oauth: object, key: string) {
  const account = { grant: "client_credentials", client_id: "me", issuer: "https://as.example" };
  const server = { url: "https://mcp.example/mcp", oauth: { ...account, ...oauth } };
  const settings = ParleySettingsSchema.shape.mcp.parse({ servers: { server } });
  return mcpConfig(settings, { KEY: key }, { workspace: "/w", programFolder: "/", searchPath: "" });
}

/** The token request that the client sends to an authorization server with this issuer. */
async function asserted(key: string, algorithm?: SigningAlgorithm) {
  const oauth = { private_key_env: "KEY", ...(algorithm === undefined ? {} : { signing_algorithm: algorithm }) };
  const [plan] = configOf(oauth, key).plans;
  assert.ok(plan !== undefined);
  const params = new URLSearchParams();
  await providersOf(plan, null).auth?.addClientAuthentication?.(new Headers(), params, "https://as.example/token", {
    issuer: "https://as.example",
    authorization_endpoint: "https://as.example/authorize",
    token_endpoint: "https://as.example/token",
    response_types_supported: [],
  });
  const [head = "", claims = "", signature = ""] = (params.get("client_assertion") ?? "").split(".");
  const part = (text: string): unknown => JSON.parse(Buffer.from(text, "base64url").toString());
  return {
    type: params.get("client_assertion_type"),
    algorithm: z.looseObject({ alg: z.string() }).parse(part(head)).alg,
    claims: z.looseObject({ iss: z.string(), sub: z.string(), aud: z.string() }).parse(part(claims)),
    signed: Buffer.from(`${head}.${claims}`),
    signature: Buffer.from(signature, "base64url"),
  };
}

describe("a request for a token is signed", () => {
  test("with a P-256 key, for this authorization server only", async () => {
    const { type, algorithm, claims, signed, signature } = await asserted(pem(p256.privateKey));
    assert.equal(type, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    assert.deepEqual([claims.iss, claims.sub, claims.aud], ["me", "me", "https://as.example"]);
    assert.equal(algorithm, "ES256");
    assert.ok(verify("sha256", signed, { key: p256.publicKey, dsaEncoding: "ieee-p1363" }, signature));
  });

  test("with an RSA key and the configured algorithm", async () => {
    const plain = await asserted(pem(rsa.privateKey));
    assert.equal(plain.algorithm, "RS256");
    assert.ok(verify("sha256", plain.signed, rsa.publicKey, plain.signature));
    const padded = await asserted(pem(rsa.privateKey), "PS256");
    assert.equal(padded.algorithm, "PS256");
    const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
    assert.ok(verify("sha256", padded.signed, { key: rsa.publicKey, ...padding }, padded.signature));
  });

  test("with an Ed25519 key", async () => {
    const { algorithm, signed, signature } = await asserted(pem(ed25519.privateKey));
    assert.equal(algorithm, "EdDSA");
    assert.ok(verify(null, signed, ed25519.publicKey, signature));
  });
});

test("accepts PKCS #8, older PEM forms, a single line, and a JWK", () => {
  const forms = [
    pem(p256.privateKey),
    pem(p256.privateKey).replaceAll("\n", String.raw`\n`),
    p256.privateKey.export({ type: "sec1", format: "pem" }).toString(),
    JSON.stringify(p256.privateKey.export({ format: "jwk" })),
  ];
  for (const form of forms) {
    assert.deepEqual(signingKey(form), { pem: Buffer.from(pem(p256.privateKey)), algorithm: "ES256" });
  }
  const older = rsa.privateKey.export({ type: "pkcs1", format: "pem" }).toString();
  assert.deepEqual(signingKey(older), { pem: Buffer.from(pem(rsa.privateKey)), algorithm: "RS256" });
});

test("disables the server when its key is unusable, without revealing the key", () => {
  const secret = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----";
  const problems = (key: string, more: object = {}) =>
    configOf({ private_key_env: "KEY", ...more }, key).off.map(({ problem }) => problem);
  const cases: [string, object, RegExp][] = [
    [secret, {}, /^KEY in the tool-runner's environment contains no private key/],
    ["{", {}, /contains no private key/],
    [p256.publicKey.export({ type: "spki", format: "pem" }).toString(), {}, /contains no private key/],
    [pem(p256.privateKey), { signing_algorithm: "RS256" }, /cannot sign with RS256; it supports ES256/],
    ["", {}, /not set.*: KEY/],
  ];
  for (const [key, more, wanted] of cases) {
    const [problem = ""] = problems(key, more);
    assert.match(problem, wanted);
    assert.doesNotMatch(problem, /c2VjcmV0/);
  }
  assert.deepEqual(problems(pem(p256.privateKey)), []);
  assert.ok(configOf({ private_key_env: "KEY" }, pem(p256.privateKey)).secrets.includes(pem(p256.privateKey)));
});

test("uses a key instead of a secret for client credentials", () => {
  const wrong = [
    { grant: "authorization_code", private_key_env: "KEY" },
    { private_key_env: "KEY", client_secret_env: "SECRET" },
    { client_secret_env: "SECRET", signing_algorithm: "ES256" },
    {},
  ];
  for (const oauth of wrong) assert.throws(() => configOf(oauth, ""), z.ZodError, JSON.stringify(oauth));
});
