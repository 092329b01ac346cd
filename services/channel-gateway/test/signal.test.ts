// The Signal adapter against the fake, as a daemon at an address and as a program that the adapter starts, and against a real signal-cli
// for what that shows without an account.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { signalChannel, WireError, type SignalAccount } from "@parley/contracts";
import { freePort, LocalError } from "@parley/local";
import { Cleanup, prepareSignalCli, startSignalPeer, temporaryFolder, type SignalPeer } from "@parley/testing";
import { AccountRejectedError, type ChannelAdapter, type SendOutcome } from "../src/channels/channel.ts";
import { createSignal, type SignalTuning } from "../src/channels/signal/index.ts";
import { reconnectPauseMs } from "../src/channels/signal/receive.ts";
import { TestHost } from "./support/channel-host.ts";
import { firstPart, sendAnswer } from "./support/parts.ts";

const soon = () => AbortSignal.timeout(60_000);
const limits = signalChannel.capabilities.text;

function settingsFor(peer: Pick<SignalPeer, "number" | "url">, more: Partial<SignalAccount> = {}): SignalAccount {
  return signalChannel.settings.parse({ number: peer.number, daemon_url: peer.url, ...more });
}

const addressOf = (conversation: string) => ({ channel: "signal", account: "main", conversation });

interface Running extends AsyncDisposable {
  adapter: ChannelAdapter;
  host: TestHost;
  /** Ends the lease and waits until the connection is closed. */
  lose(): Promise<void>;
  ended: Promise<void>;
}

/** Connects an adapter and waits until the daemon sends it events. */
async function running(peer: SignalPeer, host = new TestHost(), tuning: SignalTuning = {}): Promise<Running> {
  const adapter = createSignal("main", settingsFor(peer), tuning);
  const connection = connecting(adapter, host);
  await Promise.race([peer.until("a reader", () => (peer.readers > 0 ? true : null)), connection.ended]);
  return { adapter, host, ...connection };
}

function connecting(adapter: ChannelAdapter, host: TestHost) {
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease) ?? assert.fail("no connection");
  ended.catch(() => undefined);
  const end = async (): Promise<void> => {
    lose();
    await ended.catch(() => undefined);
  };
  return { ended, lose: end, [Symbol.asyncDispose]: end };
}

