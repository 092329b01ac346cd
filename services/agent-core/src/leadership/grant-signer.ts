// Signs the rights of tool calls with the key pair of one epoch. The private key stays in this process.
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { encodeGrant, joinGrant, type Grant } from "@parley/contracts";

/** A result is offered for ten minutes to a store that is away, and clocks differ. */
const marginMs = 15 * 60_000;

interface GrantedRights extends Omit<Grant, "v" | "epoch" | "expiresAt"> {
  /** Milliseconds that the call may take, questions to people included. */
  lastsMs: number;
}

/** The text form of a grant. */
export type SignGrant = (rights: GrantedRights) => string;

export interface EpochKey {
  /** For `store.leadership.acquire`. */
  publicKey: string;
  signerOf(epoch: number): SignGrant;
}

export function createEpochKey(): EpochKey {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  return { publicKey: x, signerOf: (epoch) => (rights) => signGrant(privateKey, epoch, rights) };
}

function signGrant(key: KeyObject, epoch: number, { lastsMs, ...rights }: GrantedRights): string {
  const signed = encodeGrant({ v: 1, epoch, ...rights, expiresAt: Date.now() + lastsMs + marginMs });
  return joinGrant(signed, sign(null, Buffer.from(signed), key));
}
