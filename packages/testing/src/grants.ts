// Grants of tool calls as a leader signs them, for tests that play the leader.
import { generateKeyPairSync, sign } from "node:crypto";
import { encodeGrant, joinGrant, type Grant } from "@parley/contracts";

export interface TestSigner {
  /** For `store.leadership.acquire`. */
  publicKey: string;
  /** Rights to everything that a call of the owner may do, but for what is named. */
  sign(call: Pick<Grant, "epoch" | "sessionId" | "turnId" | "n"> & Partial<Grant>): string;
}

export function createTestSigner(): TestSigner {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  return {
    publicKey: x,
    sign: (call) => {
      const signed = encodeGrant({
        v: 1,
        rootTurnId: call.turnId,
        tool: "test",
        class: "once",
        audience: "owner",
        tainted: false,
        documents: "write",
        expiresAt: Date.now() + 600_000,
        ...call,
      });
      return joinGrant(signed, sign(null, Buffer.from(signed), privateKey));
    },
  };
}