describe("messages to Signal", () => {
  const peerWith = async (
    send: (adapter: ChannelAdapter, peer: SignalPeer) => Promise<unknown>,
  ): Promise<SignalPeer> => {
    const peer = await startSignalPeer();
    await send(createSignal("main", settingsFor(peer)), peer);
    return peer;
  };

  // design: 000.28i
  test("have styles for bold, italic, strikethrough, code and spoilers", async () => {
    const markdown = "a **b** *c 😀* ~~d~~ `e` ||f **g**|| h\n\n```js\nlet i\n```";
    await using peer = await peerWith((adapter, { ann }) =>
      adapter.send(firstPart(limits, addressOf(ann.uuid), markdown), soon()),
    );
    assert.equal(peer.sent[0]?.text, "a b c 😀 d e f g h\n\nlet i");
    assert.deepEqual(peer.sent[0]?.styles, [
      { style: "BOLD", text: "b" },
      { style: "ITALIC", text: "c 😀" },
      { style: "STRIKETHROUGH", text: "d" },
      { style: "MONOSPACE", text: "e" },
      { style: "SPOILER", text: "f g" },
      { style: "BOLD", text: "g" },
      { style: "MONOSPACE", text: "let i" },
    ]);
  });

  // design: 000.28j
  test("show a link as its label and its address", async () => {
    await using peer = await peerWith((adapter, { ann }) =>
      adapter.send(
        firstPart(limits, addressOf(ann.uuid), "see **[the docs](https://d.example/a)** and <https://e.example>"),
        soon(),
      ),
    );
    assert.equal(peer.sent[0]?.text, "see the docs (https://d.example/a) and https://e.example");
    assert.deepEqual(peer.sent[0]?.styles, [{ style: "BOLD", text: "the docs" }]);
  });

  // design: 000.28h
  test("have at most 4,000 characters and keep styles across the cuts", async () => {
    const words = Array.from({ length: 2_000 }, (_, index) => `word${index}`).join(" ");
    await using peer = await peerWith((adapter, { ann }) =>
      sendAnswer(adapter, addressOf(ann.uuid), `before **${words}** [after](https://a.example)`, soon()),
    );
    assert.ok(peer.sent.length >= 4);
    assert.ok(peer.sent.every(({ text }) => text.length <= 4_000));
    assert.ok(peer.sent.slice(0, -1).every(({ text }) => text.length > 3_000));
    assert.equal(peer.sent.map(({ text }) => text).join(" "), `before ${words} after (https://a.example)`);
    const styled = peer.sent.map(({ styles }) => styles.map(({ style, text }) => `${style}:${text}`));
    assert.deepEqual(
      styled
        .flat()
        .map((each) => each.replace("BOLD:", ""))
        .join(" "),
      words,
    );
  });

  test("reach groups and numbers, and quote the message that they answer", async () => {
    await using peer = await peerWith(async (adapter, { team, ben, ann }) => {
      const to = { ...addressOf(`group:${team.id}`), replyToId: `123/${ann.uuid}` };
      await adapter.send(firstPart(limits, to, "to all"), soon());
      await adapter.send(firstPart(limits, addressOf(ben.number), "to Ben"), soon());
    });
    assert.deepEqual(
      peer.sent.map(({ to, text, quote }) => ({ to, text, quote })),
      [
        { to: `group:${peer.team.id}`, text: "to all", quote: { timestamp: 123, author: peer.ann.uuid } },
        { to: peer.ben.uuid, text: "to Ben", quote: null },
      ],
    );
  });

  test("may be files, with their names and types", async () => {
    const file = { name: "Bericht ü;1.pdf", mediaType: "application/pdf", content: Buffer.from("%PDF") };
    await using peer = await peerWith((adapter, { ann }) =>
      adapter.send({ address: addressOf(ann.uuid), text: null, file, idempotencyKey: "k", attempts: 0 }, soon()),
    );
    assert.deepEqual(peer.sent[0]?.files, [file]);
  });

  test("are edited, deleted and reacted to", async () => {
    await using peer = await startSignalPeer();
    const adapter = createSignal("main", settingsFor(peer));
    const address = addressOf(peer.ann.uuid);
    const part = firstPart(limits, address, "first");
    const outcome = await adapter.send(part, soon());
    assert.ok(outcome.state === "sent" && outcome.providerMessageId !== null);
    const { text } = firstPart(limits, address, "**second**");
    assert.ok(text !== null);
    assert.equal((await adapter.edit?.(address, outcome.providerMessageId, text, soon()))?.state, "sent");
    assert.deepEqual(peer.sent[0]?.styles, [{ style: "BOLD", text: "second" }]);
    assert.equal((await adapter.remove?.(address, outcome.providerMessageId, soon()))?.state, "sent");
    assert.equal(peer.sent[0]?.deleted, true);
    await adapter.react?.(address, `5/${peer.ann.uuid}`, "👀", soon());
    await adapter.react?.(address, `5/${peer.ann.uuid}`, null, soon());
    const reaction = { to: peer.ann.uuid, emoji: "👀", author: peer.ann.uuid, timestamp: 5 };
    assert.deepEqual(peer.reactions, [
      { ...reaction, remove: false },
      { ...reaction, remove: true },
    ]);
    assert.equal((await adapter.remove?.(address, `5/${peer.ann.uuid}`, soon()))?.state, "dropped");
    assert.equal((await adapter.react?.(address, "5", "👀", soon()))?.state, "dropped");
  });

  // design: 000.28k
  test("are announced by the typing indicator, which is repeated and withdrawn", async () => {
    await using peer = await startSignalPeer();
    const adapter = createSignal("main", settingsFor(peer));
    await adapter.typing?.(addressOf(peer.ann.uuid));
    await adapter.stopTyping?.(addressOf(`group:${peer.team.id}`));
    assert.deepEqual(peer.typing, [
      { to: peer.ann.uuid, stop: false },
      { to: `group:${peer.team.id}`, stop: true },
    ]);
    // Clients hide it after 15 s.
    assert.equal(adapter.capabilities.typingEveryMs, 8_000);
    await peer.close();
    await adapter.typing?.(addressOf(peer.ann.uuid));
  });
});

