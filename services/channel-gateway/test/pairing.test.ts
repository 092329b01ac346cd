// Pairing of an unknown sender: the text with the code, and its atomic storage with the request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { store, WireError, type InputOf, type RequestContract } from "@parley/contracts";
import type { PeoplePolicy } from "@parley/contracts";
import { InboundHandler, type InboundDeps } from "../src/ingress/inbound.ts";
import { pairingCodeHash, pairingText } from "../src/operations/pairing-code.ts";

const draft = {
  externalId: "1",
  conversation: "dm-7",
  contact: { id: "7", name: "Ann" },
  direct: true,
  addressed: true,
  text: "let me in",
  replyTo: { channel: "test", account: "default", conversation: "dm-7" },
};

/** An Inbound whose bus fails after the store has stored a pairing request, as after a crash. */
function dyingAfterTheRequest() {
  const kept: InputOf<typeof store.pairingRequest>[] = [];
  const request = async (contract: RequestContract, input: unknown): Promise<unknown> => {
    if (kept.length > 0) throw new WireError("UNAVAILABLE", "died");
    if (contract.subject === store.contactGet.subject) return { contact: null };
    assert.equal(contract.subject, store.pairingRequest.subject);
    kept.push(store.pairingRequest.input.parse(input));
    return { status: "created" };
  };
  const events = { inbound: () => undefined, ignored: () => undefined };
  const settings = { permissions: { pairing_minutes: 10 } };
  const deps = { bus: { request }, policy: "singleton", events, settings, live: {}, sessions: {} };
  return { inbound: new InboundHandler(deps as unknown as InboundDeps), kept };
}

// design: 004.37
test("stores the text with the code together with the request, as the last store request", async () => {
  const { inbound, kept } = dyingAfterTheRequest();
  const people: PeoplePolicy = {
    owners: [],
    allow_from: [],
    dm_policy: "pairing",
    groups: [],
    require_mention: true,
  };
  assert.equal(await inbound.accept({ channel: "test", account: "default", people }, draft), "ignored");
  const [request] = kept;
  assert.deepEqual(request?.outgoing?.address, draft.replyTo);
  const [, code = ""] = /my owner: (\S+)\n/.exec(request.outgoing.text) ?? [];
  assert.equal(pairingCodeHash(code), request.codeSha256);
  assert.equal(request.ttlMs, 600_000);
  assert.equal(request.outgoing.expiresInMs, request.ttlMs, "the text expires with the code");
});

// design: 004.37
test("names the approval command and the code's minutes in the pairing text", () => {
  assert.match(pairingText("ABCD-EFGH", 10), /valid for 10 minutes: npx parley pairing approve ABCD-EFGH$/);
});
