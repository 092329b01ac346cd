// The e-mail adapter with real servers: Exim delivers over LMTP and takes answers over SMTP, Dovecot serves the mailbox, people use swaks.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { emailChannel, WireError, type EmailAccount } from "@parley/contracts";
import { freePort } from "@parley/local";
import { Cleanup, startMailPeer, temporaryFolder, type MailPeer } from "@parley/testing";
import { simpleParser, type ParsedMail } from "mailparser";
import { AccountRejectedError, type OutboundPart } from "../src/channels/channel.ts";
import { createEmail } from "../src/channels/email/index.ts";
import { logIn, openClient } from "../src/channels/email/mailbox.ts";
import { AnswerParts } from "../src/channels/text/parts.ts";
import { TestHost } from "./support/channel-host.ts";
import { answersTo, listenLmtp, mailSettings } from "./support/mail.ts";

const soon = () => AbortSignal.timeout(60_000);

function partOf(conversation: string, markdown: string, more: Partial<OutboundPart> = {}): OutboundPart {
  const text = new AnswerParts(emailChannel.capabilities.text).at("answer", markdown, 0)?.rendered ?? null;
  const address = { channel: "email", account: "main", conversation };
  return { address, text, idempotencyKey: "key-1", attempts: 0, ...more };
}

