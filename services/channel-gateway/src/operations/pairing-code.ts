// The pairing code for an unknown sender. A pairing request stores only the hash of the code.
import { randomBytes } from "node:crypto";
import { oneLine, pluralize } from "@parley/kit";
import { sha256Hex } from "../channels/digest.ts";

/** 32 characters that are easy to tell apart: no I, O, 0, 1. */
const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const codeLength = 8;

/** A new code, `ABCD-EFGH`: 40 random bits. */
export function newPairingCode(): string {
  const signs = Array.from(randomBytes(codeLength), (byte) => alphabet[byte % alphabet.length]).join("");
  return `${signs.slice(0, codeLength / 2)}-${signs.slice(codeLength / 2)}`;
}

/** The hash that identifies a code in the store; case, spaces and dashes are ignored. */
export function pairingCodeHash(code: string): string {
  return sha256Hex(code.toUpperCase().replace(/[^A-Z0-9]/g, ""));
}

/** For the owner: somebody asks for access. */
export function accessRequestText(
  { contact }: { contact: { id: string; name?: string } },
  channel: string,
  account: string,
): string {
  const name = contact.name === undefined ? contact.id : `${oneLine(contact.name, 60)} (${contact.id})`;
  return `${name} on ${channel}:${account} asks for access. If you know them, ask for their code and answer /pair <code>. Otherwise ignore this.`;
}

/** For the sender; `minutes`: how long the code is valid. */
export function pairingText(code: string, minutes: number): string {
  return `I do not know you yet. To get access, give this code to my owner: ${code}\nThe code is valid for ${pluralize(minutes, "minute")}: npx parley pairing approve ${code}`;
}