describe("errors of the Signal daemon", () => {
  // design: 000.28l
  test("are read from the body of an answer with status 200 and decide what becomes of the message", async () => {
    await using peer = await startSignalPeer();
    const adapter = createSignal("main", settingsFor(peer));
    const to = (conversation: string, attempts = 0): Promise<SendOutcome> =>
      adapter.send({ ...firstPart(limits, addressOf(conversation), "hello"), attempts }, soon());
    const after = async (fault: Parameters<SignalPeer["fail"]>[1], attempts = 0) => {
      peer.fail("send", fault);
      return to(peer.ann.uuid, attempts);
    };
    const limited = await after({ kind: "rate_limit", retryAfterSeconds: 77 });
    assert.deepEqual(
      [limited.state, "afterMs" in limited && limited.afterMs, "scope" in limited && limited.scope],
      ["retry", 77_000, "account"],
    );
    assert.ok(!JSON.stringify(limited).includes("challenge-token"));
    const unspecific = await after({ kind: "rate_limit" }, 2);
    assert.deepEqual([unspecific.state, "afterMs" in unspecific && unspecific.afterMs], ["retry", 32_000]);
    assert.equal(
      (await after({ kind: "io_error", message: "Failed to send message: chat.signal.org (UnknownHostException)" }))
        .state,
      "retry",
    );
    assert.equal(
      (await after({ kind: "io_error", message: "Failed to send message: timeout (SocketTimeoutException)" })).state,
      "unknown",
    );
    assert.equal((await after({ kind: "network_failure" })).state, "unknown");
    assert.equal((await after({ kind: "internal_error" })).state, "unknown");
    assert.match(JSON.stringify(await after({ kind: "untrusted" })), /"dropped".*signal-cli trust/);
    assert.equal((await to("group:AAAAAAAAAAAAAAAAAAAAAA==")).state, "dropped");
    assert.equal((await to("nobody")).state, "dropped");
    peer.unregister(peer.ben);
    assert.match(JSON.stringify(await to(peer.ben.uuid)), /"dropped".*not registered with Signal/);
    assert.equal(peer.sent.length, 0);
  });

  test("of a missing permission at send time drop the message with the reason", async () => {
    await using peer = await startSignalPeer();
    const adapter = createSignal("main", settingsFor(peer));
    const address = addressOf(`group:${peer.team.id}`);
    const refused = {
      announcements: `User is not allowed to send message to group: Team (${peer.team.id})`,
      left: `User is not a member in group: Team (${peer.team.id})`,
    };
    for (const [refusal, reason] of Object.entries(refused)) {
      peer.refuse(peer.team, refusal === "left" ? "left" : "announcements");
      assert.deepEqual(await adapter.send(firstPart(limits, address, "hello"), soon()), { state: "dropped", reason });
      assert.deepEqual(await adapter.react?.(address, `5/${peer.ann.uuid}`, "👀", soon()), {
        state: "dropped",
        reason,
      });
    }
    assert.equal((await adapter.send(firstPart(limits, addressOf(peer.ann.uuid), "hello"), soon())).state, "sent");
  });

  test("of the connection say whether the message may have been sent", async () => {
    await using peer = await startSignalPeer();
    const adapter = createSignal("main", settingsFor(peer));
    const part = firstPart(limits, addressOf(peer.ann.uuid), "hello");
    const after = async (kind: "reset_before_commit" | "reset_after_commit" | "hang_after_commit", signal = soon()) => {
      peer.fail("send", { kind });
      return (await adapter.send(part, signal)).state;
    };
    assert.equal(await after("reset_before_commit"), "unknown");
    assert.equal(await after("reset_after_commit"), "unknown");
    const hanging = new AbortController();
    void peer.untilSent(2).then(() => hanging.abort());
    assert.equal(await after("hang_after_commit", hanging.signal), "unknown");
    peer.fail("send", { kind: "status", status: 503 });
    assert.equal((await adapter.send(part, soon())).state, "retry");
    assert.equal((await adapter.send(part, AbortSignal.abort())).state, "retry");
    const other = createSignal("main", settingsFor(peer, { number: "+15550109999" }));
    const unknownAccount = await other.send(part, soon());
    assert.match(JSON.stringify(unknownAccount), /"retry".*Specified account does not exist/);
    const nowhere = settingsFor(peer, { daemon_url: `http://127.0.0.1:${await freePort()}` });
    assert.equal((await createSignal("main", nowhere).send(part, soon())).state, "retry");
    assert.equal(peer.sent.length, 2);
  });

  test("of a wrong number or address are readable", async () => {
    await using peer = await startSignalPeer();
    const wrong = settingsFor(peer, { number: "+15550109999" });
    await assert.rejects(createSignal("main", wrong).check?.(soon()) ?? assert.fail(), {
      name: "AccountRejectedError",
      message: "the daemon has no account +15550109999: register or link it with signal-cli",
    });
    await assert.rejects(connecting(createSignal("main", wrong), new TestHost()).ended, AccountRejectedError);
    assert.deepEqual(await createSignal("main", settingsFor(peer)).check?.(soon()), { as: peer.number });
    await using single = await startSignalPeer({ singleAccount: true });
    assert.deepEqual(await createSignal("main", settingsFor(single)).check?.(soon()), { as: peer.number });
    const nowhere = settingsFor(peer, { daemon_url: `http://127.0.0.1:${await freePort()}` });
    await assert.rejects(
      createSignal("main", nowhere).check?.(soon()) ?? assert.fail(),
      /could not be reached: ECONNREFUSED/,
    );
    const started = { ...nowhere, start_daemon: true, data_dir: "/x" };
    assert.equal(
      await createSignal("main", started).check?.(soon()),
      null,
      "the daemon does not run before it is added",
    );
  });

  test("in the settings are refused", () => {
    const account = { number: "+15550100000" };
    const refusal = (more: object) => () => createSignal("main", signalChannel.settings.parse({ ...account, ...more }));
    assert.throws(
      refusal({ owners: ["+15550100001"] }),
      /"\+15550100001" in owners or allow_from is not an account id/,
    );
    assert.throws(refusal({ allow_from: ["Ann"] }), /is not an account id/);
    assert.throws(refusal({ groups: ["Team"] }), /"Team" in groups is not a group id/);
    assert.throws(refusal({ number: "0155" }), /must be a phone number/);
    assert.throws(refusal({ start_daemon: true }), /start_daemon = true requires data_dir/);
    const open = { start_daemon: true, data_dir: "/x", daemon_url: "http://0.0.0.0:8080" };
    assert.throws(refusal(open), /on the loopback interface/);
  });
});

