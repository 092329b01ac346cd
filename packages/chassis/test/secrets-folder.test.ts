// Variables from the files of a folder.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { Cleanup, temporaryFolder } from "@parley/testing";

import { readBaseConfig } from "../src/config.ts";
import { withSecretsFolder } from "../src/secrets-folder.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder(cleanup);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o440 });
  return folder;
}

describe("the folder PARLEY_SECRETS_DIR", () => {
  test("provides the variables that are not set, without the newline of a file", async () => {
    const folder = await folderWith({ DATABASE_URL: "postgres://from-file\n", PARLEY_NATS_URL: "nats://from-file" });
    const env = withSecretsFolder({ PARLEY_SECRETS_DIR: folder, PARLEY_NATS_URL: "nats://variable", DATABASE_URL: "" });
    assert.deepEqual([env["DATABASE_URL"], env["PARLEY_NATS_URL"]], ["postgres://from-file", "nats://variable"]);
  });

  test("must contain the address of NATS when no variable has it", async () => {
    const folder = await folderWith({});
    assert.throws(() => readBaseConfig(withSecretsFolder({ PARLEY_SECRETS_DIR: folder }), "agent-core"), {
      name: "ConfigError",
      message: `environment: PARLEY_NATS_URL is missing: add a file of this name to ${folder} (PARLEY_SECRETS_DIR)`,
    });
    assert.equal(readBaseConfig({}, "agent-core").natsUrl, "nats://127.0.0.1:4222");
  });

  test("is read like a Kubernetes volume, whose files are links to a hidden folder", async () => {
    const folder = await temporaryFolder(cleanup);
    mkdirSync(join(folder, "..data"));
    writeFileSync(join(folder, "..data", "REDIS_URL"), "redis://x", { mode: 0o440 });
    symlinkSync(join("..data", "REDIS_URL"), join(folder, "REDIS_URL"));
    const env = withSecretsFolder({ PARLEY_SECRETS_DIR: folder });
    assert.deepEqual(Object.keys(env).toSorted(), ["PARLEY_SECRETS_DIR", "REDIS_URL"]);
  });

  test("leaves the secrets of channels to the gateway, also unusable ones", async () => {
    const folder = await folderWith({ PARLEY_CHANNEL_BOT: "x" });
    chmodSync(join(folder, "PARLEY_CHANNEL_BOT"), 0o644);
    assert.equal(withSecretsFolder({ PARLEY_SECRETS_DIR: folder })["PARLEY_CHANNEL_BOT"], undefined);
  });

  test("refuses a file that everyone can read, and names it", async () => {
    const folder = await folderWith({ DATABASE_URL: "x" });
    chmodSync(join(folder, "DATABASE_URL"), 0o644);
    assert.throws(
      () => withSecretsFolder({ PARLEY_SECRETS_DIR: folder }),
      /PARLEY_SECRETS_DIR: \S+DATABASE_URL can be read or changed by others: chmod 600/,
    );
  });

  test("may be missing", () => {
    const env = { PARLEY_SECRETS_DIR: "/does/not/exist", A: "b" };
    assert.deepEqual(withSecretsFolder(env), env);
    assert.equal(withSecretsFolder(process.env), process.env);
  });
});
