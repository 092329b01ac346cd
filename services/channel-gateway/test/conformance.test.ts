// The list of what every adapter must do, against each adapter with its platform, the test platform and the example.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { ircChannel, peopleSettings, signalChannel, telegramChannel, type ReplyAddress } from "@parley/contracts";
import {
  buttonsOf,
  conformanceCases,
  missingSynapse,
  startIi,
  startInspIrcd,
  startSynapse,
  startSignalPeer,
  startTelegramPeer,
  type ChannelSubject,
  type Outcome,
  type ReceivedMessage,
  type SeenMessage,
  type SendOptions,
} from "@parley/testing";
import Fastify from "fastify";
import { simpleParser } from "mailparser";
import { z } from "zod";
import { createExample } from "../../../examples/channel/adapter.ts";
import type { ChannelAdapter, InboundDraft } from "../src/channels/channel.ts";
import { AnswerParts } from "../src/channels/text/parts.ts";
import { createIrc } from "../src/channels/irc/index.ts";
import { createSignal } from "../src/channels/signal/index.ts";
import { createTelegram } from "../src/channels/telegram/index.ts";
import { TestHost } from "./support/channel-host.ts";
import { Platform } from "./support/platform.ts";
import { serveMail } from "./support/mail.ts";
import { serveSlack } from "./support/slack.ts";
import { connectedDiscord } from "./support/discord.ts";
import { MatrixAgent } from "./support/matrix.ts";
import { serveWhatsApp } from "./support/whatsapp.ts";

interface Opened extends AsyncDisposable {
  subject: ChannelSubject;
}

const people = z.object(peopleSettings).parse({});

interface Person {
  nowhere: string;
  say: (text: string) => unknown;
  /** Writes in a group without mentioning the agent. */
  sayInGroup?: (text: string) => unknown;
  seen: (count: number) => Promise<readonly SeenMessage[]>;
  press?: (label: string) => Promise<string>;
  secrets?: readonly string[];
}

const notDone: Outcome = { state: "nothing" };

/** The operations that an adapter has. */
function operationsOf(
  adapter: ChannelAdapter,
  operations: Pick<ChannelSubject, "edit" | "remove" | "react" | "typing" | "stopTyping" | "check">,
): typeof operations {
  return Object.fromEntries(Object.entries(operations).filter(([name]) => name in adapter));
}

/** The part of a subject that only needs the adapter and the host. */
function subjectOf(adapter: ChannelAdapter, host: TestHost, conversation: string, person: Person): ChannelSubject {
  const { channel, account, capabilities } = adapter;
  const address: ReplyAddress = { channel, account, conversation };
  let received = address;
  // A platform that deduplicates drops a second message with the same key.
  let keys = 0;
  const soon = () => AbortSignal.timeout(60_000);
  const firstPart = (text: string) => {
    const part = new AnswerParts(capabilities.text).at("answer", text, 0);
    assert.ok(part);
    return part.rendered;
  };
  const send = async (text: string, { to = address, signal = soon(), ...options }: SendOptions = {}) => {
    const parts = new AnswerParts(capabilities.text);
    const outcomes: Outcome[] = [];
    for (let position: number | null = 0; position !== null;) {
      const part = parts.at("answer", text, position, adapter.maxLength?.(to));
      if (part === null) break;
      const { actions, key: idempotencyKey = `k-${(keys += 1)}` } = options;
      const last = part.next === null && actions !== undefined;
      const message = { address: to, text: part.rendered, idempotencyKey, attempts: 0 };
      const outcome = await adapter.send(last ? { ...message, actions } : message, signal);
      outcomes.push(outcome);
      if (outcome.state !== "sent") break;
      position = part.next;
    }
    return outcomes;
  };
  const accepted = async (act: () => unknown) => {
    const count = host.accepted.length;
    await act();
    const [draft] = (await host.untilAccepted(count + 1)).slice(count);
    assert.ok(draft);
    return draft;
  };
  const { sayInGroup } = person;
  const sendFile = async (name: string, content: Uint8Array) => {
    const file = { name, mediaType: "text/plain", content };
    const part = { address, idempotencyKey: `k-${(keys += 1)}`, attempts: 0 };
    const files = { ...part, text: firstPart("a file"), files: [file] };
    return adapter.send(capabilities.filesWithText ? files : { ...part, text: null, file }, soon());
  };
  return {
    channel,
    account,
    capabilities,
    limits: capabilities.text,
    secrets: person.secrets ?? [],
    logText: () => host.logText,
    send,
    sendFile,
    sendNowhere: async (text) => (await send(text, { to: { ...address, conversation: person.nowhere } }))[0] ?? notDone,
    seen: (count) => person.seen(count),
    say: async (text) => {
      const draft = await accepted(() => person.say(text));
      received = draft.replyTo;
      return receivedOf(draft);
    },
    ...(sayInGroup === undefined
      ? {}
      : { sayInGroup: async (text: string) => receivedOf(await accepted(() => sayInGroup(text))) }),
    ...operationsOf(adapter, {
      edit: async (id, text, signal = soon()) =>
        (await adapter.edit?.(address, id, firstPart(text), signal)) ?? notDone,
      remove: async (id, signal = soon()) => (await adapter.remove?.(address, id, signal)) ?? notDone,
      react: async (id, reaction) => (await adapter.react?.(address, id, reaction, soon())) ?? notDone,
      typing: async () => adapter.typing?.(received),
      stopTyping: async () => adapter.stopTyping?.(received),
      check: async () => (await adapter.check?.(soon()))?.as ?? "",
    }),
    ...(person.press === undefined ? {} : { press: person.press }),
  };
}