describe("messages from Signal", () => {
  // design: 000.28a
  test("arrive over the event stream, in order, one stored before the next is read", async () => {
    await using peer = await startSignalPeer();
    await using bot = await running(peer);
    bot.host.refuseNext();
    bot.host.refuseNext();
    peer.writeToStreams("event:receive\ndata:{not json\n\n:\n");
    peer.push({ syncMessage: { sentMessage: { message: "mine" } } });
    peer.say("one");
    peer.say("two", { from: peer.ben, group: peer.team });
    await bot.host.untilAccepted(2);
    assert.deepEqual(bot.host.texts, ["one", "two"]);
    assert.equal(bot.host.attempts, 4);
    assert.match(bot.host.logText, /invalid envelope/);
    assert.deepEqual(
      bot.host.accepted.map(({ contact, conversation }) => [contact, conversation]),
      [
        [{ id: peer.ann.uuid, name: "Ann" }, peer.ann.uuid],
        [{ id: peer.ben.uuid, name: "Ben" }, `group:${peer.team.id}`],
      ],
    );
    assert.ok(bot.host.reported.some((each) => each.state === "connected" && each.as === peer.number));
  });

  test("have their files, as long as they are at most 8 MB", async () => {
    await using peer = await startSignalPeer();
    await using bot = await running(peer);
    const content = Buffer.from("a picture");
    const big = Buffer.alloc(8 * 1024 * 1024 + 1);
    const attachments = [content, big].map((each) => ({ id: peer.addAttachment(each), contentType: "image/png" }));
    peer.say("", { fields: { attachments } });
    const [draft] = await bot.host.untilAccepted(1);
    const [first = assert.fail(), second = assert.fail()] = draft?.files ?? [];
    const fetchFile = async (handle: string | undefined, maxBytes: number, signal: AbortSignal) =>
      (await bot.adapter.fetchFile?.(handle ?? assert.fail("no handle"), maxBytes, signal)) ?? assert.fail("no files");
    assert.deepEqual(Buffer.from((await fetchFile(first.handle, 1e9, soon())) as Uint8Array), content);
    assert.equal(await fetchFile(first.handle, 3, soon()), "too_large");
    assert.equal(await fetchFile(second.handle, 1e9, soon()), "too_large");
    await assert.rejects(
      fetchFile(JSON.stringify({ id: "x", recipient: "y" }), 9, soon()),
      /Could not find attachment/,
    );
  });

  test("may change: edits, deletions and reactions reach the host", async () => {
    await using peer = await startSignalPeer();
    await using bot = await running(peer);
    const timestamp = peer.say("old");
    await bot.host.untilAccepted(1);
    peer.push({
      editMessage: { targetSentTimestamp: timestamp, dataMessage: { timestamp: timestamp + 9, message: "new" } },
    });
    peer.say("", { fields: { message: null, remoteDelete: { timestamp } } });
    const changes = await bot.host.until("two changes", () =>
      bot.host.changed.length === 2 ? bot.host.changed : null,
    );
    assert.deepEqual(
      changes.map(({ messageId, change }) => [messageId, change]),
      [
        [bot.host.accepted[0]?.externalId, { kind: "edited", text: "new" }],
        [bot.host.accepted[0]?.externalId, { kind: "deleted" }],
      ],
    );
  });

  test("stop when another replica holds the lease", async () => {
    await using peer = await startSignalPeer();
    const bot = await running(peer);
    bot.host.refuseNext(new WireError("FENCED", "another replica holds the lease"));
    peer.say("hi");
    await assert.rejects(bot.ended, /another replica/);
    await peer.until("the end of the stream", () => (peer.readers === 0 ? true : null));
  });

  test("are not fetched while nobody listens, and arrive after a takeover", async () => {
    await using peer = await startSignalPeer();
    const first = await running(peer);
    peer.say("one");
    await first.host.untilAccepted(1);
    await first.lose();
    await peer.until("no reader", () => (peer.readers === 0 ? true : null));
    peer.say("two");
    assert.equal(peer.waiting, 1);
    await using second = await running(peer, first.host);
    await second.host.untilAccepted(2);
    assert.deepEqual(second.host.texts, ["one", "two"]);
  });
});

