// The private key by which a client shows who it is to an authorization server (private_key_jwt), as a variable holds it. Pure.
import { createPrivateKey, type KeyObject } from "node:crypto";
import type { SigningAlgorithm } from "@parley/contracts";
import { z } from "zod";

export interface SigningKey {
  /** PKCS #8 in PEM. */
  pem: Uint8Array;
  algorithm: SigningAlgorithm;
}

const Jwk = z.looseObject({ kty: z.string() });

/** By a key's curve. */
const curves: Readonly<Record<string, SigningAlgorithm>> = {
  prime256v1: "ES256",
  secp384r1: "ES384",
  secp521r1: "ES512",
};
const rsaAlgorithms: readonly SigningAlgorithm[] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];

/**
 * The key in a text: PEM, its line breaks as they are or written `\n`, or a JWK as JSON. `wanted` left out: what the key is made for. A
 * string says what is wrong, and nothing of the key.
 */
export function signingKey(text: string, wanted?: SigningAlgorithm): SigningKey | string {
  let key: KeyObject;
  try {
    key = text.trimStart().startsWith("{")
      ? createPrivateKey({ key: Jwk.parse(JSON.parse(text)), format: "jwk" })
      : createPrivateKey(text.replaceAll(String.raw`\n`, "\n"));
  } catch {
    return "holds no private key: PEM or a JWK, without a passphrase, is wanted";
  }
  const can = algorithmsOf(key);
  const algorithm = wanted ?? can[0];
  if (algorithm === undefined) return "holds a key that is made for no signature there is a name for";
  if (!can.includes(algorithm))
    return `holds a key that does not sign with ${algorithm}; it is made for ${can.join(", ")}`;
  return { pem: Buffer.from(key.export({ type: "pkcs8", format: "pem" })), algorithm };
}

/** The first one is what is used where nothing else is said. */
function algorithmsOf(key: KeyObject): readonly SigningAlgorithm[] {
  switch (key.asymmetricKeyType) {
    case "ec": {
      const algorithm = curves[key.asymmetricKeyDetails?.namedCurve ?? ""];
      return algorithm === undefined ? [] : [algorithm];
    }
    case "rsa":
      return rsaAlgorithms;
    case "ed25519":
      return ["EdDSA"];
    default:
      return [];
  }
}
