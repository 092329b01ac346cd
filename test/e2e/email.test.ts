// E-mail through real servers and two gateways: Exim and OpenSMTPD deliver to either of them over LMTP, Dovecot serves a mailbox to one of
// them. A gateway is killed after it has stored a mail and before it has said so: the mail arrives again, is one turn and has one answer.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { freePort } from "@parley/local";
import {
  Cleanup,
  missingOpenSmtpd,
  startMailPeer,
  startOpenSmtpd,
  startTestCluster,
  temporaryFolder,
  type MailPeer,
  type OpenSmtpd,
  type TestCluster,
} from "@parley/testing";

const cleanup = new Cleanup();
let cluster: TestCluster;
let lmtp: MailPeer;
let imap: MailPeer;
const withoutOpenSmtpd = await missingOpenSmtpd();
let openSmtpd: OpenSmtpd;

const accountOf = (name: string, peer: MailPeer, more: string) => `
[channels.email.${name}]
consent = true
address = "agent@${peer.domain}"
username = "agent"
authserv_id = "${peer.authservId}"
smtp_host = "127.0.0.1"
smtp_port = ${peer.smtpPort}
smtp_tls = "none"
password_env = "PARLEY_CHANNEL_MAIL"
${more}
`;

before(async () => {
  const lmtpPort = await freePort();
  lmtp = await startMailPeer({ lmtpPort });
  cleanup.add(async () => lmtp[Symbol.asyncDispose]());
  if (withoutOpenSmtpd === false) {
    openSmtpd = await startOpenSmtpd({ lmtpPort });
    cleanup.add(async () => openSmtpd[Symbol.asyncDispose]());
  }
  imap = await startMailPeer();
  cleanup.add(async () => imap[Symbol.asyncDispose]());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    replicas: { "channel-gateway": 2 },
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
${accountOf("lmtp", lmtp, `mode = "lmtp"\nlmtp_port = ${lmtpPort}\nallow_from = ["Ann@Test.local"]`)}
${accountOf("imap", imap, `imap_host = "127.0.0.1"\nimap_port = ${imap.imapPort}\nimap_tls = "none"\nallow_from = ["bob@test.local"]`)}
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_MAIL: lmtp.password } },
  });
});
after(() => cleanup[Symbol.asyncDispose]());

describe("e-mail", () => {
  test("answers a mail with a file in its thread", async () => {
    const file = join(await temporaryFolder(cleanup), "figures.csv");
    writeFileSync(file, "a,b\n1,2\n");
    await lmtp.write({ messageId: "<file@test.local>", subject: "Figures", body: "Please look.", attach: [file] });
    const [answer = ""] = await lmtp.untilMails("ann", 1);
    assert.match(answer, /^Subject: Re: Figures$/m);
    assert.match(answer, /^In-Reply-To: <file@test\.local>$/m);
    assert.match(answer, /^Auto-Submitted: auto-replied$/m);
    assert.match(answer, /Please look/);
    assert.doesNotMatch(answer, /is missing from this/);
  });

  test("ignores a forged owner and sends an unknown person nothing but a pairing code", async () => {
    const before = lmtp.mails("ann").length;
    const forged = `Authentication-Results: ${lmtp.authservId}; dmarc=pass header.from=test.local`;
    await lmtp.write({ envelopeFrom: "eve@evil.test", headers: [forged], body: "/status" });
    await lmtp.untilLogged(/eve@evil\.test[^]*Completed/);
    await lmtp.write({ from: "bob@test.local", body: "from Bob" });
    const [code = ""] = await lmtp.untilMails("bob", 1);
    assert.match(code, /pairing approve/);
    assert.equal(lmtp.mails("ann").length, before);
  });

  /** The mail server with a person's mailbox, and the one that takes their mail. */
  const ways = {
    "LMTP from Exim": () => ({ peer: lmtp, person: "ann", server: lmtp }),
    "LMTP from OpenSMTPD": () => ({ peer: lmtp, person: "ann", server: openSmtpd }),
    IMAP: () => ({ peer: imap, person: "bob", server: imap }),
  };
  for (const [name, of] of Object.entries(ways)) {
    const skip = name.includes("OpenSMTPD") && withoutOpenSmtpd;
    test(`answers a mail once when the gateway is killed before it confirms it (${name})`, { skip }, async () => {
      const { peer, person, server } = of();
      const from = `${person}@test.local`;
      const earlier = peer.mails(person).length;
      await server.write({ from, subject: "ready", body: "ready?" });
      const before = (await peer.untilMails(person, earlier + 1)).length;
      await cluster.fault("inbox.after_put", "kill");
      const messageId = `<${name.replaceAll(" ", "-")}@test.local>`;
      await server.write({ from, messageId, subject: "Twice", body: "only one answer" });
      if (name.includes("OpenSMTPD")) {
        await openSmtpd.untilLogged(/TempFail/);
        await openSmtpd.retry();
      }
      await peer.untilMails(person, before + 1);
      assert.deepEqual(await cluster.armed(), []);
      await server.write({ from, subject: "Last", body: "the last" });
      const answers = (await peer.untilMails(person, before + 2)).slice(before);
      assert.deepEqual(
        answers.map((mail) => /^Subject: (.*)$/m.exec(mail)?.[1]),
        ["Re: Twice", "Re: Last"],
      );
      // The second delivery ends here, so that it does not meet the fault of the next test.
      if (name.includes("Exim"))
        await lmtp.untilLogged(
          /(\S+) <= [^\n]* id=LMTP-from-Exim@test\.local\n[^]*\1 == agent@test\.local[^\n]*defer[^]*\1 Completed/,
        );
    });
  }
});
