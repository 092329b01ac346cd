// Webhook signatures: valid only with the secret, for exactly this body and within the time window.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { replayWindowMs, verifyDelivery, type Signer } from "../src/webhooks/signature-check.ts";
import { githubHeaders, hookSecret, parleyHeaders, standardHeaders } from "./support/sign.ts";

const nowMs = 1_800_000_000_000;

function verify(
  signer: Signer,
  body: string | Buffer,
  headers: Record<string, string>,
  secret = hookSecret,
  atMs = nowMs,
) {
  const rawBody = Buffer.isBuffer(body) ? body : Buffer.from(body);
  return verifyDelivery(signer, secret, { rawBody, header: (name) => headers[name] }, atMs);
}

const signed = (signer: Signer, body: string, id: string): Record<string, string> => {
  if (signer === "github") return githubHeaders(body, id);
  return signer === "standard" ? standardHeaders(body, id, { atMs: nowMs }) : parleyHeaders(body, { atMs: nowMs, id });
};
const signers = fc.constantFrom<Signer>("parley", "github", "standard");
const deliveryIds = fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/);

test("accepts a correct signature and returns the delivery id", () => {
  fc.assert(
    fc.property(signers, fc.string(), deliveryIds, (signer, body, id) => {
      const verdict = verify(signer, body, signed(signer, body, id));
      assert.equal(verdict.genuine && verdict.deliveryId, id);
    }),
  );
});

test("refuses a changed body, secret or signature", () => {
  fc.assert(
    fc.property(signers, fc.string(), fc.string(), fc.nat(), (signer, body, other, at) => {
      const headers = signed(signer, body, "id");
      if (other !== body) assert.equal(verify(signer, other, headers).genuine, false);
      assert.equal(verify(signer, body, headers, `${hookSecret}x`).genuine, false);
      const name = Object.keys(headers).find((key) => key.includes("signature")) ?? "";
      // The last signature is the valid one. Its last base64 group may contain unused bits, so an earlier character is changed.
      const value = headers[name] ?? "";
      const from = value.lastIndexOf(signer === "standard" ? "," : "=") + 1;
      const index = signer === "github" || signer === "parley" ? value.length - 64 + (at % 60) : from + (at % 40);
      const changed = `${value.slice(0, index)}${value[index] === "a" ? "b" : "a"}${value.slice(index + 1)}`;
      assert.equal(verify(signer, body, { ...headers, [name]: changed }).genuine, false);
    }),
  );
});

test("refuses a signed time outside of the replay window", () => {
  const skew = fc.integer({ min: -2 * replayWindowMs, max: 2 * replayWindowMs });
  fc.assert(
    fc.property(fc.constantFrom<Signer>("parley", "standard"), skew, (signer, skewMs) => {
      const headers = signed(signer, "body", "id");
      const { genuine } = verify(signer, "body", headers, hookSecret, nowMs + skewMs);
      assert.equal(genuine, Math.abs(skewMs) <= replayWindowMs);
    }),
  );
});

test("refuses arbitrary headers without throwing", () => {
  const names = [
    "x-parley-delivery",
    "x-parley-timestamp",
    "x-parley-signature",
    "x-hub-signature-256",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
  ];
  const headers = fc.record(Object.fromEntries(names.map((name) => [name, fc.string()])), { requiredKeys: [] });
  fc.assert(
    fc.property(signers, headers, fc.uint8Array(), (signer, given, body) => {
      assert.equal(verify(signer, Buffer.from(body), given as Record<string, string>).genuine, false);
    }),
  );
});

test("refuses a delivery whose signed id was changed or removed", () => {
  fc.assert(
    fc.property(fc.constantFrom<Signer>("parley", "standard"), deliveryIds, deliveryIds, (signer, id, other) => {
      fc.pre(id !== other);
      const headers = signed(signer, "body", id);
      const name = signer === "parley" ? "x-parley-delivery" : "webhook-id";
      assert.equal(verify(signer, "body", { ...headers, [name]: other }).genuine, false);
      const { [name]: _, ...without } = headers;
      assert.equal(verify(signer, "body", without).genuine, false);
    }),
  );
});

test("refuses moving signed text between id, time and body", () => {
  const timestamp = String(nowMs / 1_000);
  const { "x-parley-timestamp": signedAt, ...headers } = parleyHeaders(`${timestamp}.body`, { atMs: nowMs, id: "a" });
  const moved = { ...headers, "x-parley-delivery": `a.${signedAt}`, "x-parley-timestamp": timestamp };
  const verdict = verify("parley", "body", moved);
  assert.match(verdict.genuine ? "" : verdict.reason, /X-Parley-Delivery must have/);
});

test("derives the same id for the same body when a delivery has no id", () => {
  const { "x-github-delivery": _, ...headers } = githubHeaders("body", "id");
  const { "x-github-delivery": __, ...others } = githubHeaders("other", "id");
  assert.deepEqual(verify("github", "body", headers), verify("github", "body", headers));
  assert.notDeepEqual(verify("github", "body", headers), verify("github", "other", others));
});

test("derives a content id from the body when the sender signs the body without the id", () => {
  const contentOf = (body: string, id: string) => {
    const verdict = verify("github", body, githubHeaders(body, id));
    return verdict.genuine ? verdict.content?.id : assert.fail(verdict.reason);
  };
  assert.match(contentOf("body", "a") ?? "", /^[0-9a-f]{64}$/);
  assert.equal(contentOf("body", "a"), contentOf("body", "b"));
  assert.notEqual(contentOf("other", "a"), contentOf("body", "a"));
  assert.ok(!("content" in verify("parley", "body", parleyHeaders("body", { atMs: nowMs }))));
});

test("decodes a Standard Webhooks secret with the prefix whsec_ as base64", () => {
  const key = Buffer.from("0123456789abcdef0123456789abcdef");
  const headers = standardHeaders("body", "id", { key, atMs: nowMs });
  assert.equal(verify("standard", "body", headers, `whsec_${key.toString("base64")}`).genuine, true);
});

test("refuses an id with a full stop, which one signature would share", () => {
  const timestamp = String(nowMs / 1_000);
  const headers = standardHeaders(`${timestamp}.body`, "a", { atMs: nowMs });
  assert.equal(verify("standard", `${timestamp}.body`, headers).genuine, true);
  const moved = { ...headers, "webhook-id": `a.${timestamp}` };
  const verdict = verify("standard", "body", moved);
  assert.match(verdict.genuine ? "" : verdict.reason, /webhook-id must contain no full stop/);
});
