// The list of what every adapter must do, against each adapter with its platform, the test platform and the example.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import {
  ircChannel,
  peopleSettings,
  signalChannel,
  telegramChannel,
  type ReplyAddress,
  type store,
} from "@parley/contracts";
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
  type ReceivedMessage,
  type SeenMessage,
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
import { serveMail } from "./support/mail.ts";
import { serveSlack } from "./support/slack.ts";
import { connectedDiscord } from "./support/discord.ts";
import { MatrixAgent } from "./support/matrix.ts";
import { serveWhatsApp } from "./support/whatsapp.ts";

interface Opened extends AsyncDisposable {
  subject: ChannelSubject;
}

const people = z.object(peopleSettings).parse({});

/** The part of a subject that only needs the adapter and the host. */
function subjectOf(
  adapter: ChannelAdapter,
  host: TestHost,
  conversation: string,
  person: {
    nowhere: string;
    say: (text: string) => unknown;
    seen: (count: number) => Promise<readonly SeenMessage[]>;
    press?: (label: string) => Promise<string>;
  },
): ChannelSubject {
  const address: ReplyAddress = { channel: adapter.channel, account: adapter.account, conversation };
  // A platform that deduplicates drops a second message with the same key.
  let keys = 0;
  const send = async (to: ReplyAddress, text: string, signal: AbortSignal, actions?: readonly store.Action[]) => {
    const parts = new AnswerParts(adapter.capabilities.text);
    const outcomes: string[] = [];
    for (let position: number | null = 0; position !== null;) {
      const part = parts.at("answer", text, position, adapter.maxLength?.(to));
      if (part === null) break;
      const last = part.next === null && actions !== undefined;
      const message = { address: to, text: part.rendered, idempotencyKey: `k-${(keys += 1)}`, attempts: 0 };
      const { state } = await adapter.send(last ? { ...message, actions } : message, signal);
      outcomes.push(state);
      if (state !== "sent") break;
      position = part.next;
    }
    return outcomes;
  };
  const soon = () => AbortSignal.timeout(20_000);
  return {
    limits: adapter.capabilities.text,
    hasActions: adapter.capabilities.actions,
    send: (text, actions) => send(address, text, soon(), actions),
    sendAborted: async (text) => (await send(address, text, AbortSignal.abort()))[0] ?? "",
    sendNowhere: async (text) => (await send({ ...address, conversation: person.nowhere }, text, soon()))[0] ?? "",
    seen: (count) => person.seen(count),
    say: async (text) => {
      const count = host.accepted.length;
      await person.say(text);
      return receivedOf((await host.untilAccepted(count + 1))[count]);
    },
    ...(person.press === undefined ? {} : { press: person.press }),
  };
}

function receivedOf(draft: InboundDraft | undefined): ReceivedMessage {
  assert.ok(draft);
  const { externalId, conversation, contact, direct, text } = draft;
  return { externalId, conversation, contactId: contact.id, direct, text };
}

