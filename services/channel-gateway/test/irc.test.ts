// The IRC adapter against a real InspIRCd with `ii` as the user, and against a scripted server for behaviour that cannot be provoked there.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { ircChannel, WireError, type IrcAccount } from "@parley/contracts";
import { startIi, startInspIrcd, type Ii } from "@parley/testing";
import type { ChannelAdapter, LeaseRef, OutboundPart, SendOutcome } from "../src/channels/channel.ts";
import { createIrc, type IrcTuning } from "../src/channels/irc/index.ts";
import { TestHost } from "./support/channel-host.ts";
import { firstPart, sendAnswer } from "./support/parts.ts";
import { letIn, startScriptedIrc } from "./support/scripted-irc.ts";

const swift: IrcTuning = { times: { nickRetryMs: 100 } };
const modern = "message-tags server-time echo-message labeled-response batch account-tag";

function settingsFor(port: number, more: Partial<IrcAccount> = {}): IrcAccount {
  return {
    owners: [],
    allow_from: [],
    dm_policy: "open",
    groups: ["#agents"],
    require_mention: true,
    host: "127.0.0.1",
    port,
    tls: false,
    nick: "parley",
    ...more,
  };
}

/** The messages of one nick in a channel, without the joins and parts that `ii` also records. */
const heardFrom = (listener: Ii, nick: string, channel: string): string[] =>
  listener.lines(channel).flatMap((line) => (line.nick === nick ? [line.text] : []));

interface Running extends AsyncDisposable {
  adapter: ChannelAdapter;
  host: TestHost;
  /** Ends the lease and waits for the connection to be closed. */
  lose(): Promise<void>;
  ended: Promise<void>;
}

/** Connects an adapter; disposing ends the connection. */
async function running(adapter: ChannelAdapter, host = new TestHost()): Promise<Running> {
  const { lease, lose } = host.lease();
  const already = host.logged.filter((line) => line.message === "connected").length;
  const ended = connecting(adapter, host, lease);
  const connected = host.until("the connection", () =>
    host.logged.filter((line) => line.message === "connected").length > already ? true : null,
  );
  await Promise.race([connected, ended.then(() => assert.fail("the connection ended"))]);
  const end = async (): Promise<void> => {
    lose();
    await ended.catch(() => {});
  };
  return { adapter, host, lose: end, ended, [Symbol.asyncDispose]: end };
}

async function connecting(adapter: ChannelAdapter, host: TestHost, lease: LeaseRef): Promise<void> {
  await adapter.connect?.(host, lease);
}

function answer(conversation: string, text: string, replyToId?: string): OutboundPart {
  return firstPart(ircChannel.capabilities.text, addressOf(conversation, replyToId), text);
}

function addressOf(conversation: string, replyToId?: string) {
  return { channel: "irc", account: "main", conversation, ...(replyToId === undefined ? {} : { replyToId }) };
}

/** Sends until the outcome is not `retry`; each attempt waits for a connection. */
async function untilTaken(adapter: ChannelAdapter, message: OutboundPart): Promise<SendOutcome> {
  for (;;) {
    const outcome = await adapter.send(message, soon());
    if (outcome.state !== "retry") return outcome;
  }
}

const soon = (): AbortSignal => AbortSignal.timeout(60_000);