function receivedOf(draft: InboundDraft): ReceivedMessage {
  const { externalId, messageId, conversation, contact, direct, addressed, text, sentAt, replyTo } = draft;
  const isMarked = draft.forwarded !== undefined || draft.quote !== undefined;
  const files = draft.files?.length ?? 0;
  return { externalId, messageId, conversation, contact, direct, addressed, text, sentAt, replyTo, files, isMarked };
}

async function openTelegram(): Promise<Opened> {
  const peer = await startTelegramPeer();
  const settings = telegramChannel.settings.parse({ token_env: "PARLEY_CHANNEL_T", api_root: peer.url });
  const adapter = createTelegram("main", settings, { token_env: peer.token });
  const host = new TestHost();
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease);
  const subject = subjectOf(adapter, host, "42", {
    nowhere: "nonsense",
    say: (text) => peer.say(text),
    sayInGroup: (text) => peer.say(text, { chat: -5 }),
    seen: async (count) => {
      await peer.untilSent(count);
      return peer.sent.map(({ text, buttons }) => ({ text, buttons: buttons.map((button) => button.text) }));
    },
    press: async (label) => {
      peer.press(peer.sent.at(-1)?.messageId ?? 0, label);
      return host.until("the press", () => host.acted[0]?.input ?? null);
    },
    secrets: [peer.token],
  });
  return {
    subject,
    [Symbol.asyncDispose]: async () => {
      lose();
      await peer.close();
      await ended;
    },
  };
}

