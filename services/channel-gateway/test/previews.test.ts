// Previews on a real store, with Telegram's fake: an answer is shown while it is written and is one message at the end, also when the
// gateway that shows it is killed.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { createLogger, parseSettings } from "@parley/chassis";
import { store, telegramChannel } from "@parley/contracts";
import { Cleanup, startTelegramPeer, temporaryFolder, type TelegramPeer } from "@parley/testing";
import { Client } from "pg";
import { createTelegram } from "../src/channels/telegram/index.ts";
import { Previews } from "../src/delivery/previews.ts";
import { StreamedText } from "../src/delivery/streamed-text.ts";
import { owned, startProcess } from "./support/gateway-process.ts";
import { TestAgent } from "./support/agent.ts";
import { startGatewayStack, type GatewayStack } from "./support/stack.ts";

const secretName = "PARLEY_CHANNEL_BOT";
const accountOf = (peer: TelegramPeer, account: string, more: readonly string[] = []) =>
  [
    `[channels.telegram.${account}]`,
    `token_env = "${account === "off" ? "PARLEY_CHANNEL_OFF" : secretName}"`,
    `api_root = "${peer.url}"`,
    'owners = ["42"]',
    ...more,
  ].join("\n");
const settingsOf = (peer: TelegramPeer, account: string, more: readonly string[] = []) =>
  ["[session]", 'policy = "per_conversation"', "[queue]", 'mode = "queue"', accountOf(peer, account, more)].join("\n");

/** An answer that the test writes piece by piece. */
class Writing implements AsyncIterable<string> {
  readonly #waiting: string[] = [];
  #wake = Promise.withResolvers<void>();
  #ended = false;

  write(text: string): void {
    this.#waiting.push(text);
    this.#wake.resolve();
  }

  end(): void {
    this.#ended = true;
    this.#wake.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      yield* this.#waiting.splice(0);
      if (this.#ended) return;
      await this.#wake.promise;
      this.#wake = Promise.withResolvers<void>();
    }
  }
}

/** Turns whose message has an entry answer what the test writes. */
const writings = new Map<string, Writing>();

/** The next turn whose message is `said` answers what the test writes. */
function writing(said: string): Writing {
  const made = new Writing();
  writings.set(said, made);
  return made;
}

let stack: GatewayStack;
let sql: Client;
before(async () => {
  stack = await startGatewayStack();
  sql = new Client({ connectionString: stack.stack.postgres.ownerUrl });
  await sql.connect();
  stack.agent.script = (said) => ({
    deltas: writings.get(said) ?? ["You said: ", said],
    unsent: said.startsWith("silent"),
  });
});
after(async () => {
  await sql.end();
  await stack[Symbol.asyncDispose]();
});

/** The first message of a conversation: events of the next turns are heard from their beginning. */
async function greet(peer: TelegramPeer, chat = 42): Promise<void> {
  peer.say("hello", { from: chat });
  // The whole text: on a busy machine the greeting has a preview too.
  await peer.until("the greeting", () => (textsIn(peer, chat)[0] === "You said: hello" ? true : null));
  peer.deleteSent(peer.sent.find(({ chatId }) => chatId === chat)?.messageId ?? 0);
}

const sentTo = (peer: TelegramPeer, chat: number) => peer.sent.filter(({ chatId }) => chatId === chat);
const textsIn = (peer: TelegramPeer, chat: number) => sentTo(peer, chat).map(({ text }) => text);
const editsIn = (peer: TelegramPeer, chat: number) =>
  peer.calls.filter(({ method, parameters }) => method === "editMessageText" && parameters["chat_id"] === chat).length;

