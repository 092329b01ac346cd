// The adapter against a real InspIRCd with `ii` as the user; against a server of our own only for what the real one cannot be made to do.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { WireError, type IrcAccount } from "@parley/contracts";
import { startIi, startInspIrcd, type Ii } from "@parley/testing";
import type { ChannelAdapter, HeldLease, OutboundText, SendOutcome } from "../src/channel.ts";
import { createIrc, type IrcTuning } from "../src/channels/irc/index.ts";
import { TestHost } from "./support/channel-host.ts";
import { letIn, startScriptedIrc } from "./support/scripted-irc.ts";

const swift: IrcTuning = { pace: { burst: 1_000, everyMs: 1 }, times: { nickRetryMs: 100 } };
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

/** What somebody was heard to say in a channel, without comings and goings, which `ii` notes there too. */
const heardFrom = (listener: Ii, nick: string, channel: string): string[] =>
  listener.lines(channel).flatMap((line) => (line.nick === nick ? [line.text] : []));

interface Running extends AsyncDisposable {
  adapter: ChannelAdapter;
  host: TestHost;
  /** Ends the lease and waits for the connection to be closed. */
  lose(): Promise<void>;
  ended: Promise<void>;
}

/** An adapter that is connected, and was until it is disposed of. */
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

async function connecting(adapter: ChannelAdapter, host: TestHost, lease: HeldLease): Promise<void> {
  await adapter.connect?.(host, lease);
}

function answer(conversation: string, text: string, replyToId?: string): OutboundText {
  const address = { channel: "irc", account: "main", conversation, ...(replyToId === undefined ? {} : { replyToId }) };
  return { address, text, idempotencyKey: "turn-1:0", attempts: 0 };
}

/** Sends until it is not told to try again later; each try waits for a connection by itself. */
async function untilTaken(adapter: ChannelAdapter, message: OutboundText): Promise<SendOutcome> {
  for (;;) {
    const outcome = await adapter.send(message, soon());
    if (outcome.state !== "retry") return outcome;
  }
}

const soon = (): AbortSignal => AbortSignal.timeout(10_000);

