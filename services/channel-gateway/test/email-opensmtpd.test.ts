// The e-mail adapter behind OpenSMTPD: people write with swaks, the server delivers over LMTP and keeps a mail until it is confirmed.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { emailChannel, WireError } from "@parley/contracts";
import { freePort } from "@parley/local";
import { Cleanup, missingOpenSmtpd, startOpenSmtpd, temporaryFolder, type OpenSmtpd } from "@parley/testing";
import { createEmail } from "../src/channels/email/index.ts";
import { TestHost } from "./support/channel-host.ts";
import { listenLmtp } from "./support/mail.ts";

describe("e-mail from OpenSMTPD", { skip: await missingOpenSmtpd() }, () => {
  const cleanup = new Cleanup();
  let server: OpenSmtpd;
  let lmtpPort: number;
  before(async () => {
    lmtpPort = await freePort();
    server = await startOpenSmtpd({ lmtpPort });
    cleanup.add(async () => server[Symbol.asyncDispose]());
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const listen = (host: TestHost, more: object = {}) => {
    const settings = emailChannel.settings.parse({
      address: "agent@test.local",
      consent: true,
      authserv_id: "mx.test.local",
      mode: "lmtp",
      lmtp_port: lmtpPort,
      smtp_host: "127.0.0.1",
      smtp_tls: "none",
      ...more,
    });
    return listenLmtp(createEmail("main", settings, {}), host);
  };

  test("stays in the queue of the server until its message is stored, then arrives once", async () => {
    const host = new TestHost();
    await using _ = await listen(host);
    const file = join(await temporaryFolder(cleanup), "figures.csv");
    writeFileSync(file, "a,b\n1,2\n");
    host.refuseNext(new WireError("UNAVAILABLE", "the store is away"));
    await server.write({ messageId: "<kept@test.local>", subject: "Figures", body: "Add them up.", attach: [file] });
    await server.untilLogged(/TempFail.*451 not stored, try again later/);
    assert.deepEqual(host.texts, []);
    await server.retry();
    await server.untilLogged(/result=Ok/);
    const [draft] = host.accepted;
    assert.deepEqual(
      [draft?.externalId, draft?.text, draft?.files?.map(({ name }) => name)],
      ["ann@test.local <kept@test.local>", "Subject: Figures\n\nAdd them up.", ["figures.csv"]],
    );
    assert.equal(host.attempts, 2);
    await server.retry();
    await server.write({ body: "the next one" });
    await server.untilLogged(/(?:result=Ok[^]*){2}/);
    assert.equal(host.attempts, 3);
  });

  test("waits for a gateway that is away", async () => {
    const deferred = server.log().split("TempFail").length;
    await server.write({ body: "nobody listens" });
    await server.untilLogged(new RegExp(`(?:TempFail[^]*){${deferred}}`));
    const host = new TestHost();
    await using _ = await listen(host);
    await server.retry();
    await host.untilAccepted(1);
    assert.match(host.texts[0] ?? "", /nobody listens$/);
  });
});