describe("previews", { concurrency: true }, () => {
  let peer: TelegramPeer;
  let quiet: TelegramPeer;
  before(async () => {
    peer = await startTelegramPeer();
    quiet = await startTelegramPeer();
    const open = ['dm_policy = "open"', "acknowledge = true"];
    const text = `${settingsOf(peer, "shows", open)}\n${accountOf(quiet, "off", ['dm_policy = "open"', "preview = false"])}`;
    const channelSecrets = new Map([
      [secretName, peer.token],
      ["PARLEY_CHANNEL_OFF", quiet.token],
    ]);
    await stack.gateway({ name: "only", config: { settings: parseSettings(text, "test"), channelSecrets } });
  });
  after(async () => {
    await peer.close();
    await quiet.close();
  });

  /** A person writes, and the agent begins to answer: the test writes the answer. */
  async function asked(said: string, chat: number, at = peer, fields: Record<string, unknown> = {}): Promise<Writing> {
    await greet(at, chat);
    const answer = writing(said);
    at.say(said, { from: chat, fields });
    await stack.agent.began(said);
    return answer;
  }
  const untilText = (chat: number, text: string) =>
    peer.until(text, () => (textsIn(peer, chat).includes(text) ? true : null));
  const untilShown = (chat: number) => peer.until("the preview", () => (sentTo(peer, chat).length > 0 ? true : null));
  const untilDeleted = (chat: number) =>
    peer.until("the deletion", () => (peer.deleted.some(({ chatId }) => chatId === chat) ? true : null));

  test("shows an answer while it is written and ends with exactly its text in one message", async (t) => {
    const answer = await asked("grow", 1);
    const firstTokenMs = performance.now();
    answer.write("The answer is **bo");
    await untilShown(1);
    t.diagnostic(`shown ${Math.round(performance.now() - firstTokenMs)} ms after the first token`);
    assert.deepEqual(textsIn(peer, 1), ["The answer is **bo …"]);
    const times: number[] = [];
    for (const piece of ["ld** and", " longer", " and longer", " still"]) {
      const before = editsIn(peer, 1);
      answer.write(piece);
      await peer.until("an edit", () => (editsIn(peer, 1) > before ? true : null));
      times.push(performance.now());
    }
    answer.end();
    await untilText(1, "The answer is bold and longer and longer still");
    assert.equal(sentTo(peer, 1).length, 1);
    assert.equal(sentTo(peer, 1)[0]?.entities[0]?.type, "bold");
    const shortest = Math.min(...times.slice(1).map((at, index) => at - (times[index] ?? 0)));
    assert.ok(shortest >= 900, `edited after ${shortest} ms`);
  });

  test("sends a short answer whole, and every answer where previews are switched off", async () => {
    const answer = await asked("quiet", 2, quiet);
    // A first preview on the other account takes longer than one here would.
    const other = await asked("loud", 2);
    answer.write("It takes ");
    other.write("Shown");
    await untilShown(2);
    answer.write("a while");
    answer.end();
    other.end();
    quiet.say("short", { from: 2 });
    await quiet.untilSent(2);
    assert.deepEqual(textsIn(quiet, 2), ["It takes a while", "You said: short"]);
    assert.equal(editsIn(quiet, 2), 0);
  });

  test("reacts to a message while its turn runs, where the account acknowledges", async () => {
    const messageId = 7_000;
    const answer = await asked("react", 7, peer, { message_id: messageId });
    const emojis = () =>
      peer.reactions.flatMap(({ chatId, messageId: of, emoji }) => (chatId === 7 && of === messageId ? [emoji] : []));
    await peer.until("the reaction", () => (emojis().length === 1 ? true : null));
    answer.write("Done");
    answer.end();
    await untilText(7, "Done");
    await peer.until("its removal", () => (emojis().length === 2 ? true : null));
    assert.deepEqual(emojis(), ["👀", null]);
    assert.deepEqual(quiet.reactions, []);
  });

  test("shows the first message of a long answer and sends the rest after it", async () => {
    const answer = await asked("long", 3);
    const words = Array.from({ length: 1_500 }, (_, word) => `word${word}`).join(" ");
    answer.write(words);
    await untilShown(3);
    answer.end();
    await peer.until("the end", () => (textsIn(peer, 3).at(-1)?.endsWith("word1499") === true ? true : null));
    assert.equal(textsIn(peer, 3).join(" "), words);
  });

  test("deletes the preview of a turn that sends nothing", async () => {
    const answer = await asked("silent", 4);
    answer.write("Nothing to see");
    await untilShown(4);
    answer.end();
    await untilDeleted(4);
    assert.deepEqual(textsIn(peer, 4), []);
  });

  test("sends the answer after a text that came in between, and deletes the preview before it", async () => {
    const answer = await asked("between", 5);
    answer.write("I begin");
    await untilShown(5);
    const gateway = await stack.stack.bus("channel-gateway");
    const address = { channel: "telegram", account: "shows", conversation: "5" };
    const outgoing = { address, text: "in between", expiresInMs: 60_000 };
    await gateway.request(store.outboxPut, { opId: randomUUID(), outgoing });
    await untilText(5, "in between");
    answer.write(" and end");
    answer.end();
    await untilDeleted(5);
    assert.deepEqual(textsIn(peer, 5), ["in between", "I begin and end"]);
  });

  test("shows an answer when the first request to open its preview got no response in time", async () => {
    const answer = await asked("slow", 9);
    // An opening locks the turn against its end, so it waits for this transaction.
    await sql.query("BEGIN");
    await sql.query(
      `SELECT FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id
       WHERE t.state = 'running' AND s.key LIKE '%:9' FOR UPDATE OF t`,
    );
    answer.write("I begin");
    // Longer than the gateway waits for a preview before it is due, and for the response to the request.
    await sql.query("SELECT pg_sleep(4.5)");
    await sql.query("COMMIT");
    await untilShown(9);
    answer.end();
    await untilText(9, "I begin");
    assert.equal(sentTo(peer, 9).length, 1);
  });

  test("sends the answer as a message of its own when somebody deleted the preview", async () => {
    const answer = await asked("gone", 6);
    answer.write("I begin");
    await untilShown(6);
    peer.deleteSent(sentTo(peer, 6)[0]?.messageId ?? 0);
    answer.write(" and end");
    answer.end();
    await untilText(6, "I begin and end");
    assert.equal(sentTo(peer, 6).length, 1);
  });
});