describe("e-mail over LMTP", () => {
  let peer: MailPeer;
  let lmtpPort: number;
  const cleanup = new Cleanup();
  before(async () => {
    lmtpPort = await freePort();
    peer = await startMailPeer({ lmtpPort });
  });
  after(async () => {
    await peer[Symbol.asyncDispose]();
    await cleanup[Symbol.asyncDispose]();
  });

  const create = (more: Partial<EmailAccount> = {}) =>
    createEmail("main", mailSettings(peer, { mode: "lmtp", lmtp_port: lmtpPort, ...more }), {
      password: peer.password,
    });

  test("receives a mail with its file and keeps the mail at its sender until it is stored", async () => {
    const host = new TestHost();
    await using _ = await listenLmtp(create(), host);
    host.refuseNext(new WireError("UNAVAILABLE", "the store is away"));
    const file = join(await temporaryFolder(cleanup), "figures.csv");
    writeFileSync(file, "a,b\n1,2\n");
    await peer.write({
      messageId: "<first@test.local>",
      subject: "Figures",
      body: "Please add them up.",
      attach: [file],
    });
    const [draft] = await host.untilAccepted(1);
    assert.equal(host.attempts, 2);
    assert.match(peer.log(), /451 not stored, try again later/);
    assert.equal(draft?.contact.id, "ann@test.local");
    assert.match(draft?.text ?? "", /^Subject: Figures\n\nPlease add them up\.$/);
    assert.deepEqual(
      draft?.files?.map(({ name, content }) => [name, Buffer.from(content ?? []).toString()]),
      [["figures.csv", "a,b\n1,2\n"]],
    );
  });

  test("ignores a forged sender, an automatic mail and a bounce without an error to the sender", async () => {
    const host = new TestHost();
    await using _ = await listenLmtp(create(), host);
    const result = `Authentication-Results: ${peer.authservId}; dmarc=pass header.from=test.local`;
    await peer.write({ envelopeFrom: "eve@evil.test", headers: [result] });
    await peer.write({ headers: ["Auto-Submitted: auto-replied"] });
    await peer.write({ envelopeFrom: "<>" });
    await peer.write({ body: "the last one" });
    await host.untilAccepted(1);
    await host.until("three ignored mails", () => (host.logText.split("mail ignored").length >= 4 ? true : null));
    assert.equal(host.texts.length, 1);
    assert.match(host.logText, /not authenticated/);
    assert.deepEqual(peer.mails("ann"), []);
  });

  test("refuses mail above the limit, for other recipients and from other servers", async () => {
    const host = new TestHost();
    await using _ = await listenLmtp(create({ max_mail_bytes: 20_000, aliases: ["help@test.local"] }), host);
    await peer.write({ from: "bob@test.local", body: "x\n".repeat(20_000) });
    await peer.untilLogged(/552 Error: message exceeds/);
    assert.deepEqual(await answersTo(lmtpPort, ["LHLO x", "MAIL FROM:<a@b.test>", "RCPT TO:<bob@test.local>"]), [
      "220",
      "250",
      "250",
      "550",
    ]);
    const tagged = ["LHLO x", "MAIL FROM:<a@b.test>", "RCPT TO:<Agent+orders@test.local>", "RCPT TO:<help@test.local>"];
    assert.deepEqual((await answersTo(lmtpPort, tagged)).slice(3), ["250", "250"]);
    const undeclared = [
      "LHLO x",
      "MAIL FROM:<a@b.test>",
      "RCPT TO:<agent@test.local>",
      "DATA",
      `${"x\r\n".repeat(10_000)}.`,
    ];
    assert.equal((await answersTo(lmtpPort, undeclared)).at(-1), "552");
    assert.deepEqual(host.accepted, []);
    const other = await freePort();
    const stranger = new TestHost();
    await using __ = await listenLmtp(create({ lmtp_port: other, lmtp_clients: ["10.0.0.0/8"] }), stranger);
    assert.deepEqual(await answersTo(other, []), ["550"]);
  });

  test("shares the port between replicas, so that mail arrives when one of them stops", async () => {
    const hosts = [new TestHost(), new TestHost()] as const;
    const first = await listenLmtp(create(), hosts[0]);
    await using _ = await listenLmtp(create(), hosts[1]);
    await first[Symbol.asyncDispose]();
    await peer.write({ body: "after the stop" });
    await hosts[1].untilAccepted(1);
  });

  test("rejects when another program has the port", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const adapter = create({ lmtp_port: (other.address() as AddressInfo).port });
    await assert.rejects(adapter.listen?.(new TestHost(), soon()) ?? assert.fail(), { code: "EADDRINUSE" });
    // A rejection that nobody handles would end the gateway; here it fails the test.
    await new Promise((resolve) => other.close(resolve));
  });

  test("answers in the thread with text, HTML and files in one mail that says it is automatic", async () => {
    const host = new TestHost();
    const before = peer.mails("ann").length;
    const adapter = create({ name: "Parley" });
    await using _ = await listenLmtp(adapter, host);
    await peer.write({
      messageId: "<question@test.local>",
      subject: "Grüße",
      headers: ["References: <root@test.local>"],
    });
    const [draft] = await host.untilAccepted(1);
    assert.ok(draft);
    const files = [{ name: "résumé.txt", mediaType: "text/plain", content: Buffer.from("content") }];
    const part = {
      ...partOf(draft.conversation, "It is **done** [here](https://example.com/a).\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
      files,
    };
    const outcome = await adapter.send({ ...part, address: draft.replyTo }, soon());
    assert.equal(outcome.state, "sent");
    const raw = (await peer.untilMails("ann", before + 1))[before] ?? "";
    const mail = await simpleParser(raw);
    assert.equal(mail.subject, "Re: Grüße");
    assert.equal(mail.inReplyTo, "<question@test.local>");
    assert.deepEqual(mail.references, ["<root@test.local>", "<question@test.local>"]);
    assert.equal(mail.from?.text, '"Parley" <agent@test.local>');
    assert.equal(mail.headers.get("auto-submitted"), "auto-replied");
    assert.match(mail.html === false ? "" : (mail.html ?? ""), /<strong>done<\/strong>[^]*<table>/);
    assert.match(mail.text ?? "", /^It is done here \(https:\/\/example\.com\/a\)\./);
    assert.deepEqual(
      mail.attachments.map(({ filename, content }) => [filename, content.toString()]),
      [["résumé.txt", "content"]],
    );
    // Our own mail that comes back is not answered.
    const back = raw.replace(/^To: .*$/m, "To: agent@test.local").replace(/^Return-path:.*\r?\n/im, "");
    await peer.write({ from: "ann@test.local", raw: back.replace(/^From: .*$/m, "From: ann@test.local") });
    await host.until("the ignored mail", () => (/our own mail/.test(host.logText) ? true : null));
  });

  test("has the same Message-ID for each send of a message and another for the next", async () => {
    const adapter = create();
    const before = peer.mails("bob").length;
    for (const idempotencyKey of ["same", "same", "next"])
      await adapter.send(
        partOf("bob@test.local", `**Hello** Bob\n\nmore: ${idempotencyKey}`, { idempotencyKey }),
        soon(),
      );
    const mails: ParsedMail[] = [];
    for (const raw of (await peer.untilMails("bob", before + 3)).slice(before)) mails.push(await simpleParser(raw));
    // The mail server delivers in any order.
    const idsOf = (key: string) =>
      mails.flatMap(({ text, messageId }) => (text?.includes(`more: ${key}`) === true ? [messageId] : []));
    const [one, again] = idsOf("same");
    const [next] = idsOf("next");
    assert.match(one ?? "", /^<parley\.[0-9a-f]{32}@test\.local>$/);
    assert.equal(one, again);
    assert.match(next ?? "", /^<parley\./);
    assert.notEqual(one, next);
    assert.deepEqual([mails[0]?.subject, mails[0]?.headers.get("auto-submitted")], ["Hello Bob", "auto-generated"]);
  });

  test("drops, defers or doubts a mail as the mail server's answer implies", async () => {
    const adapter = create();
    assert.equal((await adapter.send(partOf("nobody@test.local", "x"), soon())).state, "dropped");
    assert.equal((await adapter.send(partOf("nonsense", "x"), soon())).state, "dropped");
    const away = createEmail("main", mailSettings(peer, { mode: "lmtp", smtp_port: await freePort() }), {});
    assert.equal((await away.send(partOf("ann@test.local", "x"), soon())).state, "retry");
    const wrong = createEmail("main", mailSettings(peer, { mode: "lmtp" }), { password: "wr0ng" });
    const refused = await wrong.send(partOf("ann@test.local", "x"), soon());
    assert.ok(refused.state === "retry" && refused.scope === "account");
    await assert.rejects(
      async () => wrong.check?.(soon()),
      (error: Error) => !error.message.includes("wr0ng"),
    );
    assert.deepEqual(await adapter.check?.(soon()), { as: "agent@test.local" });
  });

  test("doubts a mail when the connection breaks after its transmission, and only then", async () => {
    for (const [answer, state] of Object.entries({ "": "unknown", "451 later": "retry", "554 spam": "dropped" })) {
      const server = await startSmtp(answer);
      const adapter = createEmail("main", mailSettings(peer, { mode: "lmtp", smtp_port: server.port }), {});
      const outcome = await adapter.send(partOf("ann@test.local", "x"), soon());
      assert.equal(outcome.state, state, answer);
      server.close();
    }
    assert.equal((await create().send(partOf("ann@test.local", "x"), AbortSignal.abort())).state, "retry");
  });

  // design: 004.22e
  test("sends no answer when auto_reply is off, and still sends mail of its own", async () => {
    const host = new TestHost();
    const adapter = create({ auto_reply: false });
    await using _ = await listenLmtp(adapter, host);
    await peer.write({});
    const [draft] = await host.untilAccepted(1);
    assert.ok(draft);
    const answer = await adapter.send({ ...partOf("", "x"), address: draft.replyTo }, soon());
    assert.deepEqual(answer, { state: "dropped", reason: "auto_reply is off: mail is not answered" });
    assert.equal((await adapter.send(partOf("bob@test.local", "news"), soon())).state, "sent");
  });

  test("never logs in without the TLS that the settings require", async () => {
    const sender = createEmail("main", mailSettings(peer, { mode: "lmtp", smtp_tls: "starttls" }), {
      password: peer.password,
    });
    const outcome = await sender.send(partOf("ann@test.local", "x"), soon());
    assert.ok(outcome.state === "retry" && outcome.scope === "account", JSON.stringify(outcome));
    assert.match(outcome.reason, /STARTTLS/);
    const implicit = createEmail("main", mailSettings(peer, { mode: "lmtp", smtp_tls: "implicit" }), {});
    assert.equal((await implicit.send(partOf("ann@test.local", "x"), soon())).state, "retry");
  });

  // design: 004.22e
  test("refuses an account without consent and passwords without TLS", () => {
    assert.throws(() => create({ consent: false }), /consent = true/);
    assert.throws(() => create({ smtp_host: "mail.example.com" }), /requires TLS/);
    assert.throws(() => create({ mode: "imap", imap_host: "mail.example.com" }), /only for servers on this machine/);
    assert.throws(() => create({ lmtp_clients: ["everybody"] }), /not an address or network/);
  });
});

