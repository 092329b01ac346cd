// Verifies a webhook delivery by the scheme of its sender, and finds its id, which is the same for a repetition. Pure; works on the raw body
// before it is parsed. The schemes are data: packages/contracts/src/webhooks.ts.
import { webhookSchemes, type WebhookScheme, type WebhookSigner } from "@parley/contracts";
import { hmacSha256, sameDigest, sha256, sha256Hex } from "../channels/digest.ts";
import { alertsKey } from "./alertmanager.ts";

export type Signer = WebhookSigner;

/** Signed ids contain no full stop, so that the signed text is unambiguous. */
const signedId = /^[A-Za-z0-9_-]{1,256}$/;

/** A signed timestamp further from the current time than this is refused as a replay. */
export const replayWindowMs = 5 * 60 * 1_000;

/** A plain HMAC has no time and often no id: the same body within this time after the first is then the same delivery. */
const sameBodyMs = 10 * 60 * 1_000;

/** An unsigned id can be exchanged. A signed body that arrives again within this time is the same delivery under any id. */
const replayedBodyMs = 12 * 60 * 60 * 1_000;

/** `content`: when the id does not tell whether the delivery is a repetition, its body does, within this time. */
export type SignatureCheck =
  | { genuine: true; deliveryId: string; content?: { id: string; sameWithinMs: number } }
  | { genuine: false; reason: string };

export interface Delivery {
  header: (name: string) => string | undefined;
  rawBody: Buffer;
}

export function verifyDelivery(signer: Signer, secret: string, delivery: Delivery, nowMs: number): SignatureCheck {
  // With a signing token GitLab signs like Standard Webhooks.
  const isSigned = signer === "gitlab" && delivery.header(webhookSchemes.standard.header) !== undefined;
  const scheme = webhookSchemes[isSigned ? "standard" : signer];
  const proof = delivery.header(scheme.header);
  if (scheme.signedContent === "body") {
    if (proof === undefined) return { genuine: false, reason: `${displayName(scheme.header)} is required` };
    if (!isAuthentic(scheme, secret, proof, [delivery.rawBody])) return wrongSignature;
    const given = idOf(scheme, delivery);
    const hasId = given !== undefined && given !== "";
    const sameWithinMs =
      scheme.uniqueBodies === true ? replayedBodyMs : signer === "simple" && !hasId ? sameBodyMs : undefined;
    return {
      genuine: true,
      deliveryId: hasId ? limited(given) : derivedId(signer, delivery, nowMs),
      ...(sameWithinMs === undefined ? {} : { content: { id: bodyId(delivery, ""), sameWithinMs } }),
    };
  }
  const id = idOf(scheme, delivery);
  const timestamp = delivery.header(scheme.timestampHeader ?? "");
  if (id === undefined || timestamp === undefined || proof === undefined) {
    const names = [...scheme.ids, scheme.timestampHeader ?? "", scheme.header].map(displayName);
    return { genuine: false, reason: `${names.slice(0, -1).join(", ")} and ${names.at(-1)} are required` };
  }
  if (signer === "parley" && !signedId.test(id)) {
    return { genuine: false, reason: "X-Parley-Delivery must have from 1 to 256 letters, digits, - or _" };
  }
  // With a full stop in the id, one signature would fit two deliveries.
  if (id.includes("."))
    return { genuine: false, reason: `${displayName(scheme.ids[0] ?? "")} must contain no full stop` };
  if (!isAuthentic(scheme, secret, proof, [`${id}.${timestamp}.`, delivery.rawBody])) return wrongSignature;
  if (!isFresh(timestamp, nowMs)) return staleTimestamp;
  return { genuine: true, deliveryId: id === "" ? bodyId(delivery, timestamp) : limited(id) };
}

const wrongSignature: SignatureCheck = { genuine: false, reason: "the signature does not match" };
const staleTimestamp: SignatureCheck = {
  genuine: false,
  reason: `the timestamp differs from the current time by more than ${replayWindowMs / 60_000} minutes`,
};

function isAuthentic(
  { authentication }: WebhookScheme,
  secret: string,
  given: string,
  signed: (string | Buffer)[],
): boolean {
  switch (authentication) {
    case "secret":
      return sameDigest(sha256(given), sha256(secret));
    case "bearer":
      return sameDigest(sha256(given), sha256(`Bearer ${secret}`));
    case "hmac_hex":
      return sameDigest(hexDigest(given), hmacSha256(secret, ...signed));
    default: {
      const expected = hmacSha256(standardKey(secret), ...signed);
      // During a change of the secret there are several signatures; each is compared in constant time.
      let genuine = false;
      for (const signature of given.split(" ")) {
        const [version, value] = signature.split(",", 2);
        if (version === "v1" && sameDigest(Buffer.from(value ?? "", "base64"), expected)) genuine = true;
      }
      return genuine;
    }
  }
}

/** Standard Webhooks encodes secrets as base64 with the prefix `whsec_`. */
function standardKey(secret: string): Buffer {
  return secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret);
}

function hexDigest(signature: string): Buffer {
  const hex = signature.startsWith("sha256=") ? signature.slice("sha256=".length) : signature;
  return /^[0-9a-f]{64}$/i.test(hex) ? Buffer.from(hex, "hex") : Buffer.alloc(0);
}

function isFresh(timestamp: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(nowMs - Number(timestamp) * 1_000) <= replayWindowMs;
}

function idOf({ ids }: WebhookScheme, { header }: Delivery): string | undefined {
  return ids.map(header).find((id) => id !== undefined);
}

const maxIdLength = 256;

function limited(id: string): string {
  return id.length <= maxIdLength ? id : sha256Hex(id);
}

/** An id derived from the content. */
function bodyId({ rawBody }: Delivery, prefix: string): string {
  return sha256Hex(Buffer.concat([Buffer.from(`${prefix}.`), rawBody]));
}

/** An id derived from the content, which is the same for a repetition; for a plain HMAC only in the same moment. */
function derivedId(signer: Signer, delivery: Delivery, nowMs: number): string {
  if (signer === "alertmanager") return sha256Hex(alertsKey(delivery.rawBody.toString("utf8")));
  return bodyId(delivery, signer === "simple" ? String(nowMs) : "");
}

/** `x-hub-signature-256` → `X-Hub-Signature-256`; names of Standard Webhooks are written in small letters. */
function displayName(header: string): string {
  if (header.startsWith("webhook-")) return header;
  return header.replace(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()).replace("X-Github", "X-GitHub");
}
