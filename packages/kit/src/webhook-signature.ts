// Signs a delivery of a webhook as its sender would.
import { createHmac } from "node:crypto";

/** The part of a sender's scheme that signing needs. */
interface SigningScheme {
  authentication: "hmac_hex" | "hmac_base64" | "secret" | "bearer";
  header: string;
  signedContent: "body" | "id_timestamp_body";
  timestampHeader?: string;
  ids: readonly string[];
}

interface SignedDelivery {
  id: string;
  body: string;
  /** Milliseconds since 1970. */
  atMs: number;
}

/** The headers with which a sender proves that it sent this body. The secret of Standard Webhooks may begin with `whsec_`. */
export function signWebhook(
  scheme: SigningScheme,
  secret: string,
  { id, body, atMs }: SignedDelivery,
): Record<string, string> {
  const [idHeader] = scheme.ids;
  const timestamp = String(Math.floor(atMs / 1_000));
  const signed = scheme.signedContent === "body" ? body : `${id}.${timestamp}.${body}`;
  return {
    ...(idHeader === undefined ? {} : { [idHeader]: id }),
    ...(scheme.timestampHeader === undefined ? {} : { [scheme.timestampHeader]: timestamp }),
    [scheme.header]: headerValue(scheme.authentication, secret, signed),
  };
}

function headerValue(authentication: SigningScheme["authentication"], secret: string, signed: string): string {
  if (authentication === "secret") return secret;
  if (authentication === "bearer") return `Bearer ${secret}`;
  if (authentication === "hmac_hex") return `sha256=${createHmac("sha256", secret).update(signed).digest("hex")}`;
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret);
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
