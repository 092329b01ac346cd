// Verifies the signature of a webhook delivery by the scheme of its sender. Pure; works on the raw body before it is parsed.
//   parley    X-Parley-Delivery: <id>, X-Parley-Timestamp: <unix seconds>, X-Parley-Signature: sha256=<hex of HMAC(id.timestamp.body)>
//   github    X-GitHub-Delivery: <id, not signed>, X-Hub-Signature-256: sha256=<hex of HMAC(body)>
//   standard  webhook-id, webhook-timestamp, webhook-signature: v1,<base64 of HMAC(id.timestamp.body)> …
import type { WebhookAccount } from "@parley/contracts";
import { hmacSha256, sameDigest, sha256Hex } from "../channels/digest.ts";

export type Signer = WebhookAccount["signer"];

/** Ids contain no full stop, so that the signed text is unambiguous. */
const signedId = /^[A-Za-z0-9_-]{1,256}$/;

/** A signed timestamp further from the current time than this is refused as a replay. */
export const replayWindowMs = 5 * 60 * 1_000;

export type SignatureCheck = { genuine: true; deliveryId: string } | { genuine: false; reason: string };

export interface Delivery {
  header: (name: string) => string | undefined;
  rawBody: Buffer;
}

export function verifyDelivery(signer: Signer, secret: string, delivery: Delivery, nowMs: number): SignatureCheck {
  switch (signer) {
    case "github":
      return verifyGithub(secret, delivery);
    case "standard":
      return verifyStandard(secret, delivery, nowMs);
    default:
      return verifyParley(secret, delivery, nowMs);
  }
}

function verifyParley(secret: string, { header, rawBody }: Delivery, nowMs: number): SignatureCheck {
  const id = header("x-parley-delivery");
  const timestamp = header("x-parley-timestamp");
  const signature = header("x-parley-signature");
  if (id === undefined || timestamp === undefined || signature === undefined) {
    return { genuine: false, reason: "X-Parley-Delivery, X-Parley-Timestamp and X-Parley-Signature are required" };
  }
  if (!signedId.test(id)) {
    return { genuine: false, reason: "X-Parley-Delivery must have from 1 to 256 letters, digits, - or _" };
  }
  if (!isSame(hexDigest(signature), hmacSha256(secret, `${id}.${timestamp}.`, rawBody))) return wrongSignature;
  if (!isFresh(timestamp, nowMs)) return staleTimestamp;
  return { genuine: true, deliveryId: id };
}

function verifyGithub(secret: string, { header, rawBody }: Delivery): SignatureCheck {
  const signature = header("x-hub-signature-256");
  if (signature === undefined) return { genuine: false, reason: "X-Hub-Signature-256 is required" };
  if (!isSame(hexDigest(signature), hmacSha256(secret, rawBody))) return wrongSignature;
  return { genuine: true, deliveryId: deliveryId(header("x-github-delivery"), rawBody, "") };
}

function verifyStandard(secret: string, { header, rawBody }: Delivery, nowMs: number): SignatureCheck {
  const id = header("webhook-id");
  const timestamp = header("webhook-timestamp");
  const signatures = header("webhook-signature");
  if (id === undefined || timestamp === undefined || signatures === undefined) {
    return { genuine: false, reason: "webhook-id, webhook-timestamp and webhook-signature are required" };
  }
  const expected = hmacSha256(standardKey(secret), `${id}.${timestamp}.`, rawBody);
  // During a change of the secret there are several signatures; each is compared in constant time.
  let genuine = false;
  for (const signature of signatures.split(" ")) {
    const [version, value] = signature.split(",", 2);
    if (version === "v1" && isSame(Buffer.from(value ?? "", "base64"), expected)) genuine = true;
  }
  if (!genuine) return wrongSignature;
  if (!isFresh(timestamp, nowMs)) return staleTimestamp;
  return { genuine: true, deliveryId: deliveryId(id, rawBody, timestamp) };
}

const wrongSignature: SignatureCheck = { genuine: false, reason: "the signature does not match" };
const staleTimestamp: SignatureCheck = {
  genuine: false,
  reason: `the timestamp differs from the current time by more than ${replayWindowMs / 60_000} minutes`,
};

/** Standard Webhooks encodes secrets as base64 with the prefix `whsec_`. */
function standardKey(secret: string): Buffer {
  return secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret);
}

function hexDigest(signature: string): Buffer {
  const hex = signature.startsWith("sha256=") ? signature.slice("sha256=".length) : signature;
  return /^[0-9a-f]{64}$/i.test(hex) ? Buffer.from(hex, "hex") : Buffer.alloc(0);
}

function isSame(given: Buffer, expected: Buffer): boolean {
  return sameDigest(given, expected);
}

function isFresh(timestamp: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(nowMs - Number(timestamp) * 1_000) <= replayWindowMs;
}

const maxIdLength = 256;

/** Returns the sender's delivery id, or one derived from the content, which is the same for a redelivery. */
function deliveryId(given: string | undefined, rawBody: Buffer, timestamp: string): string {
  if (given !== undefined && given !== "") return given.length <= maxIdLength ? given : sha256Hex(given);
  return sha256Hex(Buffer.concat([Buffer.from(`${timestamp}.`), rawBody]));
}