// The server lets clients in once a second, so most of the time is waiting.
describe("the IRC channel", { concurrency: 12 }, () => {
  test("a channel line and a private message come in, and answers go back to where they came from", async () => {
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
    assert.equal(bot.host.accepted.length, 2, "our own words do not come in");
  });

  test("an answer of 9,000 characters arrives in order, whole lines, and says what is missing", async () => {
    await using server = await startInspIrcd();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const words = Array.from({ length: 1_500 }, (_, number) => `w${number}ä`).join(" ");
    assert.ok(words.length > 9_000);
    assert.equal((await bot.adapter.send(answer("#agents", words), soon())).state, "sent");
    await ann.hear("#agents", /more lines\)$/);
    const heard = heardFrom(ann, "parley", "#agents");
    assert.equal(heard.length, 13);
    assert.ok(words.startsWith(heard.slice(0, 12).join(" ")), "nothing is missing or swapped up to the cut");
  });

  test("what a model writes cannot give the server a command", async () => {
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
    for (const text of attempts) assert.equal((await bot.adapter.send(answer("#agents", text), soon())).state, "sent");
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
    assert.equal(spoken.length, 9, "and nobody else said anything");
    assert.ok(!ann.lines("#agents").some(({ nick, text }) => nick === "" && /quit|left/.test(text)), "nor has gone");
  });

  test("somebody who is not there cannot be answered", async () => {
    await using server = await startInspIrcd();
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const outcome = await bot.adapter.send(answer("nobody", "hello"), soon());
    assert.equal(outcome.state, "dropped");
    assert.match("reason" in outcome ? outcome.reason : "", /401 No such nick/);
    assert.equal((await bot.adapter.send(answer("#elsewhere", "hello"), soon())).state, "dropped");
  });

  test("on an old server, without ids and echoes, an answer is sent when the server has read it", async () => {
    await using server = await startInspIrcd({ modern: false });
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    await ann.say("#agents", "parley: hi");
    const [draft] = await bot.host.untilAccepted(1);
    assert.match(draft?.externalId ?? "", /^sha256:/);
    assert.deepEqual(await bot.adapter.send(answer("#agents", "hello\nthere"), soon()), {
      state: "sent",
      providerMessageId: null,
    });
    await ann.hear("#agents", /there/);
    assert.equal((await bot.adapter.send(answer("nobody", "hello"), soon())).state, "dropped");
  });

  test("a server that dies and comes back is joined again, and until then answers wait", async () => {
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
    assert.equal((await patient).state, "sent", "what came in between left as soon as it could");
    await ann.say("#agents", "parley: back?");
    await second.host.untilAccepted(1);
    assert.equal((await adapter.send(answer("#agents", "yes"), soon())).state, "sent");
  });

  test("the nick passes from one owner to the next as soon as it is free", async () => {
    await using server = await startInspIrcd();
    const old = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const host = new TestHost();
    const { lease, lose } = host.lease();
    const adapter = createIrc("main", settingsFor(server.port), {}, swift);
    const next = connecting(adapter, host, lease);
    await host.untilLogged(/nick parley is taken/);
    await old.lose();
    await host.untilLogged(/"connected"/);
    assert.equal((await adapter.send(answer("#agents", "mine now"), soon())).state, "sent");
    lose();
    await next;
  });

  test("what was said in a channel while nobody was connected is read from its history, once", async () => {
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

  test("people who vanish in a netsplit are no messages, and the connection stays", async () => {
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

  test("a message the gateway could not keep is offered until it is, and those behind it wait", async () => {
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

  test("an owner whose lease was taken stops at once", async () => {
    await using server = await startInspIrcd();
    await using ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
    const bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    bot.host.refuseNext(new WireError("FENCED", "another replica holds the lease"));
    await ann.say("#agents", "parley: hi");
    await assert.rejects(bot.ended, /another replica/);
    await using next = await running(createIrc("main", settingsFor(server.port), {}, swift));
    assert.equal((await next.adapter.send(answer("#agents", "mine"), soon())).state, "sent");
  });

  test("a connection that breaks before the echo leaves the outcome unknown", async () => {
    await using server = await startScriptedIrc(async (client) => {
      await letIn(client, modern);
      await client.hear(/PRIVMSG/);
      client.cut();
    });
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    const outcome = await bot.adapter.send(answer("#agents", "hello"), soon());
    assert.deepEqual(outcome, { state: "unknown", reason: "1 of 1 lines written, then: the connection broke" });
  });

  test("an answer whose echo does not come in time is unknown", async () => {
    await using server = await startScriptedIrc((client) => letIn(client, modern));
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, swift));
    assert.equal((await bot.adapter.send(answer("#agents", "hello"), AbortSignal.timeout(50))).state, "unknown");
    assert.equal((await bot.adapter.send(answer("#agents", "hello"), AbortSignal.abort())).state, "retry");
  });

  test("lines leave no faster than the server allows", async () => {
    await using server = await startInspIrcd();
    await using bot = await running(
      createIrc("main", settingsFor(server.port), {}, { pace: { burst: 2, everyMs: 100 } }),
    );
    const started = performance.now();
    await bot.adapter.send(answer("#agents", "1\n2\n3\n4\n5"), soon());
    assert.ok(performance.now() - started >= 290);
    const waits = await bot.adapter.send(answer("#agents", "a\n".repeat(13)), soon());
    assert.equal(waits.state, "sent");
  });

  test("an answer that could not leave in time is put off before its first line, not cut off after it", async () => {
    await using server = await startInspIrcd();
    const pace = { burst: 5, everyMs: 1_000 };
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, { pace }));
    assert.equal((await bot.adapter.send(answer("#agents", "1\n2\n3\n4\n5"), soon())).state, "sent");
    const second = await bot.adapter.send(answer("#agents", "a\n".repeat(13)), soon());
    assert.ok(second.state === "retry" && second.afterMs > 3_500 && second.afterMs <= 4_500);
  });

  test("a server that is frozen is noticed and left", async () => {
    await using server = await startInspIrcd();
    const times = { pingAfterMs: 500, deadAfterMs: 2_500 };
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, { ...swift, times }));
    server.pause();
    await bot.ended;
    assert.match(bot.host.logText, /no life sign/);
    server.resume();
  });

  test("a quiet server is asked for a life sign and kept", async () => {
    let pings = 0;
    await using server = await startScriptedIrc(async (client) => {
      await letIn(client, modern);
      for (; pings < 3; pings += 1) {
        await client.hear(/^PING :parley-alive/);
        client.say(":irc.test PONG irc.test :parley-alive");
      }
      client.say(":ann!a@h PRIVMSG parley :still there?");
    });
    const times = { pingAfterMs: 50, deadAfterMs: 2_000 };
    await using bot = await running(createIrc("main", settingsFor(server.port), {}, { ...swift, times }));
    await bot.host.untilAccepted(1);
    assert.equal(pings, 3);
  });

  test("with a password the login is done before the channels are joined", async () => {
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

  test("a wrong password is a clear error that does not show it", async () => {
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

  test("logged in, a predecessor that holds the nick is ended by NickServ, without a password in the clear", async () => {
    await using server = await startScriptedIrc(async (client) => {
      await client.hear(/^CAP LS/);
      client.say(":irc.test 433 * parley :Nickname is already in use", ":irc.test CAP * LS :sasl");
      await client.hear(/^CAP REQ/);
      client.say(":irc.test CAP * ACK :sasl");
      await client.hear(/^AUTHENTICATE/);
      client.say("AUTHENTICATE +");
      await client.hear(/^AUTHENTICATE/);
      // Asked for the nick before the login was through, a server says again that it is taken.
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
    assert.match(bot.host.logText, /nick parley is taken/);
  });

  test("a certificate nobody vouches for is refused, one that is trusted is taken", async () => {
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

  test("settings that cannot work are refused at once", () => {
    assert.throws(
      () => createIrc("main", settingsFor(1, { groups: ["agents"] }), {}),
      /"agents" in groups is not the name/,
    );
    assert.throws(() => createIrc("main", settingsFor(1, { groups: ["#a,#b"] }), {}), /not the name/);
    assert.throws(
      () => createIrc("main", settingsFor(1, { host: "irc.example" }), { password: "x" }),
      /not sent without TLS/,
    );
  });

  test("a lost lease ends the connection at once, also while it is being made", async () => {
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
