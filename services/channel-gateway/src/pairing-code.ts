// The code a stranger is shown, and how it is read again. The request keeps only its hash.
import { randomBytes } from "node:crypto";
import { sha256Hex } from "./digest.ts";

/** 32 signs that are not mistaken for each other: no I, O, 0, 1. */
const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const codeLength = 8;

/** How long a code is good; `pairingText` says so. */
export const pairingTtlMs = 60 * 60 * 1_000;

/** A new code, `ABCD-EFGH`: 40 random bits. */
export function newPairingCode(): string {
  const signs = Array.from(randomBytes(codeLength), (byte) => alphabet[byte % alphabet.length]).join("");
  return `${signs.slice(0, codeLength / 2)}-${signs.slice(codeLength / 2)}`;
}

/** The hash under which a code is kept; case, spaces and dashes do not matter. */
export function pairingCodeHash(code: string): string {
  return sha256Hex(code.toUpperCase().replace(/[^A-Z0-9]/g, ""));
}

export function pairingText(code: string): string {
  return `I do not know you yet. To be let in, give this code to my owner: ${code}\nIt is good for one hour: parley pairing approve ${code}`;
}
