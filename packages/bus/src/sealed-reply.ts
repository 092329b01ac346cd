// Replies that only the process which sent the request can read. All replicas of a role share a login, and so a prefix of reply subjects: a thief
// of the login of the tool-runners would read the replies of the store to all of them. A request therefore brings a key that is used once, and
// the reply is encrypted with it. A server of an older version replies in plain text.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { headers, type Msg, type MsgHdrs } from "nats";

const keyHeader = "Parley-Reply-Key";
const sealedHeader = "Parley-Sealed";
const algorithm = "aes-256-gcm";
const [keyBytes, ivBytes, tagBytes] = [32, 12, 16];

/** A new key for the reply to one request. */
export function createReplyKey(): Buffer {
  return randomBytes(keyBytes);
}

/** The headers of a request whose reply must be sealed with the key. */
export function withReplyKey(carrier: MsgHdrs | undefined, key: Buffer): MsgHdrs {
  const own = carrier ?? headers();
  own.set(keyHeader, key.toString("base64"));
  return own;
}

/** The reply as it is sent: sealed if the request demands it. A malformed key counts as none: only its sender loses by that. */
export function sealed(request: Pick<Msg, "headers">, payload: Uint8Array): { payload: Uint8Array; headers?: MsgHdrs } {
  const key = Buffer.from(request.headers?.get(keyHeader) ?? "", "base64");
  if (key.length !== keyBytes) return { payload };
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv(algorithm, key, iv);
  const text = Buffer.concat([cipher.update(payload), cipher.final()]);
  const carrier = headers();
  carrier.set(sealedHeader, "1");
  return { payload: Buffer.concat([iv, cipher.getAuthTag(), text]), headers: carrier };
}

/** The text of a reply. Throws when it was sealed with another key or changed. */
export function opened(reply: Pick<Msg, "data" | "headers" | "string">, key: Buffer): string {
  if (reply.headers?.has(sealedHeader) !== true) return reply.string();
  const data = Buffer.from(reply.data);
  const decipher = createDecipheriv(algorithm, key, data.subarray(0, ivBytes), { authTagLength: tagBytes });
  decipher.setAuthTag(data.subarray(ivBytes, ivBytes + tagBytes));
  return Buffer.concat([decipher.update(data.subarray(ivBytes + tagBytes)), decipher.final()]).toString("utf8");
}