describe("a broken event stream of Signal", () => {
  // design: 000.28b
  test("is opened again after 1, 2, 4 and then 10 s, with a jitter of 20 %", () => {
    const pauses = (random: number) => [1, 2, 3, 4, 5, 99].map((failures) => reconnectPauseMs(failures, random));
    assert.deepEqual(pauses(0.5), [1_000, 2_000, 4_000, 10_000, 10_000, 10_000]);
    assert.deepEqual(pauses(0), [800, 1_600, 3_200, 8_000, 8_000, 8_000]);
    assert.deepEqual(pauses(1).map(Math.round), [1_200, 2_400, 4_800, 12_000, 12_000, 12_000]);
  });

  test("loses no message that the daemon still has, also when the daemon crashes under traffic", async () => {
    await using peer = await startSignalPeer();
    await using bot = await running(peer);
    peer.say("one");
    await bot.host.untilAccepted(1);
    await peer.crash();
    for (const text of ["two", "three"]) peer.say(text);
    await bot.host.until("a failure", () => bot.host.reported.find(({ state }) => state === "failing") ?? null);
    await peer.restart();
    await bot.host.untilAccepted(3);
    assert.deepEqual(bot.host.texts, ["one", "two", "three"]);
    const pauses = bot.host.logged.flatMap(({ fields }) => ("waitMs" in fields ? [Number(fields.waitMs)] : []));
    assert.ok((pauses[0] ?? 0) >= 800 && (pauses[0] ?? 0) <= 1_200, String(pauses[0]));
  });

  test("is noticed by its silence", async () => {
    await using peer = await startSignalPeer({ keepAliveMs: 60_000 });
    await using bot = await running(peer, new TestHost(), { silenceMs: 150 });
    await bot.host.untilLogged(/nothing received for 0.15 s/);
    assert.ok(bot.host.reported.some(({ state }) => state === "failing"));
  });

  test("continues behind the last stored message when the daemon numbers its events", async () => {
    await using peer = await startSignalPeer({ numbersEvents: true });
    const first = await running(peer);
    peer.say("one");
    await first.host.untilAccepted(1);
    // The daemon counts them as delivered, and the owner of the connection is gone.
    first.host.refuseNext();
    await first.lose();
    const reader = await fetch(`${peer.url}/api/v1/events`);
    for (const text of ["two", "three"]) peer.say(text);
    await peer.until("the delivery", () => (peer.waiting === 0 ? true : null));
    await reader.body?.cancel();
    await using second = await running(peer, first.host);
    await second.host.untilAccepted(3);
    assert.deepEqual(second.host.texts, ["one", "two", "three"]);
  });
});