describe("e-mail over IMAP", () => {
  let peer: MailPeer;
  before(async () => {
    peer = await startMailPeer();
  });
  after(() => peer[Symbol.asyncDispose]());

  const create = (password = peer.password, more: Partial<EmailAccount> = {}) =>
    createEmail("main", mailSettings(peer, more), { password });
  const untilConnected = (host: TestHost) =>
    host.until("the connection", () => (host.reported.at(-1)?.state === "connected" ? true : null));

  test("receives new mail as soon as the server reports it, and continues on another replica", async (t) => {
    const { setTimeout: wait } = globalThis;
    // Without the periodic search only IDLE tells of new mail.
    t.mock.method(globalThis, "setTimeout", (work: () => void, ms?: number, ...args: []) =>
      wait(ms === 30_000 ? () => undefined : work, ms, ...args),
    );
    await peer.write({ body: "from before the first connection" });
    await peer.untilLogged(/Completed/);
    const host = new TestHost();
    const first = host.lease();
    const ended = create().connect?.(host, first.lease);
    await untilConnected(host);
    await peer.write({ body: "one" });
    await host.untilAccepted(1);
    assert.match(host.cursor ?? "", /^\d{20}:\d+$/);
    host.refuseNext(new WireError("UNAVAILABLE", "the store is away"));
    await peer.write({ body: "two", headers: ["In-Reply-To: <a@b>"] });
    await host.untilAccepted(2);
    first.lose();
    await ended;
    await peer.write({ body: "three" });
    await peer.write({ headers: ["Precedence: bulk"] });
    const second = host.lease();
    const again = create().connect?.(host, second.lease);
    await host.untilAccepted(3);
    await peer.write({ body: "four" });
    await host.untilAccepted(4);
    assert.deepEqual(
      host.texts.map((text) => text.replace("Subject: Hello\n\n", "")),
      ["one", "two", "three", "four"],
    );
    second.lose();
    await again;
    // The ends of the connections may have interrupted the marks of the second and the fourth.
    const seen = await seenBodies(peer);
    assert.deepEqual(
      ["one", "three", "hello"].map((body) => seen.includes(body)),
      [true, true, false],
    );
  });

  test("skips mail above the limit and reads a mailbox that was renumbered without doubling", async () => {
    const host = new TestHost();
    const first = host.lease();
    const ended = create(undefined, { max_mail_bytes: 20_000 }).connect?.(host, first.lease);
    await untilConnected(host);
    await peer.write({ body: "x\n".repeat(20_000) });
    await peer.write({ messageId: "<kept@test.local>", body: "small" });
    await host.untilAccepted(1);
    await host.untilLogged(/larger than max_mail_bytes/);
    first.lose();
    await ended;
    host.cursor = "1:5";
    const again = host.lease();
    const attempts = host.attempts;
    const repeated = create(undefined, { max_mail_bytes: 20_000 }).connect?.(host, again.lease);
    await host.until("the mail again", () => (host.attempts > attempts && host.accepted.length >= 1 ? true : null));
    await host.untilLogged(/renumbered/);
    await host.until("the end", () => (host.cursor?.startsWith("1:") === false ? true : null));
    assert.equal(host.accepted.filter(({ externalId }) => externalId.includes("<kept@")).length, 1);
    again.lose();
    await repeated;
  });

  test("reads recent mail when the account is changed to another mail server, whose mailbox has the same number", async () => {
    const host = new TestHost();
    const first = host.lease();
    const ended = create().connect?.(host, first.lease);
    await untilConnected(host);
    first.lose();
    await ended;
    await peer.write({ messageId: "<moved@test.local>", body: "after the move" });
    host.cursor = host.cursor?.replace(/:\d+$/, ":4000000000") ?? null;
    const moved = host.lease();
    const again = create(undefined, { imap_host: "localhost" }).connect?.(host, moved.lease);
    await host.until("the mail", () => host.accepted.find(({ externalId }) => externalId.includes("<moved@")) ?? null);
    moved.lose();
    await again;
  });

  test("reads no old mail when the reading after a renumbering was interrupted", async () => {
    const client = openClient(mailSettings(peer), peer.password);
    await logIn(client);
    const headers = "From: ann@test.local\r\nTo: agent@test.local\r\nMessage-ID: <old@test.local>\r\n";
    const passed = `Authentication-Results: ${peer.authservId}; dmarc=pass header.from=test.local\r\n`;
    const lastWeek = new Date(Date.now() - 7 * 24 * 60 * 60_000);
    await client.append("INBOX", `${headers}${passed}\r\nfrom last week`, [], lastWeek);
    client.close();
    await peer.write({ messageId: "<recent@test.local>", body: "recent" });
    const host = new TestHost();
    host.cursor = "1:5";
    host.refuseNext(new WireError("FENCED", "the lease is lost"));
    await assert.rejects(create().connect?.(host, host.lease().lease) ?? Promise.resolve(), /the lease is lost/);
    const next = host.lease();
    const again = create().connect?.(host, next.lease);
    await host.until(
      "recent mail",
      () => host.accepted.find(({ externalId }) => externalId.includes("<recent@")) ?? null,
    );
    await host.until("the end", () => (host.cursor?.startsWith("1:") === false ? true : null));
    next.lose();
    await again;
    assert.equal(host.accepted.filter(({ externalId }) => externalId.includes("<old@")).length, 0);
  });

  test("continues at a cursor of an earlier version, which names no mail server", async () => {
    const host = new TestHost();
    const first = host.lease();
    const ended = create().connect?.(host, first.lease);
    await untilConnected(host);
    first.lose();
    await ended;
    const [, uidValidity = "", uid = ""] = /0*([1-9]\d{0,9}):(\d+)$/.exec(host.cursor?.slice(-21) ?? "") ?? [];
    host.cursor = `${uidValidity}:${uid}`;
    await peer.write({ body: "written before the upgrade" });
    const next = host.lease();
    const again = create().connect?.(host, next.lease);
    await host.untilAccepted(1);
    next.lose();
    await again;
    assert.match(host.texts[0] ?? "", /written before the upgrade/);
    assert.doesNotMatch(host.logText, /read again/);
  });

  // design: 004.22e
  test("searches the mailbox every 30 s when the server reports no new mail", async (t) => {
    const { setTimeout: wait } = globalThis;
    let searches = 0;
    t.mock.method(globalThis, "setTimeout", (work: () => void, ms?: number, ...args: []) => {
      if (ms === 30_000) searches += 1;
      return wait(work, ms === 30_000 ? 500 : ms, ...args);
    });
    await using silent = await startMailPeer({ imapIdle: false });
    const host = new TestHost();
    const { lease, lose } = host.lease();
    const ended = createEmail("main", mailSettings(silent), { password: silent.password }).connect?.(host, lease);
    await untilConnected(host);
    await silent.write({ body: "found by a search" });
    await host.untilAccepted(1);
    assert.ok(searches > 0);
    lose();
    await ended;
  });

  test("ends when the server stops and throws when it refuses the password", async () => {
    const host = new TestHost();
    const { lease } = host.lease();
    const ended = create().connect?.(host, lease);
    await untilConnected(host);
    await peer.dovecot?.kill();
    await ended;
    assert.equal(host.reported.at(-1)?.state, "failing");
    await assert.rejects(async () => create().connect?.(host, lease), /IMAP/);
    await peer.dovecot?.start();
    await assert.rejects(async () => create("wr0ng").connect?.(host, lease), AccountRejectedError);
    await assert.rejects(async () => create("wr0ng").check?.(soon()), /refused the username or password/);
    await assert.rejects(async () => create(undefined, { imap_tls: "starttls" }).check?.(soon()), /STARTTLS/);
    assert.deepEqual(await create().check?.(soon()), { as: "agent@test.local" });
    assert.doesNotMatch(host.logText, /wr0ng|s3cret-mail/);
  });
});

/** The texts of the agent's mail that is marked as read. */
async function seenBodies(peer: MailPeer): Promise<string[]> {
  const client = openClient(mailSettings(peer), peer.password);
  await logIn(client);
  await client.mailboxOpen("INBOX");
  const mails = await client.fetchAll({ seen: true }, { uid: true, source: true });
  client.close();
  const parsed = await Promise.all(mails.map(({ source = Buffer.alloc(0) }) => simpleParser(source)));
  return parsed.map(({ text = "" }) => text.trim());
}

/** A server that answers a mail with this line; an empty one: it breaks the connection. */
async function startSmtp(answer: string): Promise<{ port: number; close: () => void }> {
  const server = createServer((socket) => {
    let data = false;
    socket.on("error", () => undefined).write("220 test\r\n");
    createInterface({ input: socket }).on("line", (line) => {
      if (data && line !== ".") return;
      if (data && answer === "") socket.destroy();
      else socket.write(data ? `${answer}\r\n` : /^DATA/i.test(line) ? "354 go\r\n" : "250 ok\r\n");
      data = !data && /^DATA/i.test(line);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}
