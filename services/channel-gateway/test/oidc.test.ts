// Sign-in to the HTTP API by tokens of an identity provider: a local issuer with discovery and keys. Its other half: oidc-verifier.test.ts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey, type JWK } from "jose";

const cleanup = new Cleanup();
const audience = "parley-api";
/** Of the API, for each caller: more than the other tests need. */
const ratePerMinute = 100;
let issuer: string;
let cluster: TestCluster;
/** The keys that the issuer publishes. */
let published: JWK[] = [];
let fetches = 0;

async function newKey(kid: string, publish = true): Promise<CryptoKey> {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  if (publish) published = [...published, { ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" }];
  return privateKey;
}

let key: CryptoKey;

before(async () => {
  const server = createServer((request, response) => {
    fetches += 1;
    response.setHeader("content-type", "application/json");
    if (request.url === "/.well-known/openid-configuration")
      response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }));
    else if (request.url === "/keys") response.end(JSON.stringify({ keys: published }));
    else response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  key = await newKey("one");
  cluster = await startTestCluster(cleanup, {
    processes: [],
    env: { "channel-gateway": { PARLEY_HTTP_RATE_PER_MINUTE: String(ratePerMinute) } },
    settings: `[oidc]
issuer = "${issuer}"
audience = "${audience}"
claim = "realm_access.roles"
name_claim = "email"
[oidc.scopes]
read = ["viewer", "operator"]
admin = ["operator"]
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

interface Claims {
  roles?: string[];
  issuer?: string;
  audience?: string;
  subject?: string;
  expires?: string | number;
  kid?: string;
  signedBy?: CryptoKey;
}

function sign({
  roles = ["viewer"],
  expires = "5m",
  kid = "one",
  signedBy = key,
  ...given
}: Claims = {}): Promise<string> {
  return new SignJWT({ realm_access: { roles }, email: "ann@example.org" })
    .setProtectedHeader({ alg: "ES256", kid })
    .setSubject(given.subject ?? "4711")
    .setIssuer(given.issuer ?? issuer)
    .setAudience(given.audience ?? audience)
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign(signedBy);
}

async function statusOf(token: string, method = "GET", path = "/api/sessions"): Promise<number> {
  const response = await fetch(`${cluster.httpUrl}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
  await response.text();
  return response.status;
}

test("gives a caller the scopes of their roles, and names them in the audit log", async () => {
  assert.equal(await statusOf(await sign()), 200);
  assert.equal(await statusOf(await sign(), "POST", "/api/people/remove"), 403);
  assert.equal(await statusOf(await sign({ roles: ["operator"] }), "GET", "/api/audit"), 200);
  assert.equal(await statusOf(await sign({ roles: ["somebody"] })), 403);

  const response = await fetch(`${cluster.httpUrl}/api/people`, {
    method: "POST",
    headers: { authorization: `Bearer ${await sign({ roles: ["operator"] })}`, "content-type": "application/json" },
    body: JSON.stringify({ channel: "telegram", account: "main", contactId: "1", role: "guest" }),
  });
  assert.equal(response.status, 200, await response.text());
  const audit = await fetch(`${cluster.httpUrl}/api/audit?action=people.set`, {
    headers: { authorization: `Bearer ${cluster.token}` },
  });
  assert.match(await audit.text(), /"actor":"oidc 4711 \(ann@example\.org\) \(API\)"/);
});

test("refuses tokens that another issuer, key or algorithm made, for others, expired or altered", async () => {
  const foreign = await newKey("foreign", false);
  const [header = "", payload = "", signature = ""] = (await sign()).split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as object;
  const forged = Buffer.from(JSON.stringify({ ...claims, realm_access: { roles: ["operator"] } })).toString(
    "base64url",
  );
  // The public key, which everybody knows, as the secret of a symmetric signature.
  const confused = await new SignJWT(claims as Record<string, unknown>)
    .setProtectedHeader({ alg: "HS256", kid: "one" })
    .sign(Buffer.from(JSON.stringify(published[0]).padEnd(32)));
  const refused = {
    "another issuer": await sign({ issuer: "http://127.0.0.1:1" }),
    "another audience": await sign({ audience: "another-api" }),
    expired: await sign({ expires: Math.floor(Date.now() / 1_000) - 120 }),
    "an unpublished key": await sign({ signedBy: foreign }),
    "an unknown key": await sign({ signedBy: foreign, kid: "foreign" }),
    altered: [header, forged, signature].join("."),
    "without a signature": `${header}.${payload}.`,
    unsecured: new UnsecuredJWT(claims as Record<string, unknown>).encode(),
    symmetric: confused,
  };
  for (const [what, token] of Object.entries(refused)) assert.equal(await statusOf(token), 401, what);
  assert.equal(await statusOf(await sign()), 200);
});

test("counts requests for the subject, also after it got a new token", async () => {
  const tokens = await Promise.all(["6m", "7m"].map((expires) => sign({ expires, subject: "counted" })));
  for (let number = 0; number < ratePerMinute; number += 1) assert.equal(await statusOf(tokens[number % 2] ?? ""), 200);
  for (const token of tokens) assert.equal(await statusOf(token), 429);
  assert.equal(await statusOf(await sign({ subject: "another" })), 200);
});

test("accepts the token of the configuration as before, and asks the issuer for no other token", async () => {
  const before = fetches;
  assert.equal(await statusOf(cluster.token), 200);
  assert.equal(await statusOf("guess"), 401);
  assert.equal(fetches, before);
});