describe("a Signal daemon that the gateway starts", () => {
  /** A signal-cli of the fake, its data folder, and a port for it. */
  async function program(cleanup: Cleanup, registered: boolean) {
    const folder = await temporaryFolder(cleanup);
    const entry = new URL("../../../packages/testing/src/peers/signal/program.ts", import.meta.url).pathname;
    const command = join(folder, "signal-cli");
    const [port, controlPort] = [await freePort(), await freePort()];
    const daemon = `SIGNAL_CONTROL_PORT=${controlPort} exec '${process.execPath}' --conditions=@parley/source '${entry}'`;
    await writeFile(command, `#!/bin/sh\n${daemon} "$@"\n`);
    await chmod(command, 0o755);
    if (registered) await writeFile(join(folder, "registered"), "");
    const given = {
      number: "+15550100000",
      daemon_url: `http://127.0.0.1:${port}`,
      start_daemon: true,
      data_dir: folder,
      command,
    };
    /** Ann writes; returns the daemon's process id. */
    const say = async (text: string): Promise<number> =>
      Number(await (await fetch(`http://127.0.0.1:${controlPort}/say`, { method: "POST", body: text })).text());
    /** Kills the daemon; its connections lose what was not read. */
    const crash = () => fetch(`http://127.0.0.1:${controlPort}/crash`, { method: "POST" }).catch(() => undefined);
    return { given, folder, say, crash };
  }

  const isAlive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  // design: 000.28d
  test("ends with it, and what a killed gateway has not stored is read from the daemon's output", async (context) => {
    const cleanup = new Cleanup();
    context.after(() => cleanup[Symbol.asyncDispose]());
    const { given, folder, say } = await program(cleanup, true);
    const owner = fork(new URL("support/signal-owner.ts", import.meta.url), [JSON.stringify(given)], {
      execArgv: ["--conditions=@parley/source"],
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
    cleanup.add(async () => void owner.kill("SIGKILL"));
    const lines = createInterface({ input: owner.stdout ?? assert.fail() })[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, "connected");
    const daemon = await say("one");
    assert.equal((await lines.next()).value, "offered");
    await say("two");
    owner.kill("SIGKILL");
    await once(owner, "exit");
    while (isAlive(daemon)) await new Promise((resolve) => setTimeout(resolve, 20));

    const host = new TestHost();
    const adapter = createSignal("main", signalChannel.settings.parse(given));
    const connection = connecting(adapter, host);
    await host.untilAccepted(2);
    const next = await say("three");
    await host.untilAccepted(3);
    assert.deepEqual(host.texts, ["one", "two", "three"]);
    await connection.lose();
    assert.equal(isAlive(next), false);

    // What is stored is not offered again, and the files of earlier daemons are removed.
    const before = host.attempts;
    const again = connecting(adapter, host);
    await host.until("the next daemon", () =>
      host.logged.filter(({ message }) => message === "connected").length === 2 ? true : null,
    );
    await say("four");
    await host.untilAccepted(4);
    assert.equal(host.attempts - before, 1);
    await again.lose();
    const received = join(folder, "parley-received", given.number);
    const files = await readdir(received);
    assert.equal(files.length, 1);
    assert.match(await readFile(join(received, files[0] ?? ""), "utf8"), /^\{"envelope":.*"four".*\}\n$/);
  });

  test("is started again when it ends", async (context) => {
    const cleanup = new Cleanup();
    context.after(() => cleanup[Symbol.asyncDispose]());
    const { given, say } = await program(cleanup, true);
    const host = new TestHost();
    await using _ = connecting(createSignal("main", signalChannel.settings.parse(given)), host);
    await host.untilLogged(/"connected"/);
    process.kill(await say("one"), "SIGKILL");
    await host.until("the next daemon", () =>
      host.logged.filter(({ message }) => message === "connected").length === 2 ? true : null,
    );
    await say("two");
    await host.untilAccepted(2);
    assert.deepEqual(host.texts, ["one", "two"]);
  });

  test("loses no message that it had confirmed when it is killed again and again under traffic", async (context) => {
    const cleanup = new Cleanup();
    context.after(() => cleanup[Symbol.asyncDispose]());
    const { given, say, crash } = await program(cleanup, true);
    const host = new TestHost();
    await using _ = connecting(createSignal("main", signalChannel.settings.parse(given)), host);
    const connections = () => host.logged.filter(({ message }) => message === "connected").length;
    const texts: string[] = [];
    for (let round = 1; round <= 4; round += 1) {
      await host.until(`daemon ${round}`, () => (connections() === round ? true : null));
      // The store is busy, so most of what the daemon hands out waits in the connection.
      host.refuseNext();
      for (let count = 0; count < 10; count += 1) {
        texts.push(`${round}.${count}`);
        await say(`${round}.${count}`);
      }
      if (round < 4) await crash();
    }
    await host.untilAccepted(texts.length);
    assert.deepEqual(host.texts, texts);
  });

  test("is not started next to another one, and reports a number that is not registered", async (context) => {
    const cleanup = new Cleanup();
    context.after(() => cleanup[Symbol.asyncDispose]());
    const { given } = await program(cleanup, false);
    const adapter = createSignal("main", signalChannel.settings.parse(given));
    await assert.rejects(connecting(adapter, new TestHost()).ended, {
      name: "AccountRejectedError",
      message: "the number is not registered: User +15550100000 is not registered.",
    });
    await using peer = await startSignalPeer();
    const host = new TestHost();
    const second = createSignal("main", signalChannel.settings.parse({ ...given, daemon_url: peer.url }));
    await using _ = connecting(second, host);
    await host.untilLogged(/another daemon already answers at/);
  });

  test("is a real signal-cli, which reports a number that is not registered", async (context) => {
    const real = await prepareSignalCli().catch((error: unknown) => {
      if (error instanceof LocalError) return context.skip(`signal-cli with Java is not available: ${error.message}`);
      throw error;
    });
    if (real === undefined) return;
    context.after(() => real.remove());
    const address = `http://127.0.0.1:${await freePort()}`;
    const { command, dataDir } = real;
    const given = { number: "+15550100000", daemon_url: address, start_daemon: true, data_dir: dataDir, command };
    const adapter = createSignal("main", signalChannel.settings.parse(given));
    await assert.rejects(connecting(adapter, new TestHost()).ended, {
      name: "AccountRejectedError",
      message: "the number is not registered: User +15550100000 is not registered.",
    });
  });
});
