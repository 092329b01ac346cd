// Encryption to the holder of a private key: X25519 with a new key for each message, HKDF-SHA256, AES-256-GCM. Carriers of the message
// cannot read or change it. It does not prove who wrote it.
import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from "node:crypto";

/** A key pair; both are the raw 32 bytes in base64url. */
export interface SealingKeys {
  publicKey: string;
  privateKey: string;
}

const keyBytes = 32;
const tagBytes = 16;
/** Each message has a key of its own, so that a constant nonce is never used twice with one key. */
const nonce = Buffer.alloc(12);

export function createSealingKeys(): SealingKeys {
  const { x, d } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
  return { publicKey: x ?? "", privateKey: d ?? "" };
}

/** Encrypts a text to a public key. Only `open` with the same context returns it. Throws when the key is none. */
export function seal(text: string, publicKey: string, context: string): string {
  const once = createSealingKeys();
  const key = messageKey(once, publicKey, { sender: once.publicKey, recipient: publicKey });
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
  const data = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([Buffer.from(once.publicKey, "base64url"), cipher.getAuthTag(), data]).toString("base64url");
}

/** The text; undefined when it was sealed to another key or for another context, or was changed. */
export function open(sealed: string, keys: SealingKeys, context: string): string | undefined {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length < keyBytes + tagBytes) return undefined;
  try {
    const sender = bytes.subarray(0, keyBytes).toString("base64url");
    const key = messageKey(keys, sender, { sender, recipient: keys.publicKey });
    const decipher = createDecipheriv("aes-256-gcm", key, nonce)
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(keyBytes, keyBytes + tagBytes));
    return Buffer.concat([decipher.update(bytes.subarray(keyBytes + tagBytes)), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

function messageKey(own: SealingKeys, other: string, { sender, recipient }: Record<"sender" | "recipient", string>) {
  const secret = diffieHellman({ privateKey: privateKeyOf(own), publicKey: publicKeyOf(other) });
  return Buffer.from(hkdfSync("sha256", secret, Buffer.from(`${sender}.${recipient}`), "parley sealed box", 32));
}

function privateKeyOf({ publicKey, privateKey }: SealingKeys): KeyObject {
  return createPrivateKey({ key: { kty: "OKP", crv: "X25519", x: publicKey, d: privateKey }, format: "jwk" });
}

function publicKeyOf(publicKey: string): KeyObject {
  return createPublicKey({ key: { kty: "OKP", crv: "X25519", x: publicKey }, format: "jwk" });
}
