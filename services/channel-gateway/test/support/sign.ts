// Signs webhook deliveries for tests.
import { createHmac } from "node:crypto";

export const hookSecret = "a-secret-that-is-shared";

export function parleyHeaders(body: string, options: { secret?: string; atMs?: number; id?: string } = {}) {
  const id = options.id ?? "delivery-1";
  const timestamp = String(Math.floor((options.atMs ?? Date.now()) / 1_000));
  const hmac = createHmac("sha256", options.secret ?? hookSecret).update(`${id}.${timestamp}.${body}`);
  return {
    "x-parley-delivery": id,
    "x-parley-timestamp": timestamp,
    "x-parley-signature": `sha256=${hmac.digest("hex")}`,
  };
}

export function githubHeaders(body: string, id: string, secret = hookSecret) {
  return {
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    "x-github-delivery": id,
    "x-github-event": "push",
  };
}

export function standardHeaders(body: string, id: string, options: { key?: Buffer; atMs?: number } = {}) {
  const timestamp = String(Math.floor((options.atMs ?? Date.now()) / 1_000));
  const hmac = createHmac("sha256", options.key ?? Buffer.from(hookSecret)).update(`${id}.${timestamp}.${body}`);
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,bm90IHRoaXMgb25l v1,${hmac.digest("base64")}`,
  };
}