// The server accepts one client per second, so most of the time is waiting.
describe("the IRC channel", { concurrency: 12 }, () => {
  test("receives channel and private messages and sends answers to their origin", async () => {
    await using server = await startInspIrcd();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    await ann.say("#agents", "parley: what is this?");
    await bot.host.untilAccepted(1);
    await ann.say("parley", "and this?");
    const [inChannel, inPrivate] = await bot.host.untilAccepted(2);
    assert.deepEqual(
      [inChannel, inPrivate].map((draft) => [
        draft?.conversation,
        draft?.direct,
        draft?.addressed,
        draft?.text,
        draft?.contact.id,
      ]),
      [
        ["#agents", false, true, "what is this?", "ann"],
        ["ann", true, true, "and this?", "ann"],
      ],
    );
    assert.match(inChannel?.externalId ?? "", /~/, "the server's own message id");
    const sent = await bot.adapter.send(answer("#agents", "A **test**.", "ann"), soon());
    assert.ok(sent.state === "sent" && sent.providerMessageId !== null);
    assert.equal((await ann.hear("#agents", /test/)).text, "ann: A test.");
    assert.equal((await bot.adapter.send(answer("ann", "And this too."), soon())).state, "sent");
    assert.equal((await ann.hear("parley", /too/)).text, "And this too.");
    await bot.adapter.typing?.(answer("#agents", "").address);
    assert.equal((await bot.adapter.send(answer("#agents", "still here"), soon())).state, "sent");
    assert.equal(bot.host.accepted.length, 2, "our own messages are not received");
  });

  test("sends an answer of 9,000 characters as ordered lines", async () => {
    await using server = await startInspIrcd();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const words = Array.from({ length: 1_500 }, (_, number) => `w${number}ä`).join(" ");
    assert.ok(words.length > 9_000);
    const outcomes = await sendAnswer(bot.adapter, addressOf("#agents"), words, soon());
    assert.ok(outcomes.length > 20 && outcomes.every(({ state }) => state === "sent"));
    await ann.hear("#agents", /w1499ä$/);
    assert.equal(heardFrom(ann, "parley", "#agents").join(" "), words);
  });

  test("never sends a command of the protocol from a model's text or target", async () => {
    await using server = await startInspIrcd();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const attempts = [
      "a\r\nQUIT :x",
      "b\nPRIVMSG #agents :forged",
      "c\rPART #agents",
      "d\0e",
      "\u0001ACTION waves\u0001",
      "z",
    ];
    for (const text of attempts) {
      for (const { state } of await sendAnswer(bot.adapter, addressOf("#agents"), text, soon())) {
        assert.equal(state, "sent");
      }
    }
    for (const target of ["#agents,ann", "#agents x", "ann\r\nQUIT", ":x", ""]) {
      assert.equal((await bot.adapter.send(answer(target, "x"), soon())).state, "dropped");
    }
    await ann.hear("#agents", /^z$/);
    assert.deepEqual(heardFrom(ann, "parley", "#agents"), [
      "a",
      "QUIT :x",
      "b",
      "PRIVMSG #agents :forged",
      "c",
      "PART #agents",
      "de",
      "ACTION waves",
      "z",
    ]);
    const spoken = ann.lines("#agents").filter(({ nick }) => nick !== "");
    assert.equal(spoken.length, 9, "no other messages");
    assert.ok(
      !ann.lines("#agents").some(({ nick, text }) => nick === "" && /quit|left/.test(text)),
      "nobody left the channel",
    );
  });

  test("drops an answer to an unknown nick or channel", async () => {
    await using server = await startInspIrcd();
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const outcome = await bot.adapter.send(answer("nobody", "hello"), soon());
    assert.equal(outcome.state, "dropped");
    assert.match("reason" in outcome ? outcome.reason : "", /401 No such nick/);
    assert.equal((await bot.adapter.send(answer("#elsewhere", "hello"), soon())).state, "dropped");
  });

  test("confirms an answer by PING on a server without ids and echoes", async () => {
    await using server = await startInspIrcd({ modern: false });
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    await ann.say("#agents", "parley: hi");
    const [draft] = await bot.host.untilAccepted(1);
    assert.match(draft?.externalId ?? "", /^sha256:/);
    const sent = { state: "sent", providerMessageId: null };
    assert.deepEqual(await sendAnswer(bot.adapter, addressOf("#agents"), "hello\nthere", soon()), [sent, sent]);
    await ann.hear("#agents", /there/);
    assert.equal((await bot.adapter.send(answer("nobody", "hello"), soon())).state, "dropped");
  });

  test("reconnects after a server restart, and answers wait until then", async () => {
    await using server = await startInspIrcd();
    const adapter = createIrc("main", settingsFor(server.port), {}, swift);
    assert.equal((await adapter.send(answer("#agents", "x"), AbortSignal.abort())).state, "retry");
    await using first = await running(adapter);
    await server.kill();
    await first.ended;
    assert.match(first.host.logText, /connection lost/);
    const patient = untilTaken(adapter, answer("#agents", "worth waiting for"));
    const refused = first.host.lease();
    await assert.rejects(connecting(adapter, first.host, refused.lease), /ECONNREFUSED/);
    await server.start();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using second = await running(adapter, first.host);
    assert.equal((await patient).state, "sent", "the waiting answer was sent after the reconnect");
    await ann.say("#agents", "parley: back?");
    await second.host.untilAccepted(1);
    assert.equal((await adapter.send(answer("#agents", "yes"), soon())).state, "sent");
  });

  test("takes the nick as soon as the previous owner releases it", async () => {
    await using server = await startInspIrcd();
    const old = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const host = new TestHost();
    const { lease, lose } = host.lease();
    const adapter = createIrc("main", settingsFor(server.port), {}, swift);
    const next = connecting(adapter, host, lease);
    await host.untilLogged(/nick parley in use/);
    await old.lose();
    await host.untilLogged(/"connected"/);
    assert.equal((await adapter.send(answer("#agents", "mine now"), soon())).state, "sent");
    lose();
    await next;
  });

  test("reads messages missed while disconnected from the channel history, once", async () => {
    await using server = await startInspIrcd({ history: true });
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await ann.say("#agents", "parley: before you came");
    await using bob = await startIi({ port: server.port, nick: "bob", channels: ["#agents"] });
    const host = new TestHost();
    const first = await running(createIrc("main", settingsFor(server.port), {}, swift), host);
    await ann.say("#agents", "parley: one");
    await host.untilAccepted(1);
    await first.lose();
    await ann.say("#agents", "parley: two");
    await bob.hear("#agents", /two/);
    await using second = await running(createIrc("main", settingsFor(server.port), {}, swift), host);
    await ann.say("#agents", "parley: three");
    await second.host.untilAccepted(3);
    assert.deepEqual(host.texts, ["one", "two", "three"]);
  });

  test("reads messages that a new account missed before it received its first one", async () => {
    await using server = await startInspIrcd({ history: true });
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bob = await startIi({ port: server.port, nick: "bob", channels: ["#agents"] });
    const host = new TestHost();
    const first = await running(createIrc("main", settingsFor(server.port), {}, swift), host);
    await first.lose();
    await ann.say("#agents", "parley: one");
    await bob.hear("#agents", /one/);
    await using second = await running(createIrc("main", settingsFor(server.port), {}, swift), host);
    await second.host.untilAccepted(1);
    assert.deepEqual(host.texts, ["one"]);
  });

  test("reads messages again that it received and could not store before it lost the lease", async () => {
    const at = (ms: number, id: string) => `time=${new Date(Date.now() + ms).toISOString()};msgid=${id}`;
    const [one, two] = [at(60_000, "1"), at(90_000, "2")];
    let connections = 0;
    await using server = await startScriptedIrc(async (client) => {
      await letIn(client, modern);
      const [tag, first, last] =
        (connections += 1) > 1 ? ["batch=h;", "BATCH +h chathistory #agents", "BATCH -h"] : [""];
      client.say(
        ...(first === undefined ? [] : [first]),
        `@${tag}${one} :ann!a@h PRIVMSG #agents :parley: one`,
        `@${tag}${two} :ann!a@h PRIVMSG #agents :parley: two`,
        ...(last === undefined ? [] : [last]),
      );
    });
    const adapter = createIrc("main", settingsFor(server.port), {}, swift);
    const host = new TestHost();
    for (let count = 0; count < 2; count += 1)
      host.refuseNext(new WireError("FENCED", "another replica holds the lease"));
    await assert.rejects(connecting(adapter, host, host.lease().lease), /another replica/);
    await using second = await running(adapter, host);
    await second.host.untilAccepted(2);
    assert.deepEqual(host.texts, ["one", "two"]);
  });

  test("ignores a netsplit and stays connected", async () => {
    await using server = await startScriptedIrc(async (client) => {
      await letIn(client, modern);
      client.say(
        "BATCH +n netsplit a.example b.example",
        "@batch=n :ann!a@h QUIT :a.example b.example",
        "BATCH -n",
        "BATCH +j netjoin a.example b.example",
        "@batch=j :ann!a@h JOIN #agents",
        "BATCH -j",
        ":ann!a@h PRIVMSG #agents :parley: back again",
      );
    });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    await bot.host.untilAccepted(1);
    assert.deepEqual(bot.host.texts, ["back again"]);
  });

  test("retries a message until it is stored, and later messages wait", async () => {
    await using server = await startInspIrcd();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    bot.host.refuseNext();
    bot.host.refuseNext();
    await ann.say("#agents", "parley: one");
    await ann.say("#agents", "parley: two");
    await bot.host.untilAccepted(2);
    assert.deepEqual(bot.host.texts, ["one", "two"]);
    assert.equal(bot.host.attempts, 4);
  });

  test("stops immediately when the lease was taken by another replica", async () => {
    await using server = await startInspIrcd();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    const bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    bot.host.refuseNext(new WireError("FENCED", "another replica holds the lease"));
    await ann.say("#agents", "parley: hi");
    await assert.rejects(bot.ended, /another replica/);
    await using next = await running(createIrc("main", settingsFor(server.port), {}, swift));
    assert.equal((await next.adapter.send(answer("#agents", "mine"), soon())).state, "sent");
  });

  test("reports an unknown outcome when the connection breaks before the echo", async () => {
    await using server = await startScriptedIrc(async (client) => {
      await letIn(client, modern);
      await client.hear(/PRIVMSG/);
      client.cut();
    });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const outcome = await bot.adapter.send(answer("#agents", "hello"), soon());
    assert.deepEqual(outcome, { state: "unknown", reason: "the connection broke" });
  });

  test("reports an unknown outcome when the echo does not arrive in time", async () => {
    const late = new AbortController();
    await using server = await startScriptedIrc(async (client) => {
      await letIn(client, modern);
      await client.hear(/PRIVMSG/);
      late.abort();
    });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    assert.equal((await bot.adapter.send(answer("#agents", "hello"), late.signal)).state, "unknown");
    assert.equal((await bot.adapter.send(answer("#agents", "hello"), AbortSignal.abort())).state, "retry");
  });

  test("closes the connection when the server stops responding", async () => {
    await using server = await startInspIrcd();
    const times = { pingAfterMs: 500, deadAfterMs: 2_500 };
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, { ...swift, times }));
    server.pause();
    await bot.ended;
    assert.match(bot.host.logText, /stopped responding/);
    server.resume();
  });

  test("pings a silent server and stays connected", async () => {
    let pings = 0;
    await using server = await startScriptedIrc(async (client) => {
      await letIn(client, modern);
      for (; pings < 3; pings += 1) {
        await client.hear(/^PING :parley-alive/);
        client.say(":irc.test PONG irc.test :parley-alive");
      }
      client.say(":ann!a@h PRIVMSG parley :still there?");
    });
    const times = { pingAfterMs: 50, deadAfterMs: 60_000 };
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, { ...swift, times }));
    await bot.host.untilAccepted(1);
    assert.equal(pings, 3);
  });

  test("logs in before joining channels when a password is set", async () => {
    await using server = await startScriptedIrc(async (client) => {
      await client.hear(/^CAP LS/);
      client.say(":irc.test CAP * LS * :message-tags", ":irc.test CAP * LS :sasl=EXTERNAL,PLAIN");
      await client.hear(/^CAP REQ :message-tags sasl$/);
      client.say(":irc.test CAP * ACK :message-tags sasl");
      await client.hear(/^AUTHENTICATE :PLAIN$/);
      client.say("AUTHENTICATE +");
      const [, given = ""] = /^AUTHENTICATE :(.*)$/.exec(await client.hear(/^AUTHENTICATE/)) ?? [];
      assert.equal(Buffer.from(given, "base64").toString(), "\0parley\0s3cret");
      client.say(":irc.test 903 parley :ok");
      await client.hear(/^CAP :END/);
      client.say(":irc.test 001 parley :Welcome");
      await client.hear(/^JOIN :#agents/);
      await client.hear(/^PING :parley-ready/);
      client.say(":irc.test PONG irc.test :parley-ready", "@account=ann :x!x@h PRIVMSG parley :hi");
    });
    await using bot = await running(createIrc("main", settingsFor(server.port), { password: "s3cret" }, swift));
    const [draft] = await bot.host.untilAccepted(1);
    assert.equal(draft?.contact.id, "account:ann");
    assert.doesNotMatch(bot.host.logText, /s3cret/);
  });

  test("reports a wrong password without revealing it", async () => {
    await using server = await startScriptedIrc(async (client) => {
      await client.hear(/^CAP LS/);
      client.say(":irc.test CAP * LS :sasl");
      await client.hear(/^CAP REQ/);
      client.say(":irc.test CAP * ACK :sasl");
      await client.hear(/^AUTHENTICATE/);
      client.say("AUTHENTICATE +");
      await client.hear(/^AUTHENTICATE/);
      client.say(":irc.test 904 parley :SASL authentication failed");
    });
    const host = new TestHost();
    const adapter = createIrc("main", settingsFor(server.port), { password: "s3cret" }, swift);
    await assert.rejects(
      connecting(adapter, host, host.lease().lease),
      /refused the login as parley: SASL authentication failed/,
    );
  });

  test("ends a previous connection through NickServ after the login, without the password", async () => {
    await using server = await startScriptedIrc(async (client) => {
      await client.hear(/^CAP LS/);
      client.say(":irc.test 433 * parley :Nickname is already in use", ":irc.test CAP * LS :sasl");
      await client.hear(/^CAP REQ/);
      client.say(":irc.test CAP * ACK :sasl");
      await client.hear(/^AUTHENTICATE/);
      client.say("AUTHENTICATE +");
      await client.hear(/^AUTHENTICATE/);
      // The nick was requested before the login was complete, so the server reports again that it is in use.
      client.say(":irc.test 903 * :ok", ":irc.test 433 * parley :Nickname is already in use");
      const [, substitute = ""] = /^NICK :(.*)$/.exec(await client.hear(/^NICK :parley_/)) ?? [];
      client.say(`:irc.test 001 ${substitute} :Welcome`);
      await client.hear(/^PRIVMSG NickServ :GHOST parley$/);
      await client.hear(/^NICK :parley$/);
      client.say(`:${substitute}!p@h NICK :parley`);
      await client.hear(/^PING :parley-ready/);
      client.say(":irc.test PONG irc.test :parley-ready");
    });
    await using bot = await running(createIrc("main", settingsFor(server.port), { password: "s3cret" }, swift));
    assert.match(bot.host.logText, /nick parley in use/);
  });

  test("refuses an untrusted certificate and accepts a trusted one", async () => {
    await using server = await startInspIrcd({ tls: true });
    const settings = settingsFor(server.port, { tls: true, host: server.host });
    const adapter = createIrc("main", settings, {}, swift);
    const host = new TestHost();
    await assert.rejects(connecting(adapter, host, host.lease().lease), /certificate is not trusted/);
    const usual = getCACertificates("default");
    setDefaultCACertificates([...usual, server.certificate ?? ""]);
    try {
      await using bot = await running(adapter);
      assert.equal((await bot.adapter.send(answer("#agents", "safe"), soon())).state, "sent");
    } finally {
      setDefaultCACertificates(usual);
    }
  });

  test("refuses invalid settings", () => {
    assert.throws(
      () => createIrc("main", settingsFor(1, { groups: ["agents"] }), {}),
      /"agents" in groups is not a valid IRC channel name/,
    );
    assert.throws(() => createIrc("main", settingsFor(1, { groups: ["#a,#b"] }), {}), /not a valid IRC channel name/);
    assert.throws(
      () => createIrc("main", settingsFor(1, { host: "irc.example" }), { password: "x" }),
      /a password requires TLS/,
    );
  });

  test("ends the connection when the lease is lost during the handshake", async () => {
    await using silent = await startScriptedIrc(async () => {});
    const host = new TestHost();
    const { lease, lose } = host.lease();
    const waiting = connecting(createIrc("main", settingsFor(silent.port), {}, swift), host, lease);
    const probe = connect(silent.port, "127.0.0.1");
    await once(probe, "connect");
    lose();
    await waiting;
    probe.destroy();
  });
});
