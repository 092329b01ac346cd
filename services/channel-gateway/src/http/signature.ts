// Whether a webhook delivery comes from who holds the secret, by the scheme of its sender. Pure; works on the raw body, before
// anything of it is read.
//   parley    X-Parley-Delivery: <id>, X-Parley-Timestamp: <unix seconds>, X-Parley-Signature: sha256=<hex of HMAC(id.timestamp.body)>
//   github    X-GitHub-Delivery: <id, not signed>, X-Hub-Signature-256: sha256=<hex of HMAC(body)>
//   standard  webhook-id, webhook-timestamp, webhook-signature: v1,<base64 of HMAC(id.timestamp.body)> …
import type { WebhookAccount } from "@parley/contracts";
import { hmacSha256, sameDigest, sha256Hex } from "../digest.ts";

export type Signer = WebhookAccount["signer"];

/** Without a full stop, so that what is signed can be read in one way only. */
const signedId = /^[A-Za-z0-9_-]{1,256}$/;

/** A signed timestamp further from now than this is a replay. */
export const replayWindowMs = 5 * 60 * 1_000;

export type Verdict = { genuine: true; deliveryId: string } | { genuine: false; reason: string };

export interface Delivery {
  header: (name: string) => string | undefined;
  rawBody: Buffer;
}

export function verifyDelivery(signer: Signer, secret: string, delivery: Delivery, nowMs: number): Verdict {
  switch (signer) {
    case "github":
      return verifyGithub(secret, delivery);
    case "standard":
      return verifyStandard(secret, delivery, nowMs);
    default:
      return verifyParley(secret, delivery, nowMs);
  }
}

function verifyParley(secret: string, { header, rawBody }: Delivery, nowMs: number): Verdict {
  const id = header("x-parley-delivery");
  const timestamp = header("x-parley-timestamp");
  const signature = header("x-parley-signature");
  if (id === undefined || timestamp === undefined || signature === undefined) {
    return { genuine: false, reason: "X-Parley-Delivery, X-Parley-Timestamp and X-Parley-Signature are needed" };
  }
  if (!signedId.test(id)) {
    return { genuine: false, reason: "X-Parley-Delivery must be 1 to 256 letters, digits, - or _" };
  }
  if (!isSame(hexDigest(signature), hmacSha256(secret, `${id}.${timestamp}.`, rawBody))) return wrongSignature;
  if (!isFresh(timestamp, nowMs)) return staleTimestamp;
  return { genuine: true, deliveryId: id };
}

function verifyGithub(secret: string, { header, rawBody }: Delivery): Verdict {
  const signature = header("x-hub-signature-256");
  if (signature === undefined) return { genuine: false, reason: "X-Hub-Signature-256 is needed" };
  if (!isSame(hexDigest(signature), hmacSha256(secret, rawBody))) return wrongSignature;
  return { genuine: true, deliveryId: deliveryId(header("x-github-delivery"), rawBody, "") };
}

function verifyStandard(secret: string, { header, rawBody }: Delivery, nowMs: number): Verdict {
  const id = header("webhook-id");
  const timestamp = header("webhook-timestamp");
  const signatures = header("webhook-signature");
  if (id === undefined || timestamp === undefined || signatures === undefined) {
    return { genuine: false, reason: "webhook-id, webhook-timestamp and webhook-signature are needed" };
  }
  const expected = hmacSha256(standardKey(secret), `${id}.${timestamp}.`, rawBody);
  // There are several while the sender changes its secret; each is compared, in constant time.
  let genuine = false;
  for (const signature of signatures.split(" ")) {
    const [version, value] = signature.split(",", 2);
    if (version === "v1" && isSame(Buffer.from(value ?? "", "base64"), expected)) genuine = true;
  }
  if (!genuine) return wrongSignature;
  if (!isFresh(timestamp, nowMs)) return staleTimestamp;
  return { genuine: true, deliveryId: deliveryId(id, rawBody, timestamp) };
}

const wrongSignature: Verdict = { genuine: false, reason: "the signature does not match" };
const staleTimestamp: Verdict = {
  genuine: false,
  reason: `the timestamp is more than ${replayWindowMs / 60_000} minutes from now`,
};

/** Standard Webhooks writes secrets as base64 behind `whsec_`. */
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

/** The sender's id of the delivery, or one that is the same for the same delivery. */
function deliveryId(given: string | undefined, rawBody: Buffer, timestamp: string): string {
  if (given !== undefined && given !== "") return given.length <= maxIdLength ? given : sha256Hex(given);
  return sha256Hex(Buffer.concat([Buffer.from(`${timestamp}.`), rawBody]));
}