async function openIrc(): Promise<Opened> {
  await using opening = new AsyncDisposableStack();
  const server = opening.use(await startInspIrcd());
  const ann = opening.use(await startIi({ port: server.port, nick: "ann", channels: ["#agents"] }));
  const place = { host: "127.0.0.1", port: server.port, tls: false };
  const settings = ircChannel.settings.parse({ ...place, nick: "parley", groups: ["#agents"] });
  const adapter = createIrc("main", settings, {});
  const host = new TestHost();
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease);
  opening.defer(async () => {
    lose();
    await ended;
  });
  await host.untilLogged(/"connected"/);
  const seen = () =>
    ann.lines("parley").flatMap(({ nick, text }) => (nick === "parley" ? [{ text, buttons: [] }] : []));
  const subject = subjectOf(adapter, host, "ann", {
    nowhere: "#a,b",
    say: (text) => ann.say("parley", text),
    sayInGroup: (text) => ann.say("#agents", text),
    seen: async (count) => {
      // `ii` writes what it hears to a file, in order.
      while (seen().length < count) await new Promise((resolve) => setTimeout(resolve, 20));
      return seen();
    },
  });
  await ann.say("parley", "opens the conversation");
  await host.untilAccepted(1);
  const opened = opening.move();
  return { subject, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function openDiscord(): Promise<Opened> {
  const many = { limit: 1_000, windowMs: 1_000 };
  const opened = await connectedDiscord({ limits: { channel: many, global: many } }, { group_context: true });
  const { peer, adapter, host } = opened;
  const subject = subjectOf(adapter, host, peer.directChannelId(), {
    nowhere: "nonsense",
    say: (text) => peer.say(text),
    sayInGroup: (text) => peer.say(text, { channel: peer.channelId }),
    seen: async (count) => {
      await peer.untilSent(count);
      // Discord shows `**` as bold text.
      return peer.sent.map((message) => ({
        text: message.content.replaceAll("**", ""),
        buttons: buttonsOf(message).map(({ label }) => label),
      }));
    },
    press: async (label) => {
      peer.press(peer.sent.at(-1)?.id ?? "", label);
      return host.until("the press", () => host.acted[0]?.input ?? null);
    },
    secrets: [peer.token],
  });
  return { subject, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

async function openEmail(): Promise<Opened> {
  const served = await serveMail();
  const { peer, host, adapter } = served;
  // A mail is longer than any text here, so the host is given a limit at which it splits.
  const short: ChannelAdapter = { ...adapter, maxLength: () => 5_000 };
  const parsed: SeenMessage[] = [];
  const seen = async (count: number): Promise<SeenMessage[]> => {
    for (const raw of (await peer.untilMails("ann", count)).slice(parsed.length)) {
      const { text = "" } = await simpleParser(raw);
      parsed.push({ text, buttons: [] });
    }
    return [...parsed];
  };
  const headers = ["References: <root@test.local>"];
  const subject = subjectOf(short, host, "ann@test.local/<root@test.local>", {
    nowhere: "nobody@test.local",
    say: (body) => peer.write({ body, headers }),
    seen,
    secrets: [peer.password],
  });
  return { subject, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

async function openWhatsApp(): Promise<Opened> {
  const served = await serveWhatsApp();
  const { peer, host, adapter } = served;
  peer.openWindow("491700000042");
  const subject = subjectOf(adapter, host, "491700000042", {
    nowhere: "nonsense",
    say: (text) => peer.say(text),
    seen: async (count) => {
      await peer.untilSent(count);
      return peer.sent.map(({ shown, buttons }) => ({ text: shown, buttons: buttons.map(({ title }) => title) }));
    },
    press: async (label) => {
      peer.press(peer.sent.at(-1)?.id ?? "", label);
      return host.until("the press", () => host.acted[0]?.input ?? null);
    },
    secrets: [peer.token, peer.appSecret],
  });
  return { subject, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

async function openSlack(): Promise<Opened> {
  const served = await serveSlack();
  const { peer, host, adapter } = served;
  const subject = subjectOf(adapter, host, "D0ANN", {
    nowhere: "nonsense",
    say: (text) => peer.say(text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")),
    sayInGroup: (text) => peer.say(text, { channel: "C0GENERAL" }),
    seen: async (count) => {
      await peer.untilSent(count);
      return peer.sent.map(({ text, buttons }) => ({ text, buttons: buttons.map(({ label }) => label) }));
    },
    press: async (label) => {
      peer.press(peer.sent.at(-1)?.ts ?? "", label);
      return host.until("the press", () => host.acted[0]?.input ?? null);
    },
    secrets: [peer.tokens.bot, peer.tokens.app, peer.signingSecret],
  });
  return { subject, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

async function openMatrix(): Promise<Opened> {
  await using opening = new AsyncDisposableStack();
  const synapse = opening.use(await startSynapse());
  const ann = await synapse.person("ann");
  const bob = await synapse.person("bob");
  const group = await ann.createRoom({ invite: [bob.userId] });
  await bob.join(group);
  const agent = opening.use(await MatrixAgent.open(synapse, "parley", { owners: [ann.userId], groups: [group] }));
  const room = await agent.direct(ann);
  await ann.invite(group, agent.userId);
  await ann.untilJoined(group, agent.userId);
  const subject = subjectOf(agent.adapter, agent.host, room, {
    nowhere: "nonsense",
    say: (text) => ann.say(room, text),
    sayInGroup: (text) => ann.say(group, text, { "m.mentions": {} }),
    seen: async (count) => {
      const messages = await ann.untilMessages(room, agent.userId, count);
      return messages.map(({ content }) => ({ text: String(content["body"]), buttons: [] }));
    },
    secrets: [agent.account.token],
  });
  const opened = opening.move();
  return { subject, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function openSignal(): Promise<Opened> {
  const peer = await startSignalPeer();
  const settings = signalChannel.settings.parse({ number: peer.number, daemon_url: peer.url });
  const adapter = createSignal("main", settings);
  const host = new TestHost();
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease);
  const subject = subjectOf(adapter, host, peer.ann.uuid, {
    nowhere: "nonsense",
    say: (text) => peer.say(text),
    sayInGroup: (text) => peer.say(text, { group: peer.team }),
    seen: async (count) => {
      await peer.untilSent(count);
      return peer.sent.map(({ text }) => ({ text, buttons: [] }));
    },
  });
  return {
    subject,
    [Symbol.asyncDispose]: async () => {
      lose();
      await ended;
      await peer.close();
    },
  };
}

async function openExample(): Promise<Opened> {
  const sent: SeenMessage[] = [];
  const keys = new Set<string>();
  const chat = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { to, text, key } = JSON.parse(Buffer.concat(chunks).toString()) as Record<"to" | "text" | "key", string>;
      if (to === "ann" && !keys.has(key)) sent.push({ text, buttons: [] });
      keys.add(key);
      response.writeHead(to === "ann" ? 200 : 404).end(JSON.stringify({ id: String(sent.length) }));
    });
  });
  chat.listen(0, "127.0.0.1");
  await once(chat, "listening");
  const url = `http://127.0.0.1:${(chat.address() as AddressInfo).port}`;
  const adapter = createExample("main", { ...people, url, secret_env: "PARLEY_CHANNEL_E" }, { secret_env: "s3cret" });
  const host = new TestHost();
  const app = Fastify();
  adapter.routes?.(app, host);
  let id = 0;
  const subject = subjectOf(adapter, host, "ann", {
    nowhere: "nobody",
    say: async (text) => {
      const payload = { id: String(++id), person: "ann", text };
      const headers = { "x-secret": "s3cret" };
      const { statusCode } = await app.inject({
        method: "POST",
        url: "/channels/example/main/messages",
        payload,
        headers,
      });
      assert.equal(statusCode, 200);
    },
    seen: async () => sent,
  });
  return {
    subject,
    [Symbol.asyncDispose]: async () => {
      await app.close();
      chat.close();
      chat.closeAllConnections();
    },
  };
}

async function openTestPlatform(): Promise<Opened> {
  const platform = new Platform("main");
  // The test platform accepts any conversation, and ignores the signal.
  const { adapter } = platform.account({});
  const host = new TestHost();
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease);
  const subject = subjectOf(adapter, host, "ann", {
    nowhere: "",
    say: (text) => platform.say({ conversation: "ann", from: "ann", text }),
    sayInGroup: (text) => platform.say({ conversation: "#team", from: "ann", text, direct: false }),
    seen: async (count) => {
      await platform.until(() => platform.sent.length >= count);
      return platform.sent.map(({ text }) => ({ text, buttons: [] }));
    },
  });
  return {
    subject,
    [Symbol.asyncDispose]: async () => {
      lose();
      await ended;
    },
  };
}

const openers = {
  Telegram: openTelegram,
  IRC: openIrc,
  "e-mail": openEmail,
  Matrix: openMatrix,
  WhatsApp: openWhatsApp,
  Slack: openSlack,
  Discord: openDiscord,
  Signal: openSignal,
  "the example": openExample,
  "the test platform": openTestPlatform,
};
/** Peers that cannot run on every machine. */
const missing: Readonly<Record<string, string | false>> = { Matrix: await missingSynapse() };

for (const [name, open] of Object.entries(openers)) {
  describe(`${name} conforms`, { skip: missing[name] ?? false }, () => {
    test("does what every channel must do", async (context) => {
      await using opened = await open();
      for (const { group, name: what, run } of conformanceCases) {
        await context.test(`${group}: ${what}`, () => run(opened.subject));
      }
    });
  });
}
