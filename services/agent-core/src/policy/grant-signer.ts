// Signs the rights of tool calls with the key of one epoch. Only this process and the store have the key.
import { randomBytes, type KeyObject } from "node:crypto";
import { grantKeyOf, grantSignature } from "@parley/chassis";
import { encodeGrant, joinGrant, type Grant } from "@parley/contracts";

/** A runner offers a result to an unavailable store for ten minutes, and clocks differ. */
const marginMs = 15 * 60_000;

interface GrantedRights extends Omit<Grant, "v" | "epoch" | "expiresAt"> {
  /** Longest duration of the call in milliseconds, including questions to people. */
  maxDurationMs: number;
}

/** The text form of a grant. */
export type SignGrant = (rights: GrantedRights) => string;

export interface EpochKey {
  /** For `store.leadership.acquire`: base64url of 32 random bytes. */
  grantKey: string;
  signerOf(epoch: number): SignGrant;
}

export function createEpochKey(): EpochKey {
  const grantKey = randomBytes(32).toString("base64url");
  const key = grantKeyOf(grantKey);
  return { grantKey, signerOf: (epoch) => (rights) => signGrant(key, epoch, rights) };
}

function signGrant(key: KeyObject, epoch: number, { maxDurationMs, ...rights }: GrantedRights): string {
  const signed = encodeGrant({ v: 1, epoch, ...rights, expiresAt: Date.now() + maxDurationMs + marginMs });
  return joinGrant(signed, grantSignature(key, signed));
}