test("leaves no preview when the turn ends before the response to its opening", async () => {
  const bus = await stack.stack.bus("channel-gateway");
  const address = { channel: "telegram", account: "alone", conversation: "1" };
  const answer = writing("unheard");
  const { sessionId } = await bus.request(store.inboxPut, {
    message: {
      ...address,
      externalId: randomUUID(),
      contact: { id: "42" },
      role: "owner",
      origin: "user",
      parts: [{ type: "text", text: "unheard" }],
      replyTo: address,
    },
    sessionKey: "unheard",
  });
  await stack.agent.began("unheard");
  const turn = await sql.query<{ id: string }>("SELECT id FROM parley.turns WHERE session_id = $1", [sessionId]);
  const turnId = turn.rows[0]?.id ?? "";
  const settings = telegramChannel.settings.parse({ token_env: secretName });
  const previews = new Previews({
    bus,
    log: createLogger({ service: "test", replica: "test", level: "silent" }),
    owner: { replica: "alone", incarnation: "alone/1" },
    adapter: createTelegram("alone", settings, { token_env: "1:A" }),
    lease: () => undefined,
    wake: () => undefined,
  });
  const preview = previews.follow(address);
  const locking = new Client({ connectionString: stack.stack.postgres.ownerUrl });
  await locking.connect();
  // An opening waits for this transaction for longer than the gateway waits for its response.
  await locking.query("BEGIN");
  await locking.query("SELECT FROM parley.turns WHERE id = $1 FOR UPDATE", [turnId]);
  preview.event({ type: "text.delta", turnId, step: 1, attempt: 1, text: "I begin", offset: 0 });
  await pollUntil(async () => {
    const waiting = await locking.query(
      "SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))",
    );
    return waiting.rowCount !== 0;
  }, "the opening to wait");
  await preview.stop();
  await locking.query("COMMIT");
  await locking.end();
  const opened = async () =>
    (await sql.query("SELECT FROM parley.previews WHERE turn_id = $1", [turnId])).rowCount === 1;
  await pollUntil(opened, "the preview");
  await preview.end();
  assert.equal(await opened(), false);
  answer.end();
});

test("follows the latest attempt of a text and shows nothing of one with a gap", () => {
  const streamed = new StreamedText();
  const add = (step: number, attempt: number, text: string, offset?: number) => {
    streamed.add({
      type: "text.delta",
      turnId: "t",
      step,
      attempt,
      text,
      ...(offset === undefined ? {} : { offset }),
    });
    return streamed.text;
  };
  assert.equal(add(1, 1, "one", 0), "one");
  assert.equal(add(1, 1, "e and", 2), "one and", "a repeated delta");
  assert.equal(add(1, 1, "far", 20), null, "a lost delta");
  assert.equal(add(1, 1, "ther", 23), null);
  assert.equal(add(1, 2, "again", 0), "again", "a new leader's attempt");
  assert.equal(add(1, 1, "late", 7), "again");
  assert.equal(add(2, 1, "next"), "next", "without offsets");
});