async function openTelegram(): Promise<Opened> {
  const peer = await startTelegramPeer();
  const settings = telegramChannel.settings.parse({ token_env: "PARLEY_CHANNEL_T", api_root: peer.url });
  const adapter = createTelegram("main", settings, { token: peer.token });
  const host = new TestHost();
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease);
  const subject = subjectOf(adapter, host, "42", {
    nowhere: "nonsense",
    say: (text) => peer.say(text),
    seen: async (count) => {
      await peer.untilSent(count);
      return peer.sent.map(({ text, buttons }) => ({ text, buttons: buttons.map((button) => button.text) }));
    },
    press: async (label) => {
      peer.press(peer.sent.at(-1)?.messageId ?? 0, label);
      return host.until("the press", () => host.acted[0]?.input ?? null);
    },
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
  const server = await startInspIrcd();
  const ann = await startIi({ port: server.port, nick: "ann", channels: ["#agents"] });
  const settings = ircChannel.settings.parse({ host: "127.0.0.1", port: server.port, tls: false, nick: "parley" });
  const adapter = createIrc("main", settings, {});
  const host = new TestHost();
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease);
  await host.untilLogged(/"connected"/);
  const seen = () =>
    ann.lines("parley").flatMap(({ nick, text }) => (nick === "parley" ? [{ text, buttons: [] }] : []));
  const subject = subjectOf(adapter, host, "ann", {
    nowhere: "#a,b",
    say: (text) => ann.say("parley", text),
    seen: async (count) => {
      // `ii` writes what it hears to a file, in order.
      while (seen().length < count) await new Promise((resolve) => setTimeout(resolve, 20));
      return seen();
    },
  });
  await ann.say("parley", "opens the conversation");
  await host.untilAccepted(1);
  return {
    subject,
    [Symbol.asyncDispose]: async () => {
      lose();
      await ended;
      await ann[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function openDiscord(): Promise<Opened> {
  const many = { limit: 1_000, windowMs: 1_000 };
  const opened = await connectedDiscord({ limits: { channel: many, global: many } });
  const { peer, adapter, host } = opened;
  const subject = subjectOf(adapter, host, peer.directChannelId(), {
    nowhere: "nonsense",
    say: (text) => peer.say(text),
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
  });
  return { subject, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

async function openEmail(): Promise<Opened> {
  const served = await serveMail();
  const { peer, host, adapter } = served;
  // A mail is longer than any text here, so the host is given a limit at which it splits.
  const short: ChannelAdapter = { ...adapter, maxLength: () => 3_000 };
  const seen = async (count: number): Promise<SeenMessage[]> => {
    const mails = await Promise.all((await peer.untilMails("ann", count)).map((raw) => simpleParser(raw)));
    return mails.map(({ text = "" }) => ({ text, buttons: [] }));
  };
  const headers = ["References: <root@test.local>"];
  const subject = subjectOf(short, host, "ann@test.local/<root@test.local>", {
    nowhere: "nobody@test.local",
    say: (body) => peer.write({ body, headers }),
    seen,
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
  });
  return { subject, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

async function openSlack(): Promise<Opened> {
  const served = await serveSlack();
  const { peer, host, adapter } = served;
  const subject = subjectOf(adapter, host, "D0ANN", {
    nowhere: "nonsense",
    say: (text) => peer.say(text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")),
    seen: async (count) => {
      await peer.untilSent(count);
      return peer.sent.map(({ text, buttons }) => ({ text, buttons: buttons.map(({ label }) => label) }));
    },
    press: async (label) => {
      peer.press(peer.sent.at(-1)?.ts ?? "", label);
      return host.until("the press", () => host.acted[0]?.input ?? null);
    },
  });
  return { subject, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

async function openMatrix(): Promise<Opened> {
  const synapse = await startSynapse();
  const ann = await synapse.person("ann");
  const agent = await MatrixAgent.open(synapse, "parley", { owners: [ann.userId] });
  const room = await agent.direct(ann);
  const subject = subjectOf(agent.adapter, agent.host, room, {
    nowhere: "nonsense",
    say: (text) => ann.say(room, text),
    seen: async (count) => {
      const messages = await ann.untilMessages(room, agent.userId, count);
      return messages.map(({ content }) => ({ text: String(content["body"]), buttons: [] }));
    },
  });
  return {
    subject,
    [Symbol.asyncDispose]: async () => {
      await agent[Symbol.asyncDispose]();
      await synapse[Symbol.asyncDispose]();
    },
  };
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
  const chat = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { to, text } = JSON.parse(Buffer.concat(chunks).toString()) as { to: string; text: string };
      if (to === "ann") sent.push({ text, buttons: [] });
      response.writeHead(to === "ann" ? 200 : 404).end(JSON.stringify({ id: String(sent.length) }));
    });
  });
  chat.listen(0, "127.0.0.1");
  await once(chat, "listening");
  const url = `http://127.0.0.1:${(chat.address() as AddressInfo).port}`;
  const adapter = createExample("main", { ...people, url, secret_env: "PARLEY_CHANNEL_E" }, "s3cret");
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
};
/** Peers that cannot run on every machine. */
const missing: Readonly<Record<string, string | false>> = { Matrix: await missingSynapse() };

for (const [name, open] of Object.entries(openers)) {
  describe(`${name} conforms`, { timeout: 60_000, skip: missing[name] ?? false }, () => {
    test("does what every channel must do", async (context) => {
      await using opened = await open();
      for (const { group, name: what, run } of conformanceCases) {
        await context.test(`${group}: ${what}`, () => run(opened.subject));
      }
    });
  });
}
