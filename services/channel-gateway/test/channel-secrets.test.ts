// The secrets of channels in variables and in the files of a folder, without a gateway.
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { ChannelSecrets } from "../src/accounts/secrets.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

describe("the secrets of webhooks and observers", () => {
  test("come from variables and files, of which a variable takes precedence", async () => {
    const folder = await temporaryFolder(cleanup);
    for (const name of ["PARLEY_CHANNEL_HOOK", "PARLEY_CHANNEL_BOTH", "OTHER", ".PARLEY_CHANNEL_DRAFT"])
      writeFileSync(join(folder, name), `${name} in a file\n`, { mode: 0o440 });
    const secrets = new ChannelSecrets(new Map([["PARLEY_CHANNEL_BOTH", "variable"]]), folder);
    assert.deepEqual(Object.fromEntries(secrets.all()), {
      PARLEY_CHANNEL_BOTH: "variable",
      PARLEY_CHANNEL_HOOK: "PARLEY_CHANNEL_HOOK in a file",
    });
    assert.ok(secrets.values.includes("PARLEY_CHANNEL_HOOK in a file"), "the log does not remove it");
  });

  test("do not come from files that everyone can read, or that are empty", async () => {
    const folder = await temporaryFolder(cleanup);
    writeFileSync(join(folder, "PARLEY_CHANNEL_OPEN"), "x");
    chmodSync(join(folder, "PARLEY_CHANNEL_OPEN"), 0o644);
    writeFileSync(join(folder, "PARLEY_CHANNEL_EMPTY"), "\n", { mode: 0o400 });
    assert.equal(new ChannelSecrets(new Map(), folder).all().size, 0);
    assert.equal(new ChannelSecrets(new Map(), join(folder, "missing")).all().size, 0);
  });
});
