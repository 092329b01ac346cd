// The text form of grants.
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeGrant, GrantToken, joinGrant, splitGrant, type Grant } from "@parley/contracts";
import fc from "fast-check";

const grant: Grant = {
  v: 1,
  epoch: 3,
  sessionId: "01890a5d-ac96-774b-bcce-b302099a8057",
  turnId: "01890a5d-ac96-774b-bcce-b302099a8058",
  n: 2,
  rootTurnId: "01890a5d-ac96-774b-bcce-b302099a8058",
  tool: "write",
  class: "once",
  audience: "owner",
  tainted: false,
  documents: "write",
  expiresAt: 1_700_000_000_000,
};

test("splits what was joined when the text is a grant", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 1e9 }),
      fc.string({ unit: "binary", maxLength: 64 }),
      fc.uint8Array({ minLength: 64, maxLength: 64 }),
      (epoch, tool, signature) => {
        const wanted = { ...grant, epoch, tool: tool.toWellFormed() };
        const token = joinGrant(encodeGrant(wanted), signature);
        const parts = splitGrant(token) ?? assert.fail("no grant");
        assert.ok(GrantToken.safeParse(token).success);
        assert.deepEqual([parts.grant, parts.signed], [wanted, encodeGrant(wanted)]);
        assert.deepEqual(new Uint8Array(parts.signature), signature);
      },
    ),
  );
});

test("refuses a text when it is no grant", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.equal(splitGrant(text), null);
    }),
  );
  assert.equal(splitGrant(joinGrant(encodeGrant({ ...grant, v: 2 } as never), Buffer.alloc(64))), null);
});
