// The key of an epoch and the grants signed with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { grantKeyOf, grantSignature } from "@parley/chassis";
import { newId, splitGrant } from "@parley/contracts";
import { createEpochKey } from "../src/policy/grant-signer.ts";
import { documentRights } from "../src/policy/taint.ts";

const turnId = newId();
const rights = {
  sessionId: newId(),
  turnId,
  n: 2,
  rootTurnId: turnId,
  tool: "write",
  class: "once" as const,
  audience: "others" as const,
  tainted: true,
  documents: "read" as const,
};

test("signs a call's rights verifiably until the call has certainly ended", () => {
  const epochKey = createEpochKey();
  const before = Date.now();
  const { grant, signed, signature } =
    splitGrant(epochKey.signerOf(7)({ ...rights, maxDurationMs: 60_000 })) ?? assert.fail();
  const { expiresAt, ...rest } = grant;
  assert.deepEqual(rest, { v: 1, epoch: 7, ...rights });
  assert.ok(expiresAt >= before + 60_000 + 600_000, "a runner offers a result to an unavailable store for ten minutes");
  const signatureOf = (key: string) => grantSignature(grantKeyOf(key), signed);
  assert.deepEqual(signature, signatureOf(epochKey.grantKey));
  assert.notDeepEqual(signature, signatureOf(createEpochKey().grantKey), "each epoch has its own key");
});

test("grants the document rights that the tool needs, without writing in others' conversations", () => {
  const rightsOf = (effects: Parameters<typeof documentRights>[0]["effects"], audience: "owner" | "others" = "owner") =>
    documentRights({ effects }, audience);
  assert.equal(rightsOf(["writes_files"]), "write");
  assert.equal(rightsOf(["reads_files", "writes_files"], "others"), "read");
  assert.equal(rightsOf(["writes_files"], "others"), "none");
  assert.equal(rightsOf(["reads_files"], "others"), "read");
  assert.equal(rightsOf(["executes", "reads_files", "writes_files"]), "none");
  assert.equal(rightsOf(["reads_untrusted", "sends_out"]), "none");
  assert.equal(rightsOf([]), "none");
});
