// Parses the private key of a client for private_key_jwt from an environment variable. Pure.
import { createPrivateKey, type KeyObject } from "node:crypto";
import type { SigningAlgorithm } from "@parley/contracts";
import { z } from "zod";

export interface SigningKey {
  /** PKCS #8 in PEM. */
  pem: Uint8Array;
  algorithm: SigningAlgorithm;
}

const Jwk = z.looseObject({ kty: z.string() });

/** The algorithm for each curve. */
const curves: Readonly<Record<string, SigningAlgorithm>> = {
  prime256v1: "ES256",
  secp384r1: "ES384",
  secp521r1: "ES512",
};
const rsaAlgorithms: readonly SigningAlgorithm[] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];

/**
 * Parses a key: PEM, with line breaks or literal `\n`, or a JWK as JSON. `wanted` defaults to the key's own algorithm. Returns a
 * string that describes the problem without any part of the key.
 */
export function signingKey(text: string, wanted?: SigningAlgorithm): SigningKey | string {
  let key: KeyObject;
  try {
    key = text.trimStart().startsWith("{")
      ? createPrivateKey({ key: Jwk.parse(JSON.parse(text)), format: "jwk" })
      : createPrivateKey(text.replaceAll(String.raw`\n`, "\n"));
  } catch {
    return "contains no private key: PEM or a JWK without a passphrase is required";
  }
  const can = algorithmsOf(key);
  const algorithm = wanted ?? can[0];
  if (algorithm === undefined) return "contains a key of an unsupported type";
  if (!can.includes(algorithm))
    return `contains a key that cannot sign with ${algorithm}; it supports ${can.join(", ")}`;
  return { pem: Buffer.from(key.export({ type: "pkcs8", format: "pem" })), algorithm };
}

/** The supported algorithms; the first one is the default. */
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
