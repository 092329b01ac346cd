// Grants of tool calls as a leader signs them, for tests that act as the leader.
import { randomBytes, randomUUID } from "node:crypto";
import { grantKeyOf, grantSignature } from "@parley/chassis";
import { encodeGrant, joinGrant, noUsage, store, type Grant } from "@parley/contracts";
import type { StoreStack } from "./stack.ts";

export interface TestSigner {
  /** For `store.leadership.acquire`. */
  grantKey: string;
  /** Rights to everything that a call of the owner may do, except for the given overrides. */
  sign(call: Pick<Grant, "epoch" | "sessionId" | "turnId" | "n"> & Partial<Grant>): string;
}

export function createTestSigner(): TestSigner {
  const grantKey = randomBytes(32).toString("base64url");
  const key = grantKeyOf(grantKey);
  return {
    grantKey,
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
      return joinGrant(signed, grantSignature(key, signed));
    },
  };
}

/** A call of a running turn, with its grant. */
export interface TestCall {
  epoch: number;
  sessionId: string;
  turnId: string;
  n: number;
  grant: string;
  /** Signs different rights for the same call. */
  sign(rights: Partial<Grant>): string;
}

/** Prepares a turn of the owner that has one open call; the test acts as the leader from then on. */
export async function openTestCall(stack: Pick<StoreStack, "bus">, rights: Partial<Grant> = {}): Promise<TestCall> {
  const [gateway, core] = await Promise.all([stack.bus("channel-gateway"), stack.bus("agent-core")]);
  const signer = createTestSigner();
  const { grantKey } = signer;
  const { epoch } = await core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "test", grantKey });
  const place = { channel: "irc", account: "main", conversation: "#test" };
  const { sessionId } = await gateway.request(store.inboxPut, {
    message: {
      ...place,
      externalId: randomUUID(),
      contact: { id: "7" },
      role: "owner",
      origin: "user",
      parts: [{ type: "text", text: "do it" }],
      replyTo: place,
    },
    sessionKey: randomUUID(),
  });
  const claim = { opId: randomUUID(), epoch, sessionId, knownSeq: 0, maxClaims: 5 };
  const claimed = await core.request(store.turnClaim, claim);
  if (claimed.status !== "started") throw new Error(`the turn is ${claimed.status}`);
  const { turnId, nextStep } = claimed.turn;
  await core.request(store.stepCommit, {
    opId: randomUUID(),
    epoch,
    turnId,
    n: nextStep,
    model: "test",
    stopReason: "tool_use",
    usage: noUsage,
    parts: [{ type: "tool_call", id: "call", name: "test", input: "{}" }],
    results: 0,
    toolCalls: [{ callId: "call", tool: "test", class: "once", input: "{}" }],
    outgoing: [],
    finish: null,
  });
  const call = { epoch, sessionId, turnId, n: nextStep + 1 };
  const sign = (other: Partial<Grant>) => signer.sign({ ...call, ...rights, ...other });
  return { ...call, grant: sign({}), sign };
}
