import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ConfigError, createLogger, faultPoint, parseSettings, readBaseConfig } from "@parley/chassis";
import { armFaults } from "../src/fault.ts";
import { redactSecrets } from "../src/redact.ts";

describe("parley.toml", () => {
  test("has the defaults when the file is empty", () => {
    const settings = parseSettings("", "parley.toml");
    assert.equal(settings.session.policy, "singleton");
    assert.equal(settings.agent.max_concurrent_turns, 64);
    assert.deepEqual(settings.channels.telegram, {});
  });

  test("refuses an unknown key and suggests the closest known one", () => {
    const wrong = (text: string, message: RegExp) =>
      assert.throws(
        () => parseSettings(text, "parley.toml"),
        (error: unknown) => error instanceof ConfigError && message.test(error.message),
      );
    wrong('[sesion]\npolicy = "singleton"', /unknown key "sesion"; did you mean "session"/);
    wrong('[session]\npolice = "singleton"', /\[session\] unknown key "police"; did you mean "policy"/);
    wrong('[channels.telegram.main]\ntoken_env = "PARLEY_CHANNEL_X"\nalow_from = []', /did you mean "allow_from"/);
    wrong('[session]\npolicy = "both"', /session\.policy/);
    wrong('[channels.telegram.main]\ntoken_env = "123:secret"', /must be the name of an environment variable/);
    wrong("[session", /not TOML/);
  });
});

test("names an invalid variable and treats an empty one as absent", () => {
  assert.throws(() => readBaseConfig({ PARLEY_LOG_LEVEL: "loud" }, "store"), /PARLEY_LOG_LEVEL/);
  assert.equal(readBaseConfig({ PARLEY_NAMESPACE: "" }, "store").namespace, "parley");
});

describe("the log", () => {
  test("contains no secret in any field", () => {
    const lines: string[] = [];
    const log = createLogger({
      service: "store",
      replica: "store-1",
      level: "info",
      secrets: ["hunter2-hunter2"],
      write: (line) => lines.push(line),
    });
    log.info(
      { reason: "postgres://u:p4ssw0rd@127.0.0.1/x", counts: { token: "sk-ant-api03-abcdefghijklmnop" } },
      "hunter2-hunter2",
    );
    log.error(
      { err: new Error("GET https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz012345/getMe") },
      "failed",
    );
    const text = lines.join("");
    for (const secret of ["p4ssw0rd", "sk-ant-api03", "hunter2", "AAabcdefghij"])
      assert.ok(!text.includes(secret), secret);
    assert.match(text, /"service":"store"/);
  });

  test("contains no secret whose characters JSON escapes", () => {
    const lines: string[] = [];
    const secret = 'pass"word\\with-\nline';
    const write = (line: string) => lines.push(line);
    const log = createLogger({ service: "store", replica: "store-1", level: "info", secrets: [secret], write });
    log.info({ reason: `refused ${secret}` }, "failed");
    const { reason } = JSON.parse(lines.join("")) as { reason: string };
    assert.equal(reason, "refused [secret]");
  });

  test("stays JSON with all fields when an address without a path precedes an @", () => {
    const lines: string[] = [];
    const write = (line: string) => lines.push(line);
    const log = createLogger({ service: "channel-gateway", replica: "channel-gateway-1", level: "info", write });
    const fields = { url: "http://127.0.0.1:8008", by: "@owner:localhost", from: "a@example.org" };
    log.info(fields, "connected");
    const { url, by, from } = JSON.parse(lines.join("")) as typeof fields;
    assert.deepEqual({ url, by, from }, fields);
  });

  test("keeps text that is not a secret", () => {
    const line = '{"msg":"turn 0198f1a2-1234-7abc-8def-0123456789ab took 12:30:05"}';
    assert.equal(redactSecrets(line), line);
  });
});

describe("fault points", () => {
  test("fires an armed point each time, and no other point", () => {
    armFaults({ point: "here:throw", directory: undefined });
    assert.throws(() => faultPoint("here"), /fault here/);
    assert.throws(() => faultPoint("here"), /fault here/);
    faultPoint("there");
    armFaults({ point: undefined, directory: undefined });
    faultPoint("here");
  });

  test("fires once for a file in the folder", () => {
    const directory = mkdtempSync(join(tmpdir(), "parley-fault-"));
    armFaults({ point: undefined, directory });
    writeFileSync(join(directory, "area.before_it"), "throw\n");
    assert.throws(() => faultPoint("area.before_it"), /fault area.before_it/);
    faultPoint("area.before_it");
    assert.deepEqual(readdirSync(directory), []);
    armFaults({ point: undefined, directory: undefined });
  });
});
