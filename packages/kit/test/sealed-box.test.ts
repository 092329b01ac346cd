import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { createSealingKeys, open, seal } from "@parley/kit";
import fc from "fast-check";

describe("seal", () => {
  const keys = createSealingKeys();

  test("is opened only with the private key and the same context", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 4_096, unit: "grapheme" }), (text) => {
        const sealed = seal(text, keys.publicKey, "here");
        assert.equal(open(sealed, keys, "here"), text);
        assert.equal(open(sealed, keys, "there"), undefined);
        assert.equal(open(sealed, createSealingKeys(), "here"), undefined);
      }),
      { numRuns: 30 },
    );
  });

  test("does not contain the text, and differs for the same text", () => {
    const sealed = [1, 2].map(() => seal("an authorization code", keys.publicKey, "here"));
    assert.notEqual(sealed[0], sealed[1]);
    for (const each of sealed) assert.doesNotMatch(Buffer.from(each, "base64url").toString("latin1"), /authorization/);
  });

  test("is not opened when a byte was changed or is missing", () => {
    const bytes = Buffer.from(seal("text", keys.publicKey, "here"), "base64url");
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed[index] = (changed[index] ?? 0) ^ 1;
      assert.equal(open(changed.toString("base64url"), keys, "here"), undefined, `byte ${index}`);
    }
    assert.equal(open(bytes.subarray(0, 40).toString("base64url"), keys, "here"), undefined);
    assert.equal(open("", keys, "here"), undefined);
  });

  test("throws when the public key is none", () => {
    assert.throws(() => seal("text", "short", "here"));
  });
});