describe("the preview of a gateway that is killed", { concurrency: 3 }, () => {
  for (const { account, point, when, shows } of [
    { account: "a", point: "preview.after_open", when: "before it sends the preview", shows: 0 },
    { account: "b", point: "preview.after_settle", when: "after it has stored the preview", shows: 1 },
    { account: "d", point: "outbox.after_claim", when: "after it has claimed the answer", shows: 1 },
    { account: "e", point: "outbox.after_send", when: "after it has replaced the preview", shows: 1 },
  ]) {
    test(`ends with one message when the gateway is killed ${when}`, async (t) => {
      const cleanup = new Cleanup();
      t.after(() => cleanup[Symbol.asyncDispose]());
      const { peer, first, startSecond } = await killable(cleanup, account);
      const died = once(first.child, "exit");
      const answer = writing(`die ${account}`);
      if (point.startsWith("preview")) await first.failAt(point, "kill");
      peer.say(`die ${account}`);
      await stack.agent.began(`die ${account}`);
      answer.write("The answer begins");
      if (shows > 0) await peer.untilSent(1);
      if (point.startsWith("outbox")) {
        // A claim that returns no text reaches the point too: from here on the answer replaces the preview in any case.
        await pollUntil(() => isStored(account), "the stored preview");
        await first.failAt(point, "kill");
        answer.end();
      }
      await died;
      await startSecond();
      answer.write(" and ends");
      answer.end();
      const end = point.startsWith("outbox") ? "The answer begins" : "The answer begins and ends";
      await peer.until("the answer", () => (peer.sent[0]?.text === end ? true : null));
      await settled(account);
      assert.equal(peer.sent.length, 1);
    });
  }

  // The documented window: Telegram has the message, and nobody knows its id.
  test("marks a preview as incomplete when the gateway is killed before it knows its id", async (t) => {
    const cleanup = new Cleanup();
    t.after(() => cleanup[Symbol.asyncDispose]());
    const { peer, first, startSecond } = await killable(cleanup, "w");
    const died = once(first.child, "exit");
    await first.failAt("preview.after_send", "kill");
    const answer = writing("die w");
    peer.say("die w");
    await stack.agent.began("die w");
    answer.write("All of it");
    await died;
    await startSecond();
    answer.end();
    await peer.untilSent(2);
    await settled("w");
    assert.deepEqual(
      peer.sent.map(({ text }) => text),
      ["All of it …", "All of it"],
    );
  });

  /** A bot whose connection is owned by a replica in its own process; `startSecond` starts the next owner in this one. */
  async function killable(cleanup: Cleanup, account: string) {
    const peer = await startTelegramPeer();
    cleanup.add(() => peer.close());
    const folder = await temporaryFolder(cleanup);
    const file = join(folder, "parley.toml");
    await writeFile(file, settingsOf(peer, account));
    const env = { PARLEY_CONFIG: file, [secretName]: peer.token };
    const first = await startProcess(stack, `${account}-first`, folder, env);
    cleanup.add(async () => void first.child.kill("SIGKILL"));
    await owned(stack, `${account}-first`, account);
    await greet(peer);
    const startSecond = async () => {
      const settings = parseSettings(settingsOf(peer, account), "test");
      const channelSecrets = new Map([[secretName, peer.token]]);
      const second = await stack.gateway({ name: `${account}-second`, config: { settings, channelSecrets } });
      cleanup.add(() => second.close());
    };
    return { peer, first, startSecond };
  }

  /** The store knows the message that shows the answer of the running turn. */
  async function isStored(account: string): Promise<boolean> {
    const found = await sql.query(
      `SELECT FROM parley.previews p JOIN parley.turns t ON t.id = p.turn_id
       WHERE p.account = $1 AND p.message_id IS NOT NULL AND t.state = 'running'`,
      [account],
    );
    return found.rowCount === 1;
  }

  /** Resolves when no text of the account waits. */
  async function settled(account: string): Promise<void> {
    const gateway = await stack.stack.bus("channel-gateway");
    await pollUntil(async () => {
      const { accounts } = await gateway.request(store.accountStatus, { accounts: [{ channel: "telegram", account }] });
      return accounts[0]?.waiting === 0;
    }, "the end of sending");
  }
});

// The last test: it replaces the leader of the others.
test("ends with one message when the leader is replaced while it writes", async () => {
  await using peer = await startTelegramPeer();
  const settings = parseSettings(settingsOf(peer, "led"), "test");
  await stack.gateway({ name: "led", config: { settings, channelSecrets: new Map([[secretName, peer.token]]) } });
  await greet(peer);
  const abandoned = writing("succession");
  peer.say("succession");
  await stack.agent.began("succession");
  abandoned.write("The first leader begins");
  await peer.until("the preview", () => (sentTo(peer, 42).length > 0 ? true : null));
  const next = await TestAgent.start(await stack.stack.bus("agent-core"));
  const answer = writing("the next leader");
  next.script = (said) => ({ deltas: said === "succession" ? answer : ["and on"] });
  // Its hint leads the next leader to the session.
  peer.say("continue");
  await next.began("succession");
  answer.write("The second leader answers");
  await peer.until("its preview", () => (textsIn(peer, 42).includes("The second leader answers …") ? true : null));
  answer.write(".");
  answer.end();
  await peer.until("both answers", () => (sentTo(peer, 42).length === 2 ? true : null));
  abandoned.end();
  assert.deepEqual(textsIn(peer, 42), ["The second leader answers.", "and on"]);
  await next.close();
});
